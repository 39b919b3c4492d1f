/** failed-logins - ten of a client in fifteen minutes, whatever others do; the oldest client is dropped. */

import t from 'tap'
import { FailedLogins } from '../../../src/reception/submission/failed-logins.ts'

const MINUTE_MS = 60_000

t.test(
  'failed-logins: the tenth within fifteen minutes blocks, until the first of them is older [submission.login]',
  async (t) => {
    let nowMs = 0
    const failed = new FailedLogins(() => nowMs)
    for (let n = 0; n < 10; n += 1) {
      t.equal(failed.isBlocked('192.0.2.1'), false, `${n} have failed`)
      failed.add('192.0.2.1')
      nowMs += MINUTE_MS
    }
    t.equal(failed.isBlocked('192.0.2.1'), true)
    t.equal(failed.isBlocked('192.0.2.2'), false, 'others are not')
    nowMs = 15 * MINUTE_MS - 1
    t.equal(failed.isBlocked('192.0.2.1'), true)
    nowMs = 15 * MINUTE_MS
    t.equal(failed.isBlocked('192.0.2.1'), false, 'nine are left')
    failed.add('192.0.2.1')
    t.equal(failed.isBlocked('192.0.2.1'), true)
  },
)

t.test('failed-logins: an IPv6 /64 is one client, a mapped IPv4 address is that address', async (t) => {
  const failed = new FailedLogins(() => 0)
  for (let n = 0; n < 10; n += 1) failed.add(`2001:db8:0:1::${n}`)
  t.equal(failed.isBlocked('2001:db8:0:1:ffff::1'), true)
  t.equal(failed.isBlocked('2001:db8:0:2::1'), false)
  for (let n = 0; n < 10; n += 1) failed.add('::ffff:192.0.2.7')
  t.equal(failed.isBlocked('192.0.2.7'), true)
})

t.test('failed-logins: of too many clients the one that failed longest ago is dropped', async (t) => {
  const failed = new FailedLogins(() => 0, 2)
  for (let n = 0; n < 10; n += 1) for (const client of ['a', 'b']) failed.add(client)
  failed.add('a')
  failed.add('c')
  t.same(
    ['a', 'b', 'c'].map((client) => failed.isBlocked(client)),
    [true, false, false],
  )
})
