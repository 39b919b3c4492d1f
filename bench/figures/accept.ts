/**
 * accept - how many messages a second are accepted, each on disk before its answer, against the floor and a known queue
 *
 * Guarantees: every contestant starts on an empty store of its own with the same settings, and gets the same load; the
 * order changes with each round; answered messages are counted in the store, and for the product once more after the
 * store was killed and has read its file. A count that does not agree fails the run.
 */

import { join } from 'node:path'
import { ROOT } from '../../test/support/machine/root.ts'
import { until } from '../../test/support/machine/until.ts'
import { CONTESTANTS, type Contestant } from '../contestants/contestant.ts'
import { type Host, startHost } from '../contestants/host.ts'
import { readAccepted } from '../contestants/product-figures.ts'
import type { Measured } from '../load/measured.ts'
import { pace } from '../load/pace.ts'
import { CONNECTIONS, findGenerator, load } from '../load/wrk.ts'
import { type BenchStore, startStore } from '../store.ts'
import { formatNumber, formatTable } from '../table.ts'
import { shareOfCore } from '../usage.ts'
import { readProfile, type Share } from './profile.ts'
import { formatVerdicts, type HalfRate, type Result, rowsOf } from './ratio.ts'
import { type Disturbed, undisturbed } from './undisturbed.ts'

export interface AcceptOptions {
  readonly seconds: number
  readonly rounds: number
  /**
   * Load before the measurement: V8 compiles the last functions of a process that works hard after some eight seconds.
   */
  readonly warmUpSeconds: number
  /** Ids of the contestants that take part. */
  readonly only: readonly string[]
  readonly isProfiled: boolean
}

const SETTLE_MS_MAX = 10_000
/** Functions and lines that a profile shows. */
const PLACES = 15

/** Runs the comparison and prints it. Throws Error when a count does not agree. */
export async function benchAccept(options: AcceptOptions): Promise<void> {
  const generator = await findGenerator()
  const contestants = CONTESTANTS.filter(({ id }) => options.only.includes(id))
  const { seconds, warmUpSeconds, rounds } = options
  console.log(
    `accept: ${generator}, ${CONNECTIONS} connections, ${warmUpSeconds} s to warm up, ${seconds} s, ${rounds} rounds\n`,
  )
  const results: Result[] = []
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const contestant = contestants[(turn + round) % contestants.length] as Contestant
      const result = await undisturbed(() => measure(contestant, options, generator), {
        tell: (disturbed) => console.log(`${lineOf(disturbed)}  once more: others had the processor`),
      })
      results.push(result)
      console.log(lineOf(result))
    }
  }
  console.log(`\n${formatTable(rowsOf(results))}\n`)
  console.log(formatVerdicts(results, await measureHalfRate(results, options)))
}

function lineOf(result: Result): string {
  return formatTable(rowsOf([result])).split('\n')[1] ?? ''
}

/** Loads one contestant on a store of its own, and checks its count of accepted messages. */
export async function measure(
  contestant: Contestant,
  { seconds, warmUpSeconds, isProfiled }: Pick<AcceptOptions, 'seconds' | 'warmUpSeconds' | 'isProfiled'>,
  generator: 'wrk' | 'autocannon',
): Promise<Result> {
  return onHost(contestant, async (host, store) => {
    const target = host.ready
    const warm = await load(generator, { target, seconds: warmUpSeconds, dir: store.dir })
    if (isProfiled) await host.profile()
    const pids = [store.pid, host.pid, ...(host.ready.workers ?? []).map(({ pid }) => pid)]
    const {
      value: measured,
      percents,
      stolenPercent,
    } = await shareOfCore(pids, () => load(generator, { target, seconds, dir: store.dir }))
    const [storePercent = null, ...shares] = percents
    if (isProfiled) await showProfile(host, contestant)
    await verify(contestant, [warm, measured], host, store)
    return { contestant, measured, hostPercent: sumOf(shares), storePercent, stolenPercent }
  })
}

/** Sum over all processes of a contestant; null if it cannot be read. */
function sumOf(percents: readonly (number | null)[]): number | null {
  return percents.reduce((sum, percent) => (sum === null || percent === null ? null : sum + percent), 0)
}

