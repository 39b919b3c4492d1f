/**
 * queue - what waits to be delivered, by destination over all shards
 *
 * Every shard's list of lanes is read, then how much lies in each; only for the destinations of the page more is looked at,
 * and of each of their lanes only the first items.
 *
 * Keys: `due`, `due:<lane>`, `holds`, `status:<server>:<segment>`
 *
 * Spec queue.list
 */

import type { ChainableCommander, Redis } from 'ioredis'
import { msOf, SHARDS } from '../../../cluster/id.ts'
import { dueKey, laneKey } from '../../../cluster/keyspace.ts'
import type { Destination, Queue } from '../../../schemas/queue.ts'
import { maskAddress } from '../../mail/reply.ts'
import { holdsKey, statusKey } from '../../state/keys.ts'
import { LANES, parseAttemptItem } from '../../state/message/item.ts'
import { statusField, unpackStatus } from '../../state/message/status.ts'
import { formatInstant } from '../instant.ts'

/** Lanes of one shard that are counted: the ones that are due first. */
const LANES_MAX = 2000
/** Commands of one round trip. */
const PIPELINE_MAX = 2000
/** Items of a lane that are looked at for the oldest, and put off ones for what was answered last. */
const OLDEST_ITEMS = 100
const ANSWERED_ITEMS = 3
/** What is due within this is due now by the clock of another process; who was put off waits for a minute at least. */
const CLOCKS_APART_MS = 5_000

/** Where mail of a destination lies. */
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
  redis: Redis,
): Promise<Map<string, { waiting: number; places: LanePlace[] }> | null> {
  const lists = await runEach(redis, ALL_SHARDS, (pipeline, shard) => pipeline.zrange(dueKey(shard), 0, LANES_MAX - 1))
  if (lists === null) return null
  const places = lists.flatMap((lanes, shard) =>
    (lanes as string[]).filter(isDelivery).map((lane): LanePlace => ({ shard, lane })),
  )
  const counts = await runEach(redis, places, (pipeline, { shard, lane }) => pipeline.zcard(laneKey(shard, lane)))
  if (counts === null) return null
  const destinations = new Map<string, { waiting: number; places: LanePlace[] }>()
  for (const [at, place] of places.entries()) {
    const destination = destinationOf(place.lane)
    const known = destinations.get(destination) ?? { waiting: 0, places: [] }
    known.waiting += counts[at] as number
    if ((counts[at] as number) > 0) known.places.push(place)
    destinations.set(destination, known)
  }
  return destinations
}

/** A page of the queue, the fullest destinations first; null when the store did not answer. */
export async function readQueue(
  redis: Redis,
  { limit, after, nowMs }: { limit: number; after: string | null; nowMs: number },
  siteOf: (destination: string) => Promise<string | null>,
): Promise<Queue | null> {
  const [counted, holds] = await Promise.all([countDestinations(redis), redis.hkeys(holdsKey()).catch(() => null)])
  if (counted === null || holds === null) return null
  const held = new Set(holds)
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
    Promise.all(page.map(({ places }) => lookAt(redis, places, nowMs))),
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
export async function readLane(redis: Redis, { shard, lane }: LanePlace, count: number): Promise<string[] | null> {
  return redis.zrange(laneKey(shard, lane), 0, count - 1).catch(() => null)
}

interface Seen {
  readonly deferred: number
  readonly oldestAtMs: number | null
  readonly code: number | null
  readonly response: string | null
}

/** What is to be said of a destination's mail. */
async function lookAt(redis: Redis, places: readonly LanePlace[], nowMs: number): Promise<Seen | null> {
  const keys = places.map(({ shard, lane }) => laneKey(shard, lane))
  const later = `(${nowMs + CLOCKS_APART_MS}`
  const [counts, first, deferred] = await Promise.all([
    runEach(redis, keys, (pipeline, key) => pipeline.zcount(key, later, '+inf')),
    runEach(redis, keys, (pipeline, key) => pipeline.zrange(key, 0, OLDEST_ITEMS - 1)),
    runEach(redis, keys, (pipeline, key) => pipeline.zrangebyscore(key, later, '+inf', 'LIMIT', 0, ANSWERED_ITEMS)),
  ])
  if (counts === null || first === null || deferred === null) return null
  const all = [...first, ...deferred].flat() as string[]
  const oldestAtMs = all.reduce<number | null>((least, item) => {
    const atMs = msOf(parseAttemptItem(item).messageId)
    return least === null || atMs < least ? atMs : least
  }, null)
  const answered = await readAnswered(
    redis,
    places.flatMap(({ shard }, at) => (deferred[at] as string[]).map((item) => ({ shard, item }))),
  )
  if (answered === null) return null
  return { deferred: (counts as number[]).reduce((sum, count) => sum + count, 0), oldestAtMs, ...answered }
}

/** What was answered last among the items. */
async function readAnswered(
  redis: Redis,
  items: readonly { shard: number; item: string }[],
): Promise<Pick<Seen, 'code' | 'response'> | null> {
  const rows = await runEach(redis, items, (pipeline, { shard, item }) => {
    const { serverId, segment, short, recipient } = parseAttemptItem(item)
    return pipeline.hget(statusKey(shard, serverId, segment), statusField(short, recipient))
  })
  if (rows === null) return null
  let last = { occurredAtMs: 0, code: null as number | null, response: null as string | null }
  for (const [at, row] of rows.entries()) {
    const { events } = unpackStatus(row as string | null, msOf(parseAttemptItem(items[at]?.item ?? '').messageId))
    const event = events.at(-1)
    if (event !== undefined && 'response' in event && event.occurredAtMs > last.occurredAtMs) last = event
  }
  return { code: last.code, response: last.response }
}

/** Runs one command for each input, in round trips of a bounded size; null when one of them failed. */
/** What a command answers for each input, in pipelines of some thousands; null when the store did not answer. */
export async function runEach<Input>(
  redis: Redis,
  inputs: readonly Input[],
  add: (pipeline: ChainableCommander, input: Input) => ChainableCommander,
): Promise<unknown[] | null> {
  const values: unknown[] = []
  for (let start = 0; start < inputs.length; start += PIPELINE_MAX) {
    const pipeline = redis.pipeline()
    for (const input of inputs.slice(start, start + PIPELINE_MAX)) add(pipeline, input)
    const answers = await pipeline.exec().catch(() => null)
    if (answers === null || answers.some(([error]) => error !== null)) return null
    values.push(...answers.map(([, value]) => value))
  }
  return values
}

const ALL_SHARDS = Array.from({ length: SHARDS }, (_, shard) => shard)

function isDelivery(lane: string): boolean {
  return lane === LANES.relay || lane.startsWith(`${LANES.deliver}/`)
}

function destinationOf(lane: string): string {
  return lane === LANES.relay ? lane : lane.slice(LANES.deliver.length + 1)
}

/** The fullest first, by name where they are even. */
function compare(a: { waiting: number; destination: string }, b: { waiting: number; destination: string }): number {
  return b.waiting - a.waiting || (a.destination < b.destination ? -1 : a.destination > b.destination ? 1 : 0)
}
