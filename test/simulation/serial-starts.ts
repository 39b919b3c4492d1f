/** serial-starts - checks the claims that a commit makes in lanes in which one item runs at a time */
import type { Fact } from '../../cluster/behaviour.ts'
import { parseClaim } from '../../cluster/items/claim.ts'
import { claimsKey, laneKey } from '../../cluster/keyspace.ts'
import type { Commit, Store } from '../../cluster/store.ts'
import { isSerial } from './toy.ts'

/** The number of items of a lane that are checked. */
const LANE_MAX = 1_000
/** A worker's clock that was ahead when it saw a claim lapse may have been set right since. */
const AHEAD_MS = 1_000

/**
 * The violations among the claims that a commit makes in serial lanes: another item is due first, or another worker is
 * performing one.
 */
export async function serialStarts(store: Store, { shard, ops, nowMs }: Commit): Promise<string[]> {
  const found: string[] = []
  const moved = new Set(ops.flatMap(({ key, args }) => (key.startsWith(laneKey(shard, '')) ? args.map(String) : [])))
  for (const { key, write, args } of ops) {
    const row = write === 'HSET' && key === claimsKey(shard) ? parseClaim(String(args[1])) : null
    if (row === null || row.worker === '' || !isSerial(row.lane)) continue
    const item = String(args[0])
    const lane: Fact = { read: 'sorted', key: laneKey(shard, row.lane), min: 0, max: nowMs, count: LANE_MAX }
    const [due, rows] = (await store.read(shard, [lane, { read: 'hash', key: claimsKey(shard) }])) ?? []
    const names = (due as readonly (readonly [string, number])[]).map(([name]) => name)
    const earlier = names.slice(0, names.indexOf(item)).find((name) => !moved.has(name))
    if (earlier !== undefined) found.push(`Started out of order: ${item} before ${earlier}`)
    for (const [other, packed] of rows as ReadonlyMap<string, string>) {
      const theirs = parseClaim(packed)
      if (theirs?.lane !== row.lane || theirs.worker === '' || theirs.worker === row.worker || moved.has(other))
        continue
      if (theirs.untilMs > nowMs + AHEAD_MS)
        found.push(`Two at once in the serial lane ${row.lane}: ${other} and ${item}`)
    }
  }
  return found
}
