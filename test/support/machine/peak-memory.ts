/** peak-memory - the maximum memory of this process during a piece of work, as Linux counts it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const STATUS = '/proc/self/status'
const RESET = '/proc/self/clear_refs'
/** Resets the peak to the present use (proc(5)). */
const RESET_PEAK = '5'

/** The reason why it cannot be measured here; false if it can. */
export const NO_PEAK = existsSync(RESET) ? false : 'no /proc'

/** Begins to watch. Out: megabytes above what was held at the beginning, at most so far. */
export function watchPeak(): () => number {
  const before = kilobytesOf('VmRSS')
  writeFileSync(RESET, RESET_PEAK)
  return () => (kilobytesOf('VmHWM') - before) / 1024
}

function kilobytesOf(field: 'VmRSS' | 'VmHWM'): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(STATUS, 'utf8'))?.[1])
}
