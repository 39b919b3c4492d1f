/**
 * source - sender, subject and stream of an event's message, which our own event body does not include
 *
 * They are read from the message as it is stored, so an erasure holds for them too.
 *
 * Keys: `log head:<server>:<segment>`, `stream:<id>`, `person:<account>:<x…>`
 *
 * Spec webhook.format
 */

import { homeShard, shortId } from '../../../cluster/id.ts'
import type { EventBody, WebhookFormat } from '../../../schemas/webhook.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import { spelledAddress, unpackHead } from '../../state/message/head.ts'
import { parseLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import type { EventReference, MessageReference } from '../../state/webhook/item.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import { wholeHead } from '../message/rows.ts'
import { readPersons } from '../person.ts'
import { streamNameOf } from './bounce.ts'

/** The values of a message that other formats name. */
export interface EventSource {
  readonly from: { readonly email: string; readonly name: string | null }
  /** Null once erased. */
  readonly subject: string | null
  /** Name of the stream. */
  readonly stream: string
  /** Source of a received mail, if the webhook asks for it. */
  readonly raw?: string
}

/** Reads the source of an event. Returns null for our own format and undefined if the store did not answer. */
export async function readEventSource(
  read: Reader,
  { accountId, serverId, format }: { readonly accountId: string; readonly serverId: string; format?: WebhookFormat },
  { reference, event }: { readonly reference: EventReference; readonly event: EventBody },
): Promise<EventSource | null | undefined> {
  if (format === undefined || format === 'sendwright' || typeof event.streamId !== 'string') return null
  const shard = homeShard(serverId)
  const seen = await read(shard, [entityFact(shard, streamRef(event.streamId))])
  if (seen === null) return undefined
  const state = parseState<StreamState>(seen[0])
  const stream = state === null ? '' : streamNameOf(state)
  if (reference.kind === 'example')
    return { from: { email: `sender@${SIMULATOR_DOMAIN}`, name: null }, subject: 'Example', stream }
  if (reference.kind !== 'message') return { from: { email: '', name: null }, subject: null, stream }
  const written = await readWritten(read, { shard, accountId, serverId }, reference)
  return written === undefined ? undefined : { ...written, stream }
}

async function readWritten(
  read: Reader,
  { shard, accountId, serverId }: { readonly shard: number; readonly accountId: string; readonly serverId: string },
  { segment, messageId }: MessageReference,
): Promise<Pick<EventSource, 'from' | 'subject'> | undefined> {
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [rows.entryFact(messageId), rows.headsFact([shortId(messageId)])])
  if (seen === null) return undefined
  const [logged] = seen[0]
  const entry = logged === undefined ? null : parseLogEntry(logged)
  const packed = seen[1][0] ?? null
  // The message was removed between two reads.
  if (entry === null || packed === null) return { from: { email: '', name: null }, subject: null }
  const head = await wholeHead(read, shard, unpackHead(packed, entry.recipients.length))
  const persons = await readPersons(read, { shard, accountId, numbers: [entry.sender] })
  const known = persons?.[0]
  if (head === undefined || known === undefined) return undefined
  return { from: { email: spelledAddress(head, 0, known), name: head.senderName }, subject: head.subject }
}
