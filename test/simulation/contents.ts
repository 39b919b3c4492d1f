/** contents - reads the simulated store directly, past all faults. */
import type { Entry, Fact } from '../../cluster/behaviour.ts'
import { claimsKey, countersKey, inboxKey, laneKey } from '../../cluster/keyspace.ts'
import { withoutSum } from '../../cluster/sum.ts'
import { LANES_USED } from './client.ts'
import { SHARDS } from './process.ts'
import type { Simulation } from './simulation.ts'

const ALL = 1_000_000

async function one(sim: Simulation, shard: number, fact: Fact): Promise<unknown> {
  sim.base.nowMs = sim.storeMs()
  return (await sim.base.read(shard, [fact]))?.[0]
}

export async function hashAt(sim: Simulation, shard: number, key: string): Promise<ReadonlyMap<string, string>> {
  return (await one(sim, shard, { read: 'hash', key })) as ReadonlyMap<string, string>
}

export async function streamAt(sim: Simulation, shard: number, key: string): Promise<readonly Entry[]> {
  return (await one(sim, shard, { read: 'range', key, from: '-', to: '+', count: ALL })) as readonly Entry[]
}

export async function laneAt(
  sim: Simulation,
  shard: number,
  lane: string,
): Promise<readonly (readonly [string, number])[]> {
  const key = laneKey(shard, lane)
  const fact: Fact = { read: 'sorted', key, min: 0, max: Number.MAX_SAFE_INTEGER, count: ALL }
  return (await one(sim, shard, fact)) as readonly (readonly [string, number])[]
}

export async function countersAt(sim: Simulation, shard: number): Promise<ReadonlyMap<string, string>> {
  const stored = await hashAt(sim, shard, countersKey(shard))
  return new Map([...stored].map(([owner, packed]) => [owner, withoutSum(packed, 'counters')]))
}

/**
 * The remaining work of all shards (items, claims, mailbox entries), and the time at which the earliest item is due.
 */
export async function leftOver(sim: Simulation): Promise<{ what: readonly string[]; earliestMs: number }> {
  const what: string[] = []
  let earliestMs = Number.POSITIVE_INFINITY
  for (let shard = 0; shard < SHARDS; shard += 1) {
    for (const lane of sim.observer.ungranted.has(shard) ? [] : LANES_USED)
      for (const [item, score] of await laneAt(sim, shard, lane)) {
        what.push(`item ${item} in ${lane}, due ${score}`)
        earliestMs = Math.min(earliestMs, score)
      }
    for (const [item, row] of await hashAt(sim, shard, claimsKey(shard))) what.push(`claim ${item} ${row}`)
    for (const of of ['mailbox', 'outcomes'] as const) {
      const entries = await streamAt(sim, shard, inboxKey(shard, of))
      if (entries.length > 0) what.push(`shard ${shard}: ${entries.length} entries in ${of}`)
    }
  }
  return { what, earliestMs }
}
