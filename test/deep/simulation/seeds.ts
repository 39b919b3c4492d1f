/**
 * seeds - the runtime under simulated faults, one seed after the other. No seed may break a promise.
 *
 * `SEEDS` sets their number (200). `SEED=n` runs one and shows its trace. `SEEDS=from..to` runs a slice on one
 * primary, and with `PRIMARIES=2` on two, and names every seed that breaks a promise.
 *
 * The seeds together must reach every situation of `sometimes.ts`.
 */
import { type Test, test } from 'tap'
import { type SimResult, simulate } from '../../simulation/run.ts'
import { SITUATIONS, situationsIn } from '../../simulation/sometimes.ts'

const [, FROM = '', TO = ''] = /^(\d+)\.\.(\d+)$/.exec(process.env.SEEDS ?? '') ?? []
const isSlice = TO !== ''
const SEEDS = isSlice ? 0 : Number(process.env.SEEDS ?? '200')
const FIRST = 1
const TRACE_SHOWN = 60
/** Seeds that are enough to reach every situation. */
const SEEDS_OF_ALL = 200
/** How many seeds have reached each situation. */
const reached = new Map<string, number>()
/** Seeds on several primaries. */
const SEVERAL = Math.max(8, Math.ceil(SEEDS / 10))

test('simulation: the same seed gives the same trace', async (t) => {
  const [once, again, other] = [await simulate(7), await simulate(7), await simulate(8)]
  t.equal(once.hash, again.hash)
  t.not(once.hash, other.hash)
  t.ok(once.trace.length > 1_000, 'something happened')
})

test('simulation: a slice of seeds keeps every promise', { skip: !isSlice && 'SEEDS is no slice' }, async (t) => {
  const primaries = Number(process.env.PRIMARIES ?? '1')
  for (let seed = Number(FROM); seed <= Number(TO); seed += 1) {
    const result = await simulate(seed, null, primaries)
    note(result)
    if (result.violations.length > 0) t.fail(`seed ${seed} on ${primaries}: ${describe(result)}`)
  }
  t.comment(`${FROM}..${TO} on ${primaries}`)
  for (const [name, seeds] of reached) t.comment(`${seeds} seeds: ${name}`)
})

test('simulation: every seed keeps every promise', { skip: isSlice }, async (t) => {
  const { accepted, commits, seeds } = await keepPromises(t, SEEDS, 1)
  t.ok(accepted > seeds * 10 && commits > seeds * 20, 'the seeds did real work')
})

test('simulation: on two primaries that fail over every seed keeps every promise', { skip: isSlice }, async (t) => {
  const { accepted, commits, failovers, moves, seeds } = await keepPromises(t, SEVERAL, 2)
  t.ok(accepted > seeds * 10 && commits > seeds * 20 && failovers > seeds / 2, 'the seeds did real work')
  t.ok(moves > seeds / 4, 'shards moved')
})

const isFew = SEEDS < SEEDS_OF_ALL || process.env.SEED !== undefined
test('simulation: every situation of the catalogue was reached', { skip: isFew && 'few seeds' }, async (t) => {
  for (const { name } of SITUATIONS) t.ok(reached.has(name), `${reached.get(name) ?? 0} seeds: ${name}`)
})

function note({ trace }: SimResult): void {
  for (const name of situationsIn(trace)) reached.set(name, (reached.get(name) ?? 0) + 1)
}

interface Sum {
  readonly accepted: number
  readonly commits: number
  readonly failovers: number
  readonly moves: number
  readonly seeds: number
}

async function keepPromises(t: Test, count: number, primaries: number): Promise<Sum> {
  const only = process.env.SEED
  const seeds = only === undefined ? Array.from({ length: count }, (_, n) => FIRST + n) : [Number(only)]
  const sum = { accepted: 0, commits: 0, failovers: 0, moves: 0, seeds: seeds.length }
  for (const seed of seeds) {
    const result = await simulate(seed, null, primaries)
    note(result)
    sum.commits += result.commits
    sum.accepted += result.accepted
    sum.failovers += result.failovers
    sum.moves += result.moves
    if (only !== undefined) for (const line of result.trace) t.comment(line)
    if (result.violations.length === 0) continue
    for (const line of result.trace.slice(-TRACE_SHOWN)) t.comment(line)
    t.fail(`seed ${seed}: ${describe(result)}`)
    return sum
  }
  t.comment(`${sum.seeds} seeds, ${sum.commits} commits, ${sum.accepted} asks to accept answered, ${sum.moves} moves`)
  return sum
}

function describe({ violations, hash }: SimResult): string {
  return `${violations.join('; ')} (trace ${hash.slice(0, 12)})`
}
