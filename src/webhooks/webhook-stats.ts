/**
 * webhook-stats - pending deliveries of webhooks with the age of the oldest, for the shards that this process owns
 *
 * Two classes: `healthy`, whose last attempt was answered with a 2xx, and `failing`. A webhook that was not attempted
 * here yet is `failing` if its oldest pending delivery has failed, otherwise `healthy`. A retry may be due long after
 * later deliveries, so the oldest one is looked for in the whole lane; where more waits than a look may read, the
 * fullest lanes are read at both ends alone.
 *
 * Keys: `due`, `due:<lane>`, `delivery:<webhook>:<slice>`
 *
 * Spec webhook.backlog
 */

import { msOf, shortId } from '../../cluster/id.ts'
import { dueKey, laneKey } from '../../cluster/keyspace.ts'
import { unlessDamaged } from '../../cluster/sum.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../schemas/limits.ts'
import type { Gauges } from '../process/gauges.ts'
import { deliveryKey } from '../state/keys.ts'
import { unpackRecord } from '../state/webhook/delivery.ts'
import { POST_LANE, parseDeliveryItem, webhookOfLane } from '../state/webhook/item.ts'
import type { ReadKeys } from '../views/read-keys.ts'
import { makeTtlCache } from '../views/ttl-cache.ts'

/** How a webhook fared at its last attempt here. */
export type Standing = 'answering' | 'failing' | 'unknown'

/** Maximum number of webhooks of one shard that are checked, those due first. */
const LANES_MAX = 2_000
/** Items read in one look; of a lane beyond them this many at each end. */
const ITEMS_MAX = WEBHOOK_BACKLOG_MAX
const END_ITEMS = 50
/** Items of one read, and of one round trip. */
const PAGE_ITEMS = 1_000
const TRIP_ITEMS = 10_000
/** A look serves everybody who asks within this time. */
const FRESH_MS = 3_000

export interface WebhookStatsDeps {
  readonly readKeys: ReadKeys
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** The shards owned by this process. */
  readonly shards: () => readonly number[]
  readonly standingOf: (lane: string) => Standing
}

/** Backlog and age of the oldest waiting delivery by class, by name of the figure. */
export type WebhookStats = () => Promise<Gauges>

/** A webhook for which something waits. */
interface Backlog {
  readonly shard: number
  readonly lane: string
  readonly waiting: number
}

/** Makes the reader, which reads at most every three seconds; while the store is unavailable the last result stays. */
export function makeWebhookStats(deps: WebhookStatsDeps): WebhookStats {
  return makeTtlCache({ first: formatFigures([]), freshMs: FRESH_MS, nowMs: deps.nowMs, look: () => lookAt(deps) })
}

async function lookAt(deps: WebhookStatsDeps): Promise<Gauges | null> {
  const { readKeys } = deps
  const backlogs = await readBacklogs(readKeys, deps.shards())
  const oldest = backlogs === null ? null : await readOldest(readKeys, backlogs)
  if (backlogs === null || oldest === null) return null
  const items = backlogs.map(({ shard, lane, waiting }, at) => ({ shard, lane, waiting, item: oldest.get(at) }))
  const found = items.flatMap(({ item, ...rest }) => (item === undefined ? [] : [{ ...rest, item }]))
  const records = found.map(({ shard, lane, item }) => {
    const { slice, deliveryId } = parseDeliveryItem(item)
    return { shard, key: deliveryKey(shard, webhookOfLane(lane), slice), args: [shortId(deliveryId)] }
  })
  const rows = await readKeys('hget', records)
  if (rows === null) return null
  return formatFigures(
    found.map(({ lane, waiting, item }, at) => {
      const createdAtMs = msOf(parseDeliveryItem(item).deliveryId)
      const record = unlessDamaged(() => unpackRecord(rows[at] ?? null, createdAtMs))
      const hasFailed = (record?.failures ?? 0) > 0
      const standing = deps.standingOf(lane)
      const isFailing = standing === 'unknown' ? hasFailed : standing === 'failing'
      return { isFailing, waiting, ageMs: deps.nowMs() - createdAtMs }
    }),
  )
}

