/** peace - after the chaos: everything heals, everything under way ends, until nothing is left to do. */
import { setImmediate as settle } from 'node:timers/promises'
import { deliverEffect, hear } from './chaos.ts'
import { unreportedLosses } from './check.ts'
import { goOn } from './cluster/failovers.ts'
import { leftOver } from './contents.ts'
import { deliver } from './delivery.ts'
import { resume } from './faults.ts'
import { LASTING } from './observer.ts'
import { isHopeless, SHARDS } from './process.ts'
import type { Simulation } from './simulation.ts'

const ROUNDS_MAX = 6_000
const ROUNDS_BETWEEN_LOOKS = 40
/**
 * Effects in flight take their time. A process that considers another one dead must receive its heartbeat eventually.
 */
const ROUND_MS = 5
/** For work that is due later than this, the store's clock jumps forward. */
const PATIENCE_MS = 2_000
/** By then every process has compared its shards with the store, also one that is alone: every tenth heartbeat. */
const COMPARED_MS = 40_000

/** Heals all faults and continues until nothing is left. Work that never ends is a violation. */
export async function drain(sim: Simulation): Promise<void> {
  sim.note('peace')
  sim.faults = 0
  sim.throwTimers = 0
  sim.fullUntilMs = 0
  for (const process of sim.processes) {
    process.cutOff.untilMs = 0
    if (process.ill !== null) process.ill.untilMs = 0
    if (process.state === 'paused') resume(sim, process)
  }
  const comparedAtMs = sim.time.nowMs + COMPARED_MS
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    await peaceRound(sim)
    if (sim.observer.violations.length > 0) return
    if (round % ROUNDS_BETWEEN_LOOKS === 0 && (await isOver(sim, comparedAtMs))) return
  }
  const { what } = await leftOver(sim)
  sim.observer.violated(
    `Not drained: ${sim.clients.open} asks open, ${(await unowned(sim)).length} shards unowned; ${what.slice(0, 5).join('; ')}`,
  )
}

async function peaceRound(sim: Simulation): Promise<void> {
  const { network, time } = sim
  goOn(sim, true)
  const isQuiet = network.requests.length === 0 && network.answers.length === 0 && sim.orders.sending.length === 0
  for (const order of sim.orders.sending) while (order.commands.length > 0) sim.orders.advance(order)
  for (let left = network.requests.length; left > 0; left -= 1) await deliver(sim, network.takeRequest(0))
  for (const answer of [...network.answers]) network.complete(answer)
  while (network.said.length > 0) hear(sim, 0)
  for (const process of sim.processes)
    for (const effect of process.effects) {
      if (isHopeless(effect.performance)) effect.fail(new Error('The effect failed on purpose'))
      else deliverEffect(sim, process, effect)
    }
  await settle()
  const clocks = sim.awakeClocks()
  for (const timer of time.dueTimers(clocks)) if (time.timers.has(timer)) time.call(timer)
  await settle()
  const nextMs = time.nextMs(clocks)
  if (!isQuiet) time.nowMs += ROUND_MS
  else if (nextMs !== Number.POSITIVE_INFINITY) time.nowMs = Math.max(time.nowMs, nextMs)
}

async function isOver(sim: Simulation, comparedAtMs: number): Promise<boolean> {
  const { what, earliestMs } = await leftOver(sim)
  if (mayJump(sim, what) && earliestMs !== Number.POSITIVE_INFINITY && earliestMs > sim.storeMs() + PATIENCE_MS) {
    sim.storeOffsetMs += earliestMs - sim.storeMs()
    sim.note('clock to the next item')
  }
  // A commit of a timer has been applied, and its replicas are being waited for.
  if (sim.network.requests.some(({ method }) => method === 'wait')) return false
  if (what.length > 0 || sim.clients.open > 0 || sim.processes.some(({ state }) => state === 'stopping')) return false
  if (unreportedLosses(sim).length > 0 && sim.time.nowMs < comparedAtMs) return false
  return (await unowned(sim)).length === 0
}

/**
 * Whether the store's clock may jump to the next item. No claim that lasts longer than any attempt ends by a jump while
 * its attempt waits for a heartbeat, or its outcome for the next owner.
 */
function mayJump({ network, processes }: Simulation, what: readonly string[]): boolean {
  const isPerforming = processes.some(({ effects }) => effects.some(({ lane }) => lane.startsWith(LASTING)))
  const isHandingIn = processes.some(({ isAwake, n }) => isAwake && [...network.handingIn.values()].includes(n))
  return !isPerforming && !isHandingIn && !what.some((one) => one.endsWith('entries in outcomes'))
}

/** Shards that no living process runs under the token in the store. */
async function unowned(sim: Simulation): Promise<readonly number[]> {
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard)
  const metas = (await sim.base.metas(shards)) ?? []
  return shards.filter((shard) => {
    const owner = sim.processes.find(({ worker, state }) => worker.id === metas[shard]?.owner && state === 'running')
    return owner?.shardOf(shard)?.token !== metas[shard]?.token
  })
}
