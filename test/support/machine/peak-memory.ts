/** peak-memory - the most memory that this process holds while a piece of work goes on, as Linux counts it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'

const STATUS = '/proc/self/status'
const RESET = '/proc/self/clear_refs'
/** Resets the peak to what is held now (proc(5)). */
const RESET_PEAK = '5'

/** Why it cannot be watched here; false where it can. */
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
