/**
 * stall - how long this process wanted the processor and did not get it: a bound on what the service does leaves that
 * out
 *
 * A timer that is late by more than this process computed meanwhile was late because of others. What the process itself
 * does for too long is no stall, and counts.
 */
import type { Test } from 'tap'

const TICK_MS = 10

export interface StallMeter {
  /** Milliseconds of standing still from one instant to another (now), by `performance.now()`. */
  during(fromMs: number, toMs?: number): number
}

/** Measures until the test ends. */
export function watchStalls(test: Pick<Test, 'teardown'>): StallMeter {
  const stalls: { readonly atMs: number; readonly ms: number }[] = []
  let last = { atMs: performance.now(), cpu: process.cpuUsage() }
  const look = (): void => {
    const atMs = performance.now()
    const { user, system } = process.cpuUsage(last.cpu)
    const ms = atMs - last.atMs - TICK_MS - (user + system) / 1000
    if (ms > TICK_MS) stalls.push({ atMs, ms })
    last = { atMs, cpu: process.cpuUsage() }
  }
  const timer = setInterval(look, TICK_MS)
  test.teardown(() => clearInterval(timer))
  return {
    during(fromMs, toMs = Number.POSITIVE_INFINITY) {
      look()
      // Of a stall that has begun before and goes on afterwards, what lies between.
      const shared = stalls.map(({ atMs, ms }) => Math.min(atMs, toMs) - Math.max(atMs - ms, fromMs))
      return shared.reduce((sum, ms) => sum + Math.max(0, ms), 0)
    },
  }
}
