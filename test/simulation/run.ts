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
import { drain } from './peace.ts'
import { type Bug, Simulation, WORKERS } from './simulation.ts'

const STEPS = 2_000

export interface SimResult {
  readonly seed: number
  readonly hash: string
  readonly trace: readonly string[]
  readonly violations: readonly string[]
  readonly commits: number
  readonly accepted: number
}

/** Runs one seed: everything that happened, and what must not have. */
export async function simulate(seed: number, bug: Bug | null = null): Promise<SimResult> {
  const sim = new Simulation(seed, bug)
  await runAll(sim)
  const hash = createHash('sha256').update(sim.trace.join('\n')).digest('hex')
  const accepted = sim.clients.asks.filter(({ name, result }) => name === 'accept' && result?.kind === 'answer').length
  const { observer, trace } = sim
  return { seed, hash, trace, violations: observer.violations, commits: observer.commits, accepted }
}

async function runAll(sim: Simulation): Promise<void> {
  for (let n = 0; n < WORKERS; n += 1) sim.startProcess()
  for (let step = 0; step < STEPS && sim.observer.violations.length === 0; step += 1) {
    await chaosStep(sim)
    await settle()
  }
  if (sim.observer.violations.length > 0) return
  await drain(sim)
  await checkAll(sim)
}