/** Webhooks for which something waits, the fullest last. */
async function readBacklogs(readKeys: ReadKeys, shards: readonly number[]): Promise<Backlog[] | null> {
  const dues = shards.map((shard) => ({ shard, key: dueKey(shard), args: [0, LANES_MAX - 1] }))
  const lists = await readKeys('zrange', dues)
  if (lists === null) return null
  const places = lists.flatMap((lanes, at) =>
    lanes.filter((lane) => lane.startsWith(`${POST_LANE}/`)).map((lane) => ({ shard: shards[at] as number, lane })),
  )
  const counts = await readKeys(
    'zcard',
    places.map(({ shard, lane }) => ({ shard, key: laneKey(shard, lane) })),
  )
  if (counts === null) return null
  return places
    .map((place, at) => ({ ...place, waiting: counts[at] ?? 0 }))
    .filter(({ waiting }) => waiting > 0)
    .sort((one, other) => one.waiting - other.waiting)
}

/** The item of the oldest delivery by place in the backlogs. */
async function readOldest(readKeys: ReadKeys, backlogs: readonly Backlog[]): Promise<Map<number, string> | null> {
  const oldest = new Map<number, string>()
  for (const trip of tripsOf(piecesOf(backlogs))) {
    const lists = await readKeys(
      'zrange',
      trip.map(({ shard, key, first, last }) => ({ shard, key, args: [first, last] })),
    )
    if (lists === null) return null
    for (const [index, { at }] of trip.entries()) {
      for (const item of lists[index] ?? []) {
        const known = oldest.get(at)
        // Names of items sort by their deliveries, and these by time.
        if (known === undefined || item < known) oldest.set(at, item)
      }
    }
  }
  return oldest
}

/** One read of a lane: ranks of items. */
interface Piece {
  readonly at: number
  readonly shard: number
  readonly key: string
  readonly first: number
  readonly last: number
  readonly items: number
}

function* piecesOf(backlogs: readonly Backlog[]): Generator<Piece> {
  let left = ITEMS_MAX
  for (const [at, { shard, lane, waiting }] of backlogs.entries()) {
    const key = laneKey(shard, lane)
    if (waiting > left) {
      yield { at, shard, key, first: 0, last: END_ITEMS - 1, items: END_ITEMS }
      yield { at, shard, key, first: -END_ITEMS, last: -1, items: END_ITEMS }
      continue
    }
    left -= waiting
    for (let first = 0; first < waiting; first += PAGE_ITEMS)
      yield { at, shard, key, first, last: first + PAGE_ITEMS - 1, items: Math.min(PAGE_ITEMS, waiting - first) }
  }
}

function* tripsOf(pieces: Iterable<Piece>): Generator<readonly Piece[]> {
  let trip: Piece[] = []
  let items = 0
  for (const piece of pieces) {
    trip.push(piece)
    items += piece.items
    if (items < TRIP_ITEMS) continue
    yield trip
    trip = []
    items = 0
  }
  if (trip.length > 0) yield trip
}

function formatFigures(
  webhooks: readonly { readonly isFailing: boolean; readonly waiting: number; readonly ageMs: number }[],
): Gauges {
  const of = (failing: boolean) => webhooks.filter(({ isFailing }) => isFailing === failing)
  const backlog = (failing: boolean) => of(failing).reduce((sum, { waiting }) => sum + waiting, 0)
  const seconds = (failing: boolean) => of(failing).reduce((most, { ageMs }) => Math.max(most, ageMs), 0) / 1000
  return {
    webhookBacklogHealthy: backlog(false),
    webhookBacklogFailing: backlog(true),
    webhookOldestSecondsHealthy: seconds(false),
    webhookOldestSecondsFailing: seconds(true),
  }
}
