/**
 * seeds - the runtime under simulated faults, one seed after the other; none may break a promise.
 *
 * `SEEDS` sets how many (200). `SEED=n` runs one and shows its trace.
 */
import { test } from 'tap'
import { type SimResult, simulate } from './run.ts'

const SEEDS = Number(process.env.SEEDS ?? '200')
const FIRST = 1
const TRACE_SHOWN = 60

test('simulation: the same seed gives the same trace', async (t) => {
  const [once, again, other] = [await simulate(7), await simulate(7), await simulate(8)]
  t.equal(once.hash, again.hash)
  t.not(once.hash, other.hash)
  t.ok(once.trace.length > 1_000, 'something happened')
})

test('simulation: every seed keeps every promise', async (t) => {
  const only = process.env.SEED
  const seeds = only === undefined ? Array.from({ length: SEEDS }, (_, n) => FIRST + n) : [Number(only)]
  let commits = 0
  let accepted = 0
  for (const seed of seeds) {
    const result = await simulate(seed)
    commits += result.commits
    accepted += result.accepted
    if (only !== undefined) for (const line of result.trace) t.comment(line)
    if (result.violations.length === 0) continue
    for (const line of result.trace.slice(-TRACE_SHOWN)) t.comment(line)
    t.fail(`seed ${seed}: ${describe(result)}`)
    return
  }
  t.comment(`${seeds.length} seeds, ${commits} commits, ${accepted} asks to accept answered`)
  t.ok(accepted > seeds.length * 10 && commits > seeds.length * 20, 'the seeds did real work')
})

function describe({ violations, hash }: SimResult): string {
  return `${violations.join('; ')} (trace ${hash.slice(0, 12)})`
}
