/**
 * stall - the time for which this process was ready to run and got no processor, which bounds on the service leave out
 *
 * If a timer is late by more than this process computed meanwhile, the rest of the delay was caused by other
 * processes. Work of the process itself that takes too long is no stall, and counts.
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
      // Of a stall that began before and continues afterwards, the part in between.
      const shared = stalls.map(({ atMs, ms }) => Math.min(atMs, toMs) - Math.max(atMs - ms, fromMs))
      return shared.reduce((sum, ms) => sum + Math.max(0, ms), 0)
    },
  }
}
