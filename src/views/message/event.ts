/**
 * event - an event of the catalogue as clients receive it, rebuilt from the rows of its message
 *
 * Deliveries do not store their event. That of a message is built from its log entry, its head, the recipient's row
 * and the present address, so a pseudonym replaces an erased address. A cap's event is whole in its reference.
 *
 * Keys: `log head status:<server>:<segment>`, `server:<id>`, `person:<account>:<x…>`
 *
 * Spec event.catalogue, webhook.example
 */

import { homeShard, msOf, shortId } from '../../../cluster/id.ts'
import type { EventBody, InboundContent } from '../../../schemas/webhook.ts'
import { computeMonth, monthStartMs } from '../../state/calendar.ts'
import { type Head, spelledAddress, unpackHead } from '../../state/message/head.ts'
import { parseLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type StatusEvent, unpackStatus } from '../../state/message/status.ts'
import { isTestSegment } from '../../state/segment.ts'
import type { ServerState } from '../../state/server.ts'
import { serverRef } from '../../state/server.ts'
import type { CapReference, EventReference, ExampleReference, MessageReference } from '../../state/webhook/item.ts'
import { entityFact, parseState } from '../entity.ts'
import { type ReceivedDeps, readInboundEvent } from '../inbound/received.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'
import { readPersons } from '../person.ts'
import { exampleEvent } from './example-event.ts'
import { formatDetails } from './recipient.ts'
import { wholeHead } from './rows.ts'

/** Whose event it is. */
export interface EventOwner {
  readonly accountId: string
  readonly serverId: string
  /** The form of received messages; if absent, `full`. */
  readonly inboundContent?: InboundContent
}

/** Builds an event. Returns null if its message was removed, and undefined if the store did not answer. */
export type EventReader = (
  owner: EventOwner,
  reference: EventReference,
  atMs: number,
  /**
   * Reads received mail with this reader instead of the one given to `makeEventReader`, because a search counts its
   * own reads.
   */
  through?: Reader,
) => Promise<EventBody | null | undefined>

/** Dependencies for events of received mail. */
export type ReceivedParts = Omit<ReceivedDeps, 'read'>

/** Events that are cached for other webhooks that receive them at the same time, and for how long. */
const KEPT_MAX = 2_000
const KEPT_MS = 1_000

/**
 * Makes the reader of events; `nowMs` is any monotonic clock. Equal questions within a second are asked once; received
 * mail, which may be large, is asked for each time.
 */
export function makeEventReader(read: Reader, nowMs: () => number, received: ReceivedParts): EventReader {
  const kept = new Map<string, { readonly body: Promise<EventBody | null | undefined>; readonly untilMs: number }>()
  const forget = (question: string, body: Promise<EventBody | null | undefined>): void => {
    if (kept.get(question)?.body === body) kept.delete(question)
  }
  return (owner, reference, atMs, through = read) => {
    if (reference.kind === 'example') return readExample(read, owner, { reference, atMs })
    if (reference.kind === 'cap') return Promise.resolve(capEvent(owner, reference))
    if (reference.kind === 'inbound') {
      const { serverId, inboundContent = 'full' } = owner
      return readInboundEvent({ ...received, read: through }, { serverId, inboundContent }, reference)
    }
    const { segment, messageId, recipient, index } = reference
    const question = `${owner.serverId} ${segment} ${messageId} ${recipient} ${index}`
    const known = kept.get(question)
    if (known !== undefined && known.untilMs > nowMs()) return known.body
    const body = readMessageEvent(read, owner, reference)
    // A store that did not answer may do so the next time.
    body.then(
      (event) => event === undefined && forget(question, body),
      () => forget(question, body),
    )
    kept.delete(question)
    // A Map is in order of insertion, so the oldest entry is removed.
    if (kept.size >= KEPT_MAX) kept.delete(kept.keys().next().value as string)
    kept.set(question, { body, untilMs: nowMs() + KEPT_MS })
    return body
  }
}

async function readMessageEvent(
  read: Reader,
  { accountId, serverId }: EventOwner,
  reference: MessageReference,
): Promise<EventBody | null | undefined> {
  const { event, segment, messageId, recipient, index } = reference
  const shard = homeShard(serverId)
  const short = shortId(messageId)
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [
    rows.entryFact(messageId),
    rows.headsFact([short]),
    rows.statusFact({ short, recipient }),
    entityFact(shard, serverRef(serverId)),
  ])
  if (seen === null) return undefined
  const [logged] = seen[0]
  const entry = logged === undefined ? null : parseLogEntry(logged)
  const packedHead = seen[1][0] ?? null
  const row = seen[2][0] ?? null
  const server = parseState<ServerState>(seen[3])
  const number = entry?.recipients[recipient]
  if (entry === null || packedHead === null || server === null || number === undefined) return null
  const { events } = unpackStatus(row, msOf(messageId))
  if (events[index]?.event !== event) return null
  const persons = await readPersons(read, { shard, accountId, numbers: [number] })
  const known = persons?.[0]
  if (known === undefined) return undefined
  const head = await wholeHead(read, shard, unpackHead(packedHead, entry.recipients.length))
  if (head === undefined) return undefined
  const streamId = entry.streamId ?? server.defaultStreamId
  return messageEvent(reference, { serverId, streamId, test: isTestSegment(segment), head, events, known })
}

/** The inputs of a message's event: the message, its recipient's events and address. */
export interface MessageEventSource {
  readonly serverId: string
  readonly streamId: string
  readonly test: boolean
  readonly head: Head
  readonly events: readonly StatusEvent[]
  /** The recipient's address as the store has it, in lower case, or the pseudonym. */
  readonly known: string
}

/** An event of a message; null if the recipient has no such event. */
export function messageEvent(
  { event, messageId, recipient, index }: MessageReference,
  { serverId, streamId, test, head, events, known }: MessageEventSource,
): EventBody | null {
  const told = events[index]
  if (told === undefined || told.event === 'cancelled' || told.event !== event) return null
  const address = spelledAddress(head, recipient + 1, known)
  const { tag, metadata } = head
  return {
    messageId,
    recipient: address,
    occurredAt: formatInstant(told.occurredAtMs),
    serverId,
    streamId,
    broadcastId: head.broadcast?.broadcastId ?? null,
    tag,
    metadata,
    test,
    event,
    details: formatDetails(told, address),
  }
}

/** An example on the default stream of the server. */
async function readExample(
  read: Reader,
  owner: EventOwner,
  { reference, atMs }: { reference: ExampleReference; atMs: number },
): Promise<EventBody | null | undefined> {
  const shard = homeShard(owner.serverId)
  const seen = await read(shard, [entityFact(shard, serverRef(owner.serverId))])
  if (seen === null) return undefined
  const server = parseState<ServerState>(seen[0])
  return server === null
    ? null
    : exampleEvent({ ...server, inboundContent: owner.inboundContent ?? 'full' }, reference, atMs)
}

function capEvent({ serverId }: EventOwner, { event, scope, cap, used, occurredAtMs }: CapReference): EventBody {
  const month = computeMonth(occurredAtMs)
  return {
    event,
    scope,
    serverId: scope === 'server' ? serverId : null,
    cap,
    used,
    periodStart: formatInstant(monthStartMs(month)),
    periodEnd: formatInstant(monthStartMs(month + 1)),
    occurredAt: formatInstant(occurredAtMs),
  }
}
