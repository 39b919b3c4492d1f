/** rests - how long a blocked source rests, and how a rest ends. */

import t from 'tap'
import { REST_MAX_MS, REST_MS, RESTS_MAX, Rests } from '../../../src/outbound/egress/rests.ts'

t.test('egress: a blocked source rests at that site alone, each time for longer [egress.rest]', async (t) => {
  const rests = new Rests()
  let nowMs = 1000
  t.equal(rests.standing('a', 'x', nowMs), null)
  t.match(rests.blocked('a', 'x', { nowMs, why: 'listed' }), { untilMs: nowMs + REST_MS, level: 1 })
  t.match(rests.standing('a', 'x', nowMs), { why: 'listed' })
  t.equal(rests.standing('a', 'y', nowMs), null)
  t.equal(rests.standing('b', 'x', nowMs), null)
  t.equal(rests.blocked('a', 'x', { nowMs, why: 'listed' }), null, 'attempts under way together are one block')
  for (let level = 2; level < 12; level += 1) {
    nowMs = rests.standing('a', 'x', nowMs)!.untilMs
    const rest = rests.blocked('a', 'x', { nowMs, why: 'listed' })
    t.match(rest, { level, untilMs: nowMs + Math.min(REST_MAX_MS, REST_MS * 2 ** (level - 1)) })
  }
})

t.test('egress: one attempt comes before the others after a rest [egress.rest]', async (t) => {
  const rests = new Rests()
  rests.blocked('a', 'x', { nowMs: 0, why: 'listed' })
  t.notOk(rests.answered('a', 'x', REST_MS - 1), 'an attempt from before the block proves nothing')
  t.equal(rests.standing('a', 'x', REST_MS), null)
  rests.begun('a', 'x', REST_MS)
  t.match(rests.standing('a', 'x', REST_MS), { why: /one attempt is under way/ })
  rests.unknown('a', 'x')
  t.equal(rests.standing('a', 'x', REST_MS), null, 'it proved nothing')
  rests.begun('a', 'x', REST_MS)
  t.ok(rests.answered('a', 'x', REST_MS + 5))
  t.equal(rests.standing('a', 'x', REST_MS + 5), null)
  t.match(rests.blocked('a', 'x', { nowMs: REST_MS + 9, why: 'listed' }), { level: 1 }, 'its level is over too')
})

t.test('egress: rests of other processes count, and their number is bounded [egress.rest]', async (t) => {
  const rests = new Rests()
  rests.learn(new Map([['a|x', { untilMs: 500, level: 3, why: 'listed there' }]]), 100)
  t.match(rests.standing('a', 'x', 100), { untilMs: 500, why: 'listed there' })
  t.match(rests.blocked('a', 'x', { nowMs: 600, why: 'again' }), { level: 4 })
  rests.learn(new Map([['a|x', { untilMs: 500, level: 3, why: 'old' }]]), 600)
  t.match(rests.standing('a', 'x', 600), { why: 'again' }, 'an older one changes nothing')
  t.same(rests.wake('x'), ['a|x'])
  t.equal(rests.standing('a', 'x', 600), null)
  for (let n = 0; n < RESTS_MAX + 10; n += 1) rests.blocked('a', `site${n}`, { nowMs: 0, why: 'w'.repeat(999) })
  t.equal(rests.standing('a', 'site0', 0), null)
  t.equal(rests.standing('a', `site${RESTS_MAX + 9}`, 0)?.why.length, 200)
})