/**
 * p99 at half of the product's maximum rate, under a load that does not wait for answers; and that of the floor at the
 * same rate, which is the share of disk and machine. Empty without (c).
 */
async function measureHalfRate(results: readonly Result[], options: AcceptOptions): Promise<HalfRate> {
  const rates = results.filter(({ contestant }) => contestant.id === 'c').map(({ measured }) => measured.perSecond)
  const rate = (rates.sort((a, b) => a - b)[Math.floor((rates.length - 1) / 2)] ?? 0) / 2
  const measured: HalfRate = {}
  for (const id of rate === 0 ? [] : (['a', 'c'] as const)) {
    const contestant = results.find((result) => result.contestant.id === id)?.contestant
    if (contestant === undefined) continue
    const paced = await undisturbed(() => measurePaced(contestant, rate, options), {
      tell: ({ stolenPercent, measured: { p99Ms } }) =>
        console.log(
          `(${id}) at half the rate, p99 ${formatNumber(p99Ms, 1)} ms, ${formatNumber(stolenPercent)} % stolen  once more`,
        ),
    })
    measured[id] = paced.measured
  }
  return measured
}

function measurePaced(
  contestant: Contestant,
  rate: number,
  { seconds, warmUpSeconds }: AcceptOptions,
): Promise<Disturbed & { measured: Measured }> {
  return onHost(contestant, async (host, store) => {
    const warm = await pace(host.ready, { rate, count: rate * warmUpSeconds })
    const { value: measured, stolenPercent } = await shareOfCore([], () =>
      pace(host.ready, { rate, count: rate * seconds }),
    )
    await verify(contestant, [warm, measured], host, store)
    return { measured, stolenPercent }
  })
}

async function onHost<T>(contestant: Contestant, work: (host: Host, store: BenchStore) => Promise<T>): Promise<T> {
  const store = await startStore()
  try {
    const host = await startHost(contestant.host, store, contestant.order)
    const value = await work(host, store)
    return value
  } finally {
    await store.stop()
  }
}

/**
 * Compares answers with stored messages. A generator that stops at a time leaves up to one request on each connection
 * unanswered, which is kept all the same; the product's own count of its answers has no such edge.
 */
async function verify(
  { id, count }: Contestant,
  loads: readonly Measured[],
  host: Host,
  store: BenchStore,
): Promise<void> {
  const { operatorPort } = host.ready
  let kept = -1
  await until(async () => {
    const before = kept
    kept = await count(store.client)
    return kept === before && (operatorPort === null || kept === (await readAccepted(operatorPort)))
  }, SETTLE_MS_MAX).catch(() => {
    throw new Error(`(${id}) holds ${kept} messages, and not as many as it says it has accepted`)
  })
  const answered = loads.reduce((sum, { accepted }) => sum + accepted, 0)
  const wrong = loads.reduce((sum, { refused, broken }) => sum + refused + broken, 0)
  if (wrong > 0) throw new Error(`(${id}) did not accept ${wrong} messages`)
  if (kept < answered || kept > answered + CONNECTIONS * loads.length)
    throw new Error(`(${id}) answered ${answered} messages and holds ${kept}`)
  await host.stop()
  await store.reread()
  const reread = await count(store.client)
  if (reread < kept) throw new Error(`(${id}) held ${kept} messages, of which ${reread} were in the store's file`)
}

async function showProfile(host: Host, { id }: Contestant): Promise<void> {
  const path = join(ROOT, 'data', `bench-${id}.cpuprofile`)
  await host.profiled(path)
  const { busyPercent, functions, lines } = readProfile(path, PLACES)
  console.log(`\n(${id}) main thread busy ${busyPercent.toFixed(0)} %, profile in ${path}`)
  console.log(`own time of functions, % of the busy time\n${formatShares(functions)}`)
  console.log(`own time of lines of ours, % of the busy time\n${formatShares(lines)}\n`)
}

function formatShares(shares: readonly Share[]): string {
  return shares.map(({ name, percent }) => `  ${percent.toFixed(1).padStart(5)}  ${name}`).join('\n')
}
