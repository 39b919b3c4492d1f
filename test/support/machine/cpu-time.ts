/**
 * cpu-time - how long a piece of work keeps the processor busy: other than wall time, a busy machine does not change
 * it.
 */
import { readFileSync } from 'node:fs'

/** Linux counts processor time in hundredths of a second. */
const TICK_MS = 10

/** Milliseconds of processor time that `work` took. */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

/**
 * Milliseconds of processor time that this process has taken, and those of its children that have ended; without /proc
 * its own alone.
 */
export function cpuMsSpent(): number {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    // utime, stime, cutime and cstime, counted from the state, which is the third.
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0)
  } catch {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
}
