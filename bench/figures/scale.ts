/**
 * scale - the gain from further processes with the actors: one that listens, and 1, 2, 4 that decide
 *
 * Everything shares the machine, the generator and Redis too: beyond its cores more processes can only show what they
 * cost. Processor time per message is the figure to compare.
 */

import { apart } from '../contestants/contestant.ts'
import { findGenerator } from '../load/wrk.ts'
import { formatNumber, formatTable } from '../table.ts'
import { measure } from './accept.ts'

const WORKERS = [1, 2, 4]
const MICROSECONDS = 10_000

/** Measures and prints one line for each number of workers. */
export async function benchScale(seconds: number, warmUpSeconds: number): Promise<void> {
  const generator = await findGenerator()
  const rows = [['actors', 'messages/s', 'p50 ms', 'p99 ms', 'host µs', 'redis µs', 'stolen %']]
  for (const workers of WORKERS) {
    const { measured, hostPercent, storePercent, stolenPercent } = await measure(
      apart(workers),
      { seconds, warmUpSeconds, isProfiled: false },
      generator,
    )
    const { perSecond, p50Ms, p99Ms } = measured
    const cost = (percent: number | null): string =>
      formatNumber(percent === null ? null : (percent * MICROSECONDS) / perSecond)
    rows.push([
      String(workers),
      formatNumber(perSecond),
      formatNumber(p50Ms, 1),
      formatNumber(p99Ms, 1),
      cost(hostPercent),
      cost(storePercent),
      formatNumber(stolenPercent, 1),
    ])
  }
  console.log(formatTable(rows))
}
