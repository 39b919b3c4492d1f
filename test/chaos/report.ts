/** report - the output of a chaos run, and its failures. */
import type { ChaosOptions, ChaosReport } from './run.ts'

const SHOWN_MAX = 5
/** Of the requests during a rolling restart. */
const ROLL_REFUSED_MAX = 0.001

/** The run in a few lines. */
export function describeChaos(report: ChaosReport): string {
  const { seed, done, messages, lost, doubled, inDoubt, refused, recoveredMs, miscounted, fencedWrites } = report
  const kills = done.http + done.actors + done.redis + done.all + done.storm
  const others = `frozen ${done.stop}, rolling restarts ${done.roll}, rounds of cuts ${done.cut}`
  return [
    `seed ${seed}: ${kills} kills (http ${done.http}, actors ${done.actors + done.storm}, Redis ${done.redis}, all ${done.all}), ${others}`,
    `messages ${messages}, lost ${lost}, duplicates ${doubled}, in doubt ${inDoubt}, refused with 503 ${refused}`,
    `recovery p50 ${percentile(recoveredMs, 0.5)} ms, p99 ${percentile(recoveredMs, 0.99)} ms`,
    `rolling restarts: ${report.rolled.refused} of ${report.rolled.requests} refused`,
    `counters that differ ${miscounted.length}, written by a fenced owner ${fencedWrites}, given up ${report.abandoned}`,
  ].join('\n')
}

/** The broken promises. A run that did less than was requested has failed too. */
export function failuresOf(report: ChaosReport, options: ChaosOptions): string[] {
  const { done } = report
  const failures: string[] = []
  const none = (what: string, value: number | readonly string[]): void => {
    const count = typeof value === 'number' ? value : value.length
    const shown = typeof value === 'number' ? '' : `: ${value.slice(0, SHOWN_MAX).join('; ')}`
    if (count > 0) failures.push(`${what}: ${count}${shown}`)
  }
  none('Lost', report.lost)
  none('Doubled', report.doubled)
  none('Miscounted', report.miscounted)
  none('Recipients without exactly one outcome', report.unclear)
  none('Torn shards', report.torn)
  none('Shown otherwise by the API', report.unshown)
  none('Written by a fenced owner', report.fencedWrites)
  none('Without an explanation', report.unexplained)
  none('Processes that ended', report.ended)
  const wanted = [
    [done.http + done.actors + done.redis, options.kills],
    [done.all, options.falls],
    [done.stop, options.stops],
    [done.roll, options.rolls],
    [done.cut, options.cuts],
    [done.storm, options.storms],
  ] as const
  if (wanted.some(([is, must]) => is < must)) failures.push('The run did not reach the number of its faults')
  const { requests, refused } = report.rolled
  if (refused > ROLL_REFUSED_MAX * requests) failures.push(`Refused in rolling restarts: ${refused} of ${requests}`)
  const slowest = report.recoveredMs[report.recoveredMs.length - 1] ?? 0
  if (slowest > options.recoveryMsMax) failures.push(`Served again only after ${Math.round(slowest)} ms`)
  return failures
}

function percentile(sorted: readonly number[], share: number): number {
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0)
}
