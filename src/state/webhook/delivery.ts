/**
 * delivery - the state of one delivery, packed, and its place.
 *
 * States (webhook.delivery): pending, delivered, dead. A delivery without a record is fresh: pending, not attempted.
 * One that was queued before its webhook was last disabled is dead, whatever its record contains.
 *
 * Packed: `[letter, attempts, last status code, delivered, last error, next attempt, base, failures, queued, answer]`;
 * letters p v d; instants in ms after the delivery's creation, 0 for none; zeros at the end are left off. A delivery
 * that succeeds at once takes some 16 bytes, plus the receiver's reply.
 *
 * A delivery is found from its id in two rounds of reading: the slices from the beginning of the id's day up to it;
 * then its entry in the queue of the last of them, or of the previous one (two slices may share a millisecond), its
 * place among the dead, or its block.
 *
 * Spec webhook.delivery, webhook.states
 */

import type { Entry, Fact, FactOf, Op } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey } from '../../../cluster/keyspace.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { isPastAge } from '../age.ts'
import { DAY_MS } from '../calendar.ts'
import { idScore } from '../id-score.ts'
import { deadKey, deliveryKey, queueKey, slicesKey } from '../keys.ts'
import { blockFact, recordInBlocks, rowInBlocks, type StoredBlocks } from './block.ts'
import { type EventReference, parseDeliveryItem, QUEUE_FIELD, type WebhookItem } from './item.ts'
import { sliceEndMs } from './slice.ts'
import { type WebhookCounters, type WebhookState, webhookOwner } from './webhook.ts'

/** The errors of a failed attempt, in addition to `http_<status>`. Spec webhook.delivery */
export type PostError =
  | 'timeout'
  | 'redirect'
  | 'dns_error'
  | 'private_address'
  | 'port_not_allowed'
  | 'connect_failed'
  | 'tls_failed'
  /** With the reason as Node.js names it. */
  | `tls_failed: ${string}`
  | 'webhook_disabled'
  | 'backlog_full'
  | `http_${number}`

export interface DeliveryRecord {
  readonly status: 'pending' | 'delivered' | 'dead'
  readonly attempts: number
  readonly lastStatusCode: number | null
  readonly lastError: string | null
  /** The receiver's last reply, without addresses; null if none, or erased. */
  readonly lastResponse: string | null
  readonly deliveredAtMs: number | null
  /** Null unless pending. */
  readonly nextAttemptAtMs: number | null
  /** Attempts made before it was last queued. */
  readonly base: number
  /** Failed attempts since it was last queued. */
  readonly failures: number
  /** When it was replayed last; null: never. */
  readonly queuedAtMs: number | null
}

/** A delivery, from the name of its item. */
export interface DeliveryPlace {
  readonly shard: number
  readonly webhookId: string
  readonly deliveryId: string
  readonly slice: string
}

type Packed = [letter: keyof typeof STATUSES, ...rest: (number | string)[]]

const STATUSES = { p: 'pending', v: 'delivered', d: 'dead' } as const
const LETTERS = { pending: 'p', delivered: 'v', dead: 'd' } as const
/** Spec retention.delivery: days for which delivered ones are kept. */
const DELIVERED_DAYS = 30

/** Slices of one day: 50 million deliveries. */
const DAY_SLICES_MAX = 1_000
/** Maximum dead deliveries of one score, which distinguishes some 4,000 of one millisecond. */
const SAME_SCORE_MAX = 1_000
const CANDIDATES = 2
const PLACE_READS = 3

type SortedFact = Fact & { read: 'sorted' }
type RangeFact = Fact & { read: 'range' }

/** Packs a record; times are kept relative to the delivery's creation. */
function packRecord(record: DeliveryRecord, createdAtMs: number): string {
  const { status, attempts, lastStatusCode, lastError, deliveredAtMs, nextAttemptAtMs, base, failures } = record
  const since = (ms: number | null): number => (ms === null ? 0 : ms - createdAtMs)
  const packed: Packed = [LETTERS[status], attempts, lastStatusCode ?? 0, since(deliveredAtMs), lastError ?? 0]
  packed.push(since(nextAttemptAtMs), base, failures, since(record.queuedAtMs), record.lastResponse ?? 0)
  while (packed.length > 2 && packed.at(-1) === 0) packed.pop()
  return withSum(JSON.stringify(packed))
}

