/**
 * queue - pending recipients, by destination over all shards
 *
 * Reads every shard's list of lanes and then the size of each; details are read only for the destinations of the page,
 * and only from the first items of each of their lanes.
 *
 * Keys: `due`, `due:<lane>`, `holds`, `status:<server>:<segment>`
 *
 * Spec queue.list
 */

import { msOf, SHARDS } from '../../../cluster/id.ts'
import { dueKey, laneKey } from '../../../cluster/keyspace.ts'
import type { Destination, Queue } from '../../../schemas/operator/queue.ts'
import { maskAddress } from '../../mail/reply.ts'
import { HOLDS_SHARD, holdsKey } from '../../state/keys.ts'
import { LANES, parseAttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { unpackStatus } from '../../state/message/status.ts'
import { formatInstant } from '../instant.ts'
import type { ReadKeys } from '../read-keys.ts'

/** Maximum number of lanes counted per shard, those due first. */
const LANES_MAX = 2000
/** Items of a lane that are read to find the oldest, and deferred items that are read to find the last reply. */
const OLDEST_ITEMS = 100
const ANSWERED_ITEMS = 3
/** Items due within this time are due now by the clock of another process; deferred ones wait at least a minute. */
export const CLOCKS_APART_MS = 5_000

/** A lane of a destination. */
export interface LanePlace {
  readonly shard: number
  readonly lane: string
}

/** A destination's lane. */
export function laneOfDestination(destination: string): string {
  return destination === LANES.relay ? LANES.relay : `${LANES.deliver}/${destination}`
}

/** Waiting recipients by destination; null when the store did not answer. */
export async function countDestinations(
  readKeys: ReadKeys,
): Promise<Map<string, { waiting: number; places: LanePlace[] }> | null> {
  const dues = ALL_SHARDS.map((shard) => ({ shard, key: dueKey(shard), args: [0, LANES_MAX - 1] }))
  const lists = await readKeys('zrange', dues)
  if (lists === null) return null
  const places = lists.flatMap((lanes, shard) => lanes.filter(isDelivery).map((lane): LanePlace => ({ shard, lane })))
  const counts = await readKeys('zcard', places.map(keyOfLane))
  if (counts === null) return null
  const destinations = new Map<string, { waiting: number; places: LanePlace[] }>()
  for (const [at, place] of places.entries()) {
    const destination = destinationOf(place.lane)
    const known = destinations.get(destination) ?? { waiting: 0, places: [] }
    const count = counts[at] ?? 0
    known.waiting += count
    if (count > 0) known.places.push(place)
    destinations.set(destination, known)
  }
  return destinations
}

/** A page of the queue, the fullest destinations first; null when the store did not answer. */
export async function readQueue(
  readKeys: ReadKeys,
  { limit, after, nowMs }: { limit: number; after: string | null; nowMs: number },
  siteOf: (destination: string) => Promise<string | null>,
): Promise<Queue | null> {
  const [counted, holds] = await Promise.all([
    countDestinations(readKeys),
    readKeys('hkeys', [{ shard: HOLDS_SHARD, key: holdsKey() }]),
  ])
  if (counted === null || holds === null) return null
  const held = new Set(holds[0])
  for (const destination of held) if (!counted.has(destination)) counted.set(destination, { waiting: 0, places: [] })
  const rows = [...counted]
    .map(([destination, found]) => ({ destination, ...found }))
    .filter(({ waiting, destination }) => waiting > 0 || held.has(destination))
    .sort((a, b) => compare(a, b))
  const [waiting = '', destination = ''] = after?.split(':') ?? []
  const start =
    after === null ? 0 : rows.findIndex((row) => compare(row, { waiting: Number(waiting), destination }) > 0)
  const page = start < 0 ? [] : rows.slice(start, start + limit)
  const [seen, sites] = await Promise.all([
    Promise.all(page.map(({ places }) => lookAt(readKeys, places, nowMs))),
    Promise.all(page.map((row) => siteOf(row.destination))),
  ])
  if (seen.includes(null)) return null
  const destinations = page.map((row, at): Destination => {
    const { deferred, oldestAtMs, code, response } = seen[at] as Seen
    return {
      domain: row.destination,
      site: sites[at] ?? null,
      waiting: row.waiting,
      deferred,
      held: held.has(row.destination) ? row.waiting : 0,
      oldestAt: oldestAtMs === null ? null : formatInstant(oldestAtMs),
      lastCode: code,
      // A server may name another recipient than the one it answers.
      lastResponse: response === null ? null : maskAddress(response, ''),
    }
  })
  const last = page.at(-1)
  const isMore = last !== undefined && start + limit < rows.length
  return { destinations, next: isMore ? `${last.waiting}:${last.destination}` : null }
}

/** Items that wait in a lane, those due first; null when the store did not answer. */
export async function readLane(readKeys: ReadKeys, place: LanePlace, count: number): Promise<readonly string[] | null> {
  const lists = await readKeys('zrange', [{ ...keyOfLane(place), args: [0, count - 1] }])
  return lists?.[0] ?? null
}

interface Seen {
  readonly deferred: number
  readonly oldestAtMs: number | null
  readonly code: number | null
  readonly response: string | null
}

/** The details of a destination's mail. */
async function lookAt(readKeys: ReadKeys, places: readonly LanePlace[], nowMs: number): Promise<Seen | null> {
  const later = `(${nowMs + CLOCKS_APART_MS}`
  const each = (...args: (string | number)[]) => places.map((place) => ({ ...keyOfLane(place), args }))
  const [counts, first, deferred] = await Promise.all([
    readKeys('zcount', each(later, '+inf')),
    readKeys('zrange', each(0, OLDEST_ITEMS - 1)),
    readKeys('zrangebyscore', each(later, '+inf', 'LIMIT', 0, ANSWERED_ITEMS)),
  ])
  if (counts === null || first === null || deferred === null) return null
  const all = [...first, ...deferred].flat()
  const oldestAtMs = all.reduce<number | null>((least, item) => {
    const atMs = msOf(parseAttemptItem(item).messageId)
    return least === null || atMs < least ? atMs : least
  }, null)
  const answered = await readAnswered(
    readKeys,
    places.flatMap(({ shard }, at) => (deferred[at] ?? []).map((item) => ({ shard, item }))),
  )
  if (answered === null) return null
  return { deferred: counts.reduce((sum, count) => sum + count, 0), oldestAtMs, ...answered }
}

/** The last reply among the items. */
async function readAnswered(
  readKeys: ReadKeys,
  items: readonly { shard: number; item: string }[],
): Promise<Pick<Seen, 'code' | 'response'> | null> {
  const reads = items.map(({ shard, item }) => {
    const { serverId, segment, short, recipient } = parseAttemptItem(item)
    const { key, fields } = new MessageRows(shard, { serverId, segment }).statusFact({ short, recipient })
    return { shard, key, args: fields }
  })
  const rows = await readKeys('hget', reads)
  if (rows === null) return null
  let last = { occurredAtMs: 0, code: null as number | null, response: null as string | null }
  for (const [at, row] of rows.entries()) {
    const { events } = unpackStatus(row, msOf(parseAttemptItem(items[at]?.item ?? '').messageId))
    const event = events.at(-1)
    if (event !== undefined && 'response' in event && event.occurredAtMs > last.occurredAtMs) last = event
  }
  return { code: last.code, response: last.response }
}

const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard)

function keyOfLane({ shard, lane }: LanePlace): { shard: number; key: string } {
  return { shard, key: laneKey(shard, lane) }
}

function isDelivery(lane: string): boolean {
  return lane === LANES.relay || lane.startsWith(`${LANES.deliver}/`)
}

function destinationOf(lane: string): string {
  return lane === LANES.relay ? lane : lane.slice(LANES.deliver.length + 1)
}

/** Larger destinations first, equal ones by name. */
function compare(a: { waiting: number; destination: string }, b: { waiting: number; destination: string }): number {
  return b.waiting - a.waiting || (a.destination < b.destination ? -1 : a.destination > b.destination ? 1 : 0)
}
