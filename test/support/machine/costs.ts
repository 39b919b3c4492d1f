/**
 * costs - what each file of a test run takes, as it was measured last: in which order they start, how many at once,
 * which share a process, and which have become too slow
 *
 * The table lies in `test/fixtures/costs.tsv`: name, seconds, and seconds of the processor. `COSTS=write npm test`
 * writes it anew.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './root.ts'

const PATH = join(ROOT, 'test/fixtures/costs.tsv')
/** What takes less is not in the table. */
const KEPT_S_MIN = 2
const SLOWEST = 10
/** A file that takes longer on a quiet machine is to be made faster, or to be split. */
export const FILE_S_MAX = 30

/** What a run must have of all work of the processors; the rest is the runner, and what was killed. */
const OWN_SHARE_MIN = 0.6

/** Of one file, its children among it. */
export interface Cost {
  readonly name: string
  readonly seconds: number
  readonly cpuSeconds: number
}

/** What is not in the table. */
const USUAL: Omit<Cost, 'name'> = { seconds: 1, cpuSeconds: 1 }

/** Costs by the name of a run. */
export function readCosts(text = readFileSync(PATH, 'utf8')): Map<string, Cost> {
  const rows = text.trimEnd().split('\n').slice(1)
  const costs = rows.map((row): Cost => {
    const [name = '', seconds, cpuSeconds] = row.split('\t')
    return { name, seconds: Number(seconds), cpuSeconds: Number(cpuSeconds) }
  })
  return new Map(costs.map((cost) => [cost.name, cost]))
}

/** The table's cost of a run, or the usual one. */
export function costOf(costs: ReadonlyMap<string, Cost>, name: string): Cost {
  return costs.get(name) ?? { name, ...USUAL }
}

/** Puts measured costs in place of the table's. */
export function writeCosts(measured: readonly Cost[]): void {
  const kept = bySeconds(measured).filter(({ seconds }) => seconds >= KEPT_S_MIN)
  const rows = kept.map(({ name, seconds, cpuSeconds }) => `${name}\t${seconds.toFixed(1)}\t${cpuSeconds.toFixed(1)}\n`)
  writeFileSync(PATH, `name\tseconds\tprocessor seconds\n${rows.join('')}`)
}

/**
 * Puts files together that share a process, so many as take `secondsMax` at most; a longer one is alone. The longest
 * is the first of its process.
 */
export function packed<File>(files: readonly File[], secondsOf: (file: File) => number, secondsMax: number): File[][] {
  const bins: { readonly files: File[]; seconds: number }[] = []
  for (const file of [...files].sort((one, other) => secondsOf(other) - secondsOf(one))) {
    const seconds = secondsOf(file)
    const bin = bins.find((one) => one.seconds + seconds <= secondsMax)
    if (bin === undefined) bins.push({ files: [file], seconds })
    else {
      bin.files.push(file)
      bin.seconds += seconds
    }
  }
  return bins.map(({ files }) => files)
}

/** The longest first. */
export function bySeconds(costs: readonly Cost[]): Cost[] {
  return [...costs].sort((one, other) => other.seconds - one.seconds)
}

/** What a whole run took; of the processors also what did not belong to it. */
export interface Whole {
  readonly seconds: number
  readonly busySeconds: number
  readonly processes: number
}

/** Whether the machine did little else: seconds that were measured beside other work say nothing of a file. */
export function isTrue(measured: readonly Cost[], { busySeconds }: Pick<Whole, 'busySeconds'>): boolean {
  return cpuSecondsOf(measured) >= busySeconds * OWN_SHARE_MIN
}

/** Lines for the end of a run: the whole, the slowest, and a warning for each that is too slow. */
export function describeCosts(measured: readonly Cost[], whole: Whole): string[] {
  const slowest = bySeconds(measured).slice(0, SLOWEST)
  const tooSlow = measured.filter(({ seconds }) => seconds > FILE_S_MAX)
  const ours = Math.round(cpuSecondsOf(measured))
  return [
    `${Math.round(whole.seconds)} s for ${whole.processes} processes, which took ${ours} s of the processors; the slowest:`,
    ...slowest.map(
      (cost) => `  ${cost.seconds.toFixed(1)} s (${cost.cpuSeconds.toFixed(1)} s of a processor) ${cost.name}`,
    ),
    ...(isTrue(measured, whole)
      ? tooSlow.map(
          ({ name, seconds }) =>
            `WARNING: ${name} took ${Math.round(seconds)} s, ${FILE_S_MAX} s at most: make it faster, or split it`,
        )
      : [
          `The processors were busy for ${Math.round(whole.busySeconds)} s: the machine did much else, no file is blamed`,
        ]),
  ]
}

function cpuSecondsOf(measured: readonly Cost[]): number {
  return measured.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
}

/** Seconds that all processors have been busy since the machine started, with whatever it was. */
export function busySeconds(): number {
  return cpus().reduce((sum, { times }) => sum + (times.user + times.nice + times.sys + times.irq) / 1000, 0)
}