/** Unpacks a result of `packRecord`; null, for a missing record, is a fresh delivery. */
export function unpackRecord(text: string | null, createdAtMs: number): DeliveryRecord {
  const packed = (text === null ? ['p'] : JSON.parse(withoutSum(text, 'delivery'))) as Packed
  const [letter, attempts = 0, code = 0, delivered = 0, error = 0, next = 0, base = 0, failures = 0] = packed
  const [queued = 0, answer = 0] = packed.slice(8)
  const status = STATUSES[letter]
  const instant = (ms: number | string): number => createdAtMs + (ms as number)
  return {
    status,
    attempts: attempts as number,
    lastStatusCode: code === 0 ? null : (code as number),
    lastError: error === 0 ? null : (error as string),
    lastResponse: answer === 0 ? null : (answer as string),
    deliveredAtMs: status === 'delivered' ? instant(delivered) : null,
    nextAttemptAtMs: status === 'pending' ? instant(next) : null,
    base: base as number,
    failures: failures as number,
    queuedAtMs: queued === 0 ? null : instant(queued),
  }
}

/**
 * The number of attempts ever begun. Takes its row of `claims`, which counts those since it was last queued and is
 * removed at its end, or null.
 */
export function attemptsMade({ attempts, base }: DeliveryRecord, row: string | null): number {
  return Math.max(attempts, base + attemptsOfRow(row))
}

/** Attempts that a row of `claims` counts. */
export function attemptsOfRow(row: string | null): number {
  return row === null ? 0 : (JSON.parse(row) as [worker: string, lane: string, attempt: number])[2]
}

/** Whether a delivery was queued before its webhook was last switched off. */
export function isSwitchedOff(
  { off }: Pick<WebhookState, 'off'>,
  { deliveryId, record }: { deliveryId: string; record: DeliveryRecord },
): boolean {
  if (off === null) return false
  return record.queuedAtMs === null ? deliveryId < off.id : record.queuedAtMs <= off.atMs
}

/** The effective record, after a switch-off of the webhook. */
export function shownRecord(
  webhook: Pick<WebhookState, 'off'>,
  { deliveryId, record }: { deliveryId: string; record: DeliveryRecord },
): DeliveryRecord {
  if (record.status !== 'pending' || !isSwitchedOff(webhook, { deliveryId, record })) return record
  return deadRecord(record, 'webhook_disabled')
}

/** The record of an abandoned delivery. */
export function deadRecord(record: DeliveryRecord, lastError: PostError): DeliveryRecord {
  return { ...record, status: 'dead', nextAttemptAtMs: null, deliveredAtMs: null, lastError }
}

/** Writes a record. */
export function recordOp({ shard, webhookId, deliveryId, slice }: DeliveryPlace, record: DeliveryRecord): Op {
  const key = deliveryKey(shard, webhookId, slice)
  return { key, write: 'HSET', args: [shortId(deliveryId), packRecord(record, msOf(deliveryId))] }
}

/** Writes that a delivery is dead, and lists it among the dead. */
export function deadOps(place: DeliveryPlace, { item, record }: { item: string; record: DeliveryRecord }): Op[] {
  const { shard, webhookId, deliveryId, slice } = place
  const key = deadKey(shard, webhookId, slice)
  return [recordOp(place, record), { key, write: 'ZADD', args: [String(idScore(deliveryId)), item] }]
}

/** Whether of a slice only what is dead, or was and waits again, is still kept and listed. */
export function isThinned(slice: string, nowMs: number): boolean {
  return sliceEndMs(slice) + DELIVERED_DAYS * DAY_MS <= nowMs
}

/** The read of a delivery's record. */
export function recordFact(
  shard: number,
  webhookId: string,
  { deliveryId, slice }: Pick<WebhookItem, 'deliveryId' | 'slice'>,
): FactOf<'fields'> {
  return { read: 'fields', key: deliveryKey(shard, webhookId, slice), fields: [shortId(deliveryId)] }
}

/** The reads of a delivery's record, which is in its hash or in a block (`block.ts`). */
export function recordFacts(
  shard: number,
  webhookId: string,
  delivery: Pick<WebhookItem, 'deliveryId' | 'slice'>,
): [FactOf<'fields'>, FactOf<'sorted'>] {
  const { deliveryId, slice } = delivery
  return [recordFact(shard, webhookId, delivery), blockFact({ shard, webhookId, slice }, deliveryId)]
}

