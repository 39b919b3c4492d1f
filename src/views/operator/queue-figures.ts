/**
 * queue-figures - how much waits to be delivered, by site and age, for a monitor
 *
 * The fullest destinations by name, the others together, so that there are never more labels than that. Only the first
 * items of each lane of a destination are read for their age; the age of the others is unknown.
 *
 * Spec queue.figures
 */

import { msOf } from '../../../cluster/id.ts'
import { parseAttemptItem } from '../../state/message/item.ts'
import type { ReadKeys } from '../read-keys.ts'
import { makeTtlCache } from '../ttl-cache.ts'
import { countDestinations, readLane } from './queue.ts'

/** Destinations listed by name, and lanes read for each. */
const DESTINATIONS_MAX = 20
const LANES_MAX = 16
/** Items read of a lane. */
const ITEMS_MAX = 200
/** A look serves everybody who asks within this time. */
const FRESH_MS = 15_000

const MINUTE_MS = 60_000
const AGES: readonly [name: string, belowMs: number][] = [
  ['5m', 5 * MINUTE_MS],
  ['1h', 60 * MINUTE_MS],
  ['6h', 360 * MINUTE_MS],
  ['24h', 1440 * MINUTE_MS],
]
const OLDER = 'older'
const UNKNOWN = 'unknown'
const OTHERS = 'others'

export interface QueueFigure {
  readonly site: string
  /** Waiting for less than that, by name. */
  readonly age: string
  readonly recipients: number
}

export interface QueueFigureDeps {
  readonly readKeys: ReadKeys
  readonly nowMs: () => number
  readonly siteOf: (destination: string) => Promise<string | null>
}

/** Makes the reader, which reads at most every 15 seconds; while the store is unavailable the last result stays. */
export function makeQueueFigures(deps: QueueFigureDeps): () => Promise<readonly QueueFigure[]> {
  return makeTtlCache<readonly QueueFigure[]>({
    first: [],
    freshMs: FRESH_MS,
    nowMs: deps.nowMs,
    look: () => lookAt(deps),
  })
}

async function lookAt({ readKeys, nowMs, siteOf }: QueueFigureDeps): Promise<QueueFigure[] | null> {
  const counted = await countDestinations(readKeys)
  if (counted === null) return null
  const rows = [...counted].filter(([, { waiting }]) => waiting > 0).sort(([, a], [, b]) => b.waiting - a.waiting)
  const figures = new Map<string, QueueFigure>()
  const add = (site: string, age: string, recipients: number) => {
    const known = figures.get(`${site} ${age}`)?.recipients ?? 0
    if (recipients > 0) figures.set(`${site} ${age}`, { site, age, recipients: known + recipients })
  }
  for (const [destination, { waiting, places }] of rows.slice(0, DESTINATIONS_MAX)) {
    const lists = await Promise.all(places.slice(0, LANES_MAX).map((place) => readLane(readKeys, place, ITEMS_MAX)))
    const items = lists.flatMap((list) => list ?? [])
    const site = (await siteOf(destination)) ?? destination
    for (const item of items) add(site, ageOf(nowMs() - msOf(parseAttemptItem(item).messageId)), 1)
    add(site, UNKNOWN, waiting - items.length)
  }
  for (const [, { waiting }] of rows.slice(DESTINATIONS_MAX)) add(OTHERS, UNKNOWN, waiting)
  return [...figures.values()]
}

function ageOf(ageMs: number): string {
  return AGES.find(([, belowMs]) => ageMs < belowMs)?.[0] ?? OLDER
}
