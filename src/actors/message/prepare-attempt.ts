/**
 * prepare-attempt - the data needed to compose and transmit a message to one recipient.
 *
 * A fresh first attempt gets its job from the commit that accepted the message. Later ones are prepared here: the item
 * names server, segment and message; log entry, head and status are read, then the addresses of the persons.
 *
 * Guarantees: an item of an account whose mail is held leaves its lane and waits; there is no job for a finished
 * recipient, or for a message that has left the log, is past its age, or is from or to an erased person.
 *
 * Spec delivery.attempt
 */

import type { CommandType, Decision, Fact, PrepareBody } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { sendingKey } from '../../state/keys.ts'
import type { InlinePart } from '../../state/message/content-part.ts'
import {
  type BroadcastOfHead,
  type Head,
  type HeadAttachment,
  type RawContent,
  type StoredContent,
  spelledAddress,
  unpackHead,
} from '../../state/message/head.ts'
import { type AttemptItem, parseAttemptItem } from '../../state/message/item.ts'
import type { LogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { isOpen, unpackStatus } from '../../state/message/status.ts'
import { keyOfNumber } from '../../state/person/buckets.ts'
import { addressFact, addressOfRow, erasedMonthOf } from '../../state/person/person.ts'
import { isTestSegment } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { isPastLog } from '../authorization/log-age.ts'
import { holdOps } from './held.ts'

export interface JobAddress {
  readonly address: string
  readonly name: string | null
}

/** A message as a performer gets it; the same for all its recipients. */
export interface JobMessage {
  readonly messageId: string
  readonly accountId: string
  readonly serverId: string
  /** Time of acceptance; for a scheduled message, its scheduled time. */
  readonly acceptedAtMs: number
  /** Whether it was scheduled, so that the sender's domain and the stream's list are checked when it is sent. */
  readonly isScheduled: boolean
  readonly test: boolean
  /** Whether the sender's domain may be used for sending, and so has its own return path. */
  readonly hasReturnPath: boolean
  /** Since when the DKIM key signs that the domain had at acceptance; null: it follows from the time of acceptance. */
  readonly keySinceMs: number | null
  readonly from: JobAddress
  readonly to: readonly JobAddress[]
  readonly cc: readonly JobAddress[]
  readonly subject: string
  readonly headers: Readonly<Record<string, string>>
  readonly streamId: string
  /** Name of the stream if it is a broadcast stream, otherwise null. */
  readonly listName: string | null
  /** The broadcast that it is of, whose content it shares; null: none. */
  readonly broadcast: BroadcastOfHead | null
  /** Hash of the tag within the server; null = none. */
  readonly tagHash: string | null
  readonly attachments: readonly HeadAttachment[]
  /** A message that came whole and goes out so; null: it is composed. */
  readonly raw: RawContent | null
  /** Its parts are `body` and `a0`, `a1`, …, or `body` and `raw`. */
  readonly contentId: string
  /** Its objects in the content store; null if there are none. */
  readonly stored: StoredContent | null
  /** The parts themselves, if they came with the command; null if they are in the store. */
  readonly content: readonly InlinePart[] | null
}

/** One recipient to be served. The number of the attempt is in the claim. */
export interface AttemptJob {
  readonly message: JobMessage
  readonly recipient: { readonly address: string; readonly index: number }
}

/** The data found for an item. */
export interface LoggedMessage {
  readonly item: AttemptItem
  readonly accountId: string
  readonly entry: LogEntry
  readonly head: Head
}

/** Prepares an item's next attempt and returns its job, or null if there is nothing left to do. */
export const prepareAttempt: CommandType<PrepareBody, AttemptJob | null> = {
  name: 'prepare delivery',
  entities(body) {
    const { serverId, broadcastStreamId } = parseAttemptItem(body.item)
    return broadcastStreamId === null ? [serverRef(serverId)] : [serverRef(serverId), streamRef(broadcastStreamId)]
  },
  counters: () => [],
  facts: (body, _states, { shard }) => itemFacts(shard, parseAttemptItem(body.item)),
  decide(body, states, facts, context): Decision<AttemptJob | null> {
    const { shard, nowMs } = context
    const item = parseAttemptItem(body.item)
    const isPast = isPastLog(item, { states, facts, context })
    if (typeof isPast !== 'boolean') return isPast
    if (isPast) return nothing
    const server = states.get<ServerState | null>(serverRef(item.serverId))
    const rows = new MessageRows(shard, item)
    const entry = rows.entry(facts, item.messageId)
    const packedHead = rows.head(facts, item.short)
    if (server === null || entry === null || packedHead === null) return nothing
    const state = unpackStatus(rows.status(facts, item), msOf(item.messageId))
    if (!isOpen(state.status)) return nothing
    const { accountId } = server
    const found = { item, accountId, entry, head: unpackHead(packedHead, item.recipients) }
    const missing = addressFacts(shard, found).filter((fact) => !facts.has(fact))
    const owner = accountRef(accountId)
    if (missing.length > 0 || !states.has(owner)) return { kind: 'need', entities: [owner], facts: missing }
    // Spec account.hold
    if (states.get<AccountState | null>(owner)?.held)
      return { ...nothing, ops: holdOps(shard, accountId, { ...body, attempts: state.attempts, nowMs }) }
    const addressOf = (number: number) => addressIn(facts, shard, accountId, number)
    const sending = sendingFact(shard, found, addressOf(entry.sender))
    if (!facts.has(sending)) return { kind: 'need', facts: [sending] }
    const hasReturnPath = facts.field(sending.key, sending.fields[0]) !== null
    const { broadcastStreamId } = item
    const stream = broadcastStreamId === null ? null : states.get<StreamState | null>(streamRef(broadcastStreamId))
    const listName = stream?.name ?? null
    return { kind: 'done', reply: makeJob(found, { addressOf, hasReturnPath, server, listName }) }
  },
}

/** The reads that find an item's message. */
export function itemFacts(shard: number, item: AttemptItem): Fact[] {
  const rows = new MessageRows(shard, item)
  return [rows.entryFact(item.messageId), rows.headsFact([item.short]), rows.statusFact(item)]
}

const nothing = { kind: 'done', reply: null } as const

/** Persons whose addresses the job holds: sender, the ones shown, the recipient. */
export function addressFacts(shard: number, { item, accountId, entry }: LoggedMessage): Fact[] {
  const numbers = new Set([entry.sender])
  for (const [index, number] of entry.recipients.entries())
    if (index === item.recipient || entry.kinds[index] !== 'bcc') numbers.add(number)
  return Array.from(numbers, (number) => addressFact(shard, accountId, number))
}

/** The row that shows whether the sender's domain may still be used. */
export function sendingFact(shard: number, { accountId }: LoggedMessage, sender: string | null) {
  const domain = sender === null ? '' : sender.slice(sender.lastIndexOf('@') + 1)
  return { read: 'fields', key: sendingKey(shard, accountId), fields: [domain] } as const
}

/** A person's address; null once it is erased, or its erasure has begun. */
export function addressIn(
  facts: { field(key: string, field: string): string | null },
  shard: number,
  accountId: string,
  number: number,
): string | null {
  const row = facts.field(keyOfNumber(shard, accountId, number), String(number))
  // Nothing is sent to a pseudonym, and nothing more from or to a person under erasure.
  return row === null || erasedMonthOf(row) !== null ? null : addressOfRow(row)
}

/** The job of a recipient; null if a person that it names is erased. */
export function makeJob(
  found: LoggedMessage,
  of: {
    addressOf: (number: number) => string | null
    hasReturnPath: boolean
    server: ServerState
    listName: string | null
  },
): AttemptJob | null {
  const { item, accountId, entry, head } = found
  const { addressOf, hasReturnPath, server, listName } = of
  // The spelling of the first attempt, so that the signature stays the same.
  const spelled = (place: number, number: number | undefined): string | null => {
    const known = number === undefined ? null : addressOf(number)
    return known === null ? null : spelledAddress(head, place, known)
  }
  const address = spelled(item.recipient + 1, entry.recipients[item.recipient])
  const sender = spelled(0, entry.sender)
  if (address === null || sender === null) return null
  // Every visible recipient is part of the message's content.
  if (entry.recipients.some((number, index) => entry.kinds[index] !== 'bcc' && addressOf(number) === null)) return null
  const shown = (kind: 'to' | 'cc'): JobAddress[] =>
    entry.recipients.flatMap((number, index) => {
      const one = entry.kinds[index] === kind ? spelled(index + 1, number) : null
      return one === null ? [] : [{ address: one, name: head.recipientNames[index] ?? null }]
    })
  const message: JobMessage = {
    messageId: item.messageId,
    accountId,
    serverId: item.serverId,
    acceptedAtMs: item.sendAtMs ?? msOf(item.messageId),
    isScheduled: item.sendAtMs !== null,
    test: isTestSegment(item.segment),
    hasReturnPath,
    keySinceMs: null,
    from: { address: sender, name: head.senderName },
    to: shown('to'),
    cc: shown('cc'),
    subject: head.subject ?? '',
    headers: head.headers,
    streamId: entry.streamId ?? server.defaultStreamId,
    listName,
    broadcast: head.broadcast,
    tagHash: entry.tagHash,
    attachments: head.attachments,
    raw: head.raw,
    contentId: entry.contentId,
    stored: head.stored,
    content: null,
  }
  return { message, recipient: { address, index: item.recipient } }
}