/** The record of a delivery. Takes its field of the hash, and its block, which must have been read in one step. */
export function mergedRecord(
  delivery: Pick<WebhookItem, 'deliveryId' | 'slice'>,
  { field, blocks }: { readonly field: string | null; readonly blocks: StoredBlocks },
): DeliveryRecord {
  return unpackRecord(field ?? recordInBlocks(delivery, blocks), msOf(delivery.deliveryId))
}

/** The reads for a delivery's end: its record, and its row of `claims`. */
export function deliveryFacts(shard: number, webhookId: string, item: string): Fact[] {
  return [
    recordFact(shard, webhookId, parseDeliveryItem(item)),
    { read: 'fields', key: claimsKey(shard), fields: [item] },
  ]
}

/** A webhook's counters with `count` fewer pending deliveries. */
export function lessPending(
  webhookId: string,
  counters: WebhookCounters | null,
  count: number,
): { owner: string; value: WebhookCounters } {
  const pending = Math.max(0, (counters?.pending ?? 0) - count)
  return { owner: webhookOwner(webhookId), value: { ...(counters ?? { slice: null }), pending } }
}

/** Whether the subject of a delivery has expired, a message by its own age, any other subject by the delivery's. */
export function isGone(
  { deliveryId, reference }: { deliveryId: string; reference: EventReference },
  at: { nowMs: number; test: boolean; months: number },
): boolean {
  if (reference.kind === 'message' || reference.kind === 'inbound') return isPastAge(msOf(reference.messageId), at)
  return isPastAge(msOf(deliveryId), { ...at, test: false })
}

/** A webhook's counters once some deliveries wait again. */
export function morePending(
  webhookId: string,
  counters: WebhookCounters | null,
  deliveries: readonly Pick<WebhookItem, 'deliveryId' | 'slice'>[],
): { owner: string; value: WebhookCounters } {
  const { owner, value } = lessPending(webhookId, counters, -deliveries.length)
  const oldest = deliveries.reduce((one, other) => (other.deliveryId < one.deliveryId ? other : one))
  const isBefore = value.trimmed !== undefined && oldest.deliveryId < value.trimmed[1]
  return { owner, value: isBefore ? { ...value, trimmed: [oldest.slice, oldest.deliveryId] } : value }
}

/** The first round of finding a delivery, which reads the slices of its day. */
export function daySlicesFact(shard: number, webhookId: string, deliveryId: string): SortedFact {
  const ms = msOf(deliveryId)
  const min = Math.floor(ms / DAY_MS) * DAY_MS
  return { read: 'sorted', key: slicesKey(shard, webhookId), min, max: ms, count: DAY_SLICES_MAX }
}

/** The second round, with three reads for each slice of the first. */
export function placeFacts(
  slices: readonly (readonly [string, number])[],
  { shard, webhookId, deliveryId }: { shard: number; webhookId: string; deliveryId: string },
): (RangeFact | SortedFact)[] {
  const entryId = entryIdOf(deliveryId)
  const score = idScore(deliveryId)
  return slices
    .slice(-CANDIDATES)
    .flatMap(([slice]): (RangeFact | SortedFact)[] => [
      { read: 'range', key: queueKey(shard, webhookId, slice), from: entryId, to: entryId, count: 1 },
      { read: 'sorted', key: deadKey(shard, webhookId, slice), min: score, max: score, count: SAME_SCORE_MAX },
      blockFact({ shard, webhookId, slice }, deliveryId),
    ])
}

/** The item that the second round has found; null if there is no such delivery. Takes the slices and its answers. */
export function foundItem(
  slices: readonly (readonly [string, number])[],
  answers: readonly unknown[],
  deliveryId: string,
): string | null {
  for (const [at, [slice]] of slices.slice(-CANDIDATES).entries()) {
    const [queued, dead, blocks] = answers.slice(at * PLACE_READS) as [readonly Entry[], StoredBlocks, StoredBlocks]
    const [entry] = queued
    if (entry !== undefined) return entry.fields[entry.fields.indexOf(QUEUE_FIELD) + 1] ?? null
    const found =
      dead.find(([item]) => item.startsWith(deliveryId))?.[0] ?? rowInBlocks({ deliveryId, slice }, blocks)?.name
    if (found !== undefined) return found
  }
  return null
}
