/**
 * told-cost - a process of the runner's writes what it has cost: a row for each of its files.
 */
import { appendFileSync } from 'node:fs'
import { cpuMsSpent } from './cpu-time.ts'

let told = { ms: 0, cpuMs: 0 }

/** Appends a row to `path`: what was spent since the one before, or since the process was started. */
export function tellCost(path: string): void {
  const now = { ms: performance.now(), cpuMs: cpuMsSpent() }
  const row = { seconds: (now.ms - told.ms) / 1000, cpuSeconds: (now.cpuMs - told.cpuMs) / 1000 }
  told = now
  appendFileSync(path, `${JSON.stringify(row)}\n`)
}
