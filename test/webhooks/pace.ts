/** pace - who begins a connection when, by a clock that is turned by hand. */
import { test } from 'tap'
import { type Begin, makePace } from '../../src/webhooks/pace.ts'

/** A pace of which the names of those that began are noted, step by step. */
function setUp() {
  const steps: (() => void)[] = []
  const began: string[] = []
  const pace = makePace((call) => void steps.push(call))
  return {
    began,
    ask(name: string, begin: Begin): void {
      void pace(begin).then(() => began.push(name))
    },
    /** The next step; how many began, null when none is due. */
    async step(): Promise<number | null> {
      const before = began.length
      const call = steps.shift()
      call?.()
      await Promise.resolve()
      return call === undefined ? null : began.length - before
    },
  }
}

const of = (host: string, isProven = false): Begin => ({ host, isProven })

test('pace: ten begin at once, ten more with each step, and it rests when nobody waits', async (t) => {
  const { ask, step, began } = setUp()
  for (let n = 0; n < 25; n += 1) ask(`a${n}`, of('a', true))
  await Promise.resolve()
  t.equal(began.length, 10)
  t.same([await step(), await step(), await step(), await step()], [10, 5, 0, null])
  t.same(
    began,
    Array.from({ length: 25 }, (_, n) => `a${n}`),
    'in order',
  )
  ask('later', of('a'))
  await Promise.resolve()
  t.equal(began.at(-1), 'later')
})

test('pace: receivers that have answered stand before a crowd, which keeps a share [webhook.fair]', async (t) => {
  const { ask, step, began } = setUp()
  for (let n = 0; n < 1_000; n += 1) ask(`x${n}`, of(`host${n}`))
  for (let n = 0; n < 20; n += 1) ask(`ok${n}`, of('ok', true))
  await Promise.resolve()
  t.equal(began.filter((name) => name.startsWith('x')).length, 5, 'five at once')
  for (const expected of [10, 10, 6, 5]) t.equal(await step(), expected)
  const proven = began.filter((name) => name.startsWith('ok'))
  t.equal(proven.length, 20)
  t.equal(began.length - proven.length, 5 + 3 + 3 + 5 + 5, 'three with a step at least, five at most')
})

test('pace: hosts take turns: one with a thousand URLs delays no other [webhook.fair]', async (t) => {
  const { ask, step, began } = setUp()
  for (let n = 0; n < 1_000; n += 1) ask(`x${n}`, of('crowd'))
  for (const name of ['b', 'c']) ask(name, of(name))
  await step()
  t.ok(began.includes('b') && began.includes('c'))
})
