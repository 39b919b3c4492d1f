/** Tests of cluster/worker/self-check.ts. */
import { test } from 'tap'
import { SelfCheck } from '../../../cluster/worker/self-check.ts'

const lagsOf = (commit: number, read: number) => [
  { connection: 'commit', ms: commit },
  { connection: 'read', ms: read },
]

/** Looks four times a second; heartbeats are answered. Out: when it fell ill or became well. */
function watch(
  one: SelfCheck,
  [fromMs, untilMs]: readonly [number, number],
  lags: (atMs: number) => ReturnType<typeof lagsOf>,
) {
  const turns: number[] = []
  for (let atMs = fromMs; atMs <= untilMs; atMs += 250)
    if (one.look(lags(atMs), { atMs, beatAtMs: atMs })) turns.push(atMs)
  return turns
}

test('selfCheck: one connection that owes answers while another works is an illness, until all has been well for a while', async (t) => {
  const one = new SelfCheck()
  t.same(
    watch(one, [0, 20_000], (atMs) => lagsOf(0, atMs)),
    [6_750],
    'two and a half seconds, and four more',
  )
  t.equal(one.ails, true)
  t.same(
    watch(one, [20_250, 40_000], () => lagsOf(0, 0)),
    [25_250],
  )
  t.equal(one.ails, false)
})

test('selfCheck: a store that is silent or slow for all connections is no illness', async (t) => {
  const one = new SelfCheck()
  t.same(
    watch(one, [0, 60_000], (atMs) => lagsOf(atMs, atMs)),
    [],
  )
  t.same(
    watch(one, [60_000, 120_000], () => lagsOf(5_000, 2_000)),
    [],
  )
})

test('selfCheck: a lag that ends in time is none', async (t) => {
  const one = new SelfCheck()
  t.same(
    watch(one, [0, 60_000], (atMs) => lagsOf(0, atMs % 6_000)),
    [],
  )
})

test('selfCheck: a moment in which all wait does not hide the one that always does; a longer one begins anew', async (t) => {
  const [brief, long] = [new SelfCheck(), new SelfCheck()]
  // Every two seconds the process freezes for one second, or for four.
  t.same(
    watch(brief, [0, 7_000], (atMs) => (atMs % 3_000 < 2_000 ? lagsOf(5_000, 0) : lagsOf(5_000, 1_200))).at(0),
    4_000,
  )
  t.same(
    watch(long, [0, 60_000], (atMs) => (atMs % 6_000 < 2_000 ? lagsOf(5_000, 0) : lagsOf(5_000, 1_200))),
    [],
  )
})

test('selfCheck: what was seen before a stop of the whole process says nothing after it', async (t) => {
  const one = new SelfCheck()
  watch(one, [0, 1_000], () => lagsOf(5_000, 0))
  t.same(
    watch(one, [40_000, 50_000], () => lagsOf(5_000, 0)),
    [44_000],
  )
})

test('selfCheck: ten seconds in which every ask waited and was refused are an illness', async (t) => {
  const one = new SelfCheck()
  const turns: number[] = []
  for (let atMs = 4_000; atMs <= 20_000; atMs += 1_000) {
    one.asked(false, { atMs, tookMs: 4_000 })
    if (one.look(lagsOf(0, 0), { atMs, beatAtMs: atMs })) turns.push(atMs)
  }
  t.equal(turns[0], 10_000)
})

test('selfCheck: asks that are refused at once, or some of which are answered, are none; nor is what a silent store does', async (t) => {
  const [full, some, silent] = [new SelfCheck(), new SelfCheck(), new SelfCheck()]
  const beatAtMs = 0
  for (let atMs = 14_000; atMs <= 60_000; atMs += 500) {
    full.asked(false, { atMs, tookMs: 3 })
    some.asked(atMs % 4_000 === 0, { atMs, tookMs: 4_000 })
    silent.asked(false, { atMs, tookMs: 4_000 })
    for (const one of [full, some]) one.look(lagsOf(0, 0), { atMs, beatAtMs: atMs })
    silent.look(lagsOf(0, 0), { atMs, beatAtMs })
  }
  t.same([full.ails, some.ails, silent.ails], [false, false, false])
})
