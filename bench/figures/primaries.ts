/**
 * primaries - the processor time of several primaries of a Redis Cluster, against one Redis
 *
 * One process listens and one decides, at a rate below the limits of Redis and of the processes; by turns on one Redis
 * and on three primaries without replicas, each reached over a port. The figures are the processor time of all
 * redis-servers for a message, and the ratio of the medians.
 */

import { startHost } from '../contestants/host.ts'
import { type BenchPrimaries, startPrimaries } from '../contestants/redis-primaries.ts'
import { pace } from '../load/pace.ts'
import { formatNumber, formatTable, median } from '../table.ts'
import { shareOfCore } from '../usage.ts'

export interface PrimariesOptions {
  readonly seconds: number
  readonly rounds: number
  readonly warmUpSeconds: number
  /** Messages a second. */
  readonly rate: number
  /** Whether accepted messages stay queued; otherwise each is simulated too. */
  readonly isHeld: boolean
}

const ACCOUNTS = 1_000
const PRIMARIES_MAX = 3
const MICROSECONDS = 10_000
/** Commands of a profile. */
const PLACES = 20

interface Round {
  readonly count: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly redisUs: number
  readonly hostUs: number
  readonly stolenPercent: number | null
  /** Calls and microseconds of each command, for a message. */
  readonly commands: ReadonlyMap<string, Calls>
}

interface Calls {
  readonly calls: number
  readonly us: number
}

/** Measures by turns and prints medians, their ratio, and where Redis' time goes. */
export async function benchPrimaries(options: PrimariesOptions): Promise<void> {
  const rounds: Round[] = []
  for (let round = 0; round < options.rounds; round += 1) {
    for (const count of round % 2 === 0 ? [1, PRIMARIES_MAX] : [PRIMARIES_MAX, 1]) {
      const one = await measure(count, options)
      rounds.push(one)
      console.log(formatTable([rowOf(one)]))
    }
  }
  const [one, several] = [1, PRIMARIES_MAX].map((count) => rounds.filter((round) => round.count === count))
  const usOf = (some: readonly Round[] = []): number => median(some.map(({ redisUs }) => redisUs))
  const head = ['primaries', 'messages/s', 'p50 ms', 'host µs', 'redis µs', 'stolen %']
  console.log(`\n${formatTable([head, ...rounds.toSorted((a, b) => a.count - b.count).map(rowOf)])}\n`)
  console.log(`${formatTable(profileOf(one ?? [], several ?? []))}\n`)
  console.log(`medians of redis: ${formatNumber(usOf(one))} and ${formatNumber(usOf(several))} µs a message`)
  console.log(`ratio ${formatNumber(usOf(several) / usOf(one), 2)}`)
}

async function measure(count: number, options: PrimariesOptions): Promise<Round> {
  const { rate, seconds, warmUpSeconds, isHeld } = options
  const store = await startPrimaries(count)
  try {
    const host = await startHost('product', store, { accounts: ACCOUNTS, isHeld, workers: 1 })
    const target = host.ready
    await pace(target, { rate, count: rate * warmUpSeconds })
    const before = await callsOf(store)
    const pids = [...store.pids, host.pid, ...(target.workers ?? []).map(({ pid }) => pid)]
    const work = (): ReturnType<typeof pace> => pace(target, { rate, count: rate * seconds })
    const { value, percents, stolenPercent } = await shareOfCore(pids, work)
    const after = await callsOf(store)
    if (value.refused + value.broken > 0) throw new Error(`${value.refused + value.broken} messages were not accepted`)
    await host.stop()
    const us = (some: readonly (number | null)[]): number =>
      (some.reduce<number>((sum, percent) => sum + (percent ?? Number.NaN), 0) * MICROSECONDS) / value.perSecond
    return {
      count,
      perSecond: value.perSecond,
      p50Ms: value.p50Ms,
      redisUs: us(percents.slice(0, count)),
      hostUs: us(percents.slice(count)),
      stolenPercent,
      commands: differenceOf(before, after, value.accepted),
    }
  } finally {
    await store.stop()
  }
}

function rowOf({ count, perSecond, p50Ms, hostUs, redisUs, stolenPercent }: Round): string[] {
  const rest = [formatNumber(p50Ms, 1), formatNumber(hostUs), formatNumber(redisUs), formatNumber(stolenPercent, 1)]
  return [String(count), formatNumber(perSecond), ...rest]
}

/** `INFO commandstats` of all primaries together. */
async function callsOf({ clients }: BenchPrimaries): Promise<Map<string, Calls>> {
  const found = new Map<string, Calls>()
  const add = (name: string, calls: number, us: number): void => {
    const known = found.get(name) ?? { calls: 0, us: 0 }
    found.set(name, { calls: known.calls + calls, us: known.us + us })
  }
  for (const client of clients) {
    const text = await client.info('commandstats')
    for (const [, name = '', calls, us] of text.matchAll(/^cmdstat_(\S+):calls=(\d+),usec=(\d+)/gm))
      add(name, Number(calls), Number(us))
    const stats = await client.info('stats')
    for (const [, name = '', value] of stats.matchAll(/^(total_reads_processed|total_writes_processed):(\d+)/gm))
      add(`(${name.split('_')[1]})`, Number(value), 0)
  }
  return found
}

function differenceOf(
  before: ReadonlyMap<string, Calls>,
  after: ReadonlyMap<string, Calls>,
  messages: number,
): Map<string, Calls> {
  return new Map(
    [...after].map(([name, { calls, us }]) => {
      const known = before.get(name) ?? { calls: 0, us: 0 }
      return [name, { calls: (calls - known.calls) / messages, us: (us - known.us) / messages }]
    }),
  )
}

/** Medians of calls and microseconds for a message, the largest differences first. */
function profileOf(one: readonly Round[], several: readonly Round[]): string[][] {
  const names = [...new Set([...one, ...several].flatMap(({ commands }) => [...commands.keys()]))]
  const of = (some: readonly Round[], name: string): Calls => ({
    calls: median(some.map(({ commands }) => commands.get(name)?.calls ?? 0)),
    us: median(some.map(({ commands }) => commands.get(name)?.us ?? 0)),
  })
  const found = names
    .map((name) => ({ name, one: of(one, name), several: of(several, name) }))
    .toSorted((a, b) => b.several.us - a.several.us || b.several.calls - a.several.calls)
  const rows = found.slice(0, PLACES).concat(found.slice(PLACES).filter(({ name }) => name.startsWith('(')))
  const head = ['a message', 'calls, one', 'three', 'µs, one', 'three']
  const figures = ({ name, one: a, several: b }: (typeof found)[number]): string[] => [
    name,
    formatNumber(a.calls, 3),
    formatNumber(b.calls, 3),
    formatNumber(a.us, 1),
    formatNumber(b.us, 1),
  ]
  return [head, ...rows.map(figures)]
}
