/**
 * run - runs one seed: chaos (asks, faults, kills; about two thousand steps), then peace (everything heals and drains),
 * then the checks.
 *
 * Whatever a process does between two steps is promises alone, so the same seed gives the same trace.
 */

import { createHash } from 'node:crypto'
import { setImmediate as settle } from 'node:timers/promises'
import { chaosStep } from './chaos.ts'
import { checkAll } from './check.ts'
import { SimCluster } from './cluster/sim-cluster.ts'
import { drain } from './peace.ts'
import { type Bug, Simulation, WORKERS } from './simulation.ts'

const STEPS = 2_000
/** With several primaries, the requests for each primary's time displace other requests. */
const STEPS_OF_SEVERAL = 3_000

export interface SimResult {
  readonly seed: number
  readonly hash: string
  readonly trace: readonly string[]
  readonly violations: readonly string[]
  readonly commits: number
  readonly accepted: number
  readonly failovers: number
  /** Orders that have brought a shard to its target. */
  readonly moves: number
}

/** Runs one seed on this number of primaries. Returns everything that happened, and the violations. */
export async function simulate(seed: number, bug: Bug | null = null, primaries = 1): Promise<SimResult> {
  const sim = new Simulation(seed, bug, primaries)
  await runAll(sim)
  const hash = createHash('sha256').update(sim.trace.join('\n')).digest('hex')
  const accepted = sim.clients.asks.filter(({ name, result }) => name === 'accept' && result?.kind === 'answer').length
  const { observer, trace } = sim
  const failovers = sim.base instanceof SimCluster ? sim.base.failovers : 0
  return {
    seed,
    hash,
    trace,
    violations: observer.violations,
    commits: observer.commits,
    accepted,
    failovers,
    moves: sim.orders.done,
  }
}

async function runAll(sim: Simulation): Promise<void> {
  for (let n = 0; n < WORKERS; n += 1) sim.startProcess()
  const steps = sim.base instanceof SimCluster ? STEPS_OF_SEVERAL : STEPS
  for (let step = 0; step < steps && sim.observer.violations.length === 0; step += 1) {
    await chaosStep(sim)
    await settle()
  }
  if (sim.observer.violations.length > 0) return
  await drain(sim)
  // A violation ends the peace at once. Unfinished work is then no further violation.
  if (sim.observer.violations.length === 0) await checkAll(sim)
}
