/** byte-budget - what large messages may take, by who they are for. */

import t from 'tap'
import { BYTES_MAX, LARGE_BYTES, makeByteBudget } from '../../src/outbound/byte-budget.ts'

const MB = 1024 * 1024
const order = (site: string, bytes: number, more = {}) => ({ bytes, site, isRelay: false, isProven: true, ...more })

t.test('byte-budget: small messages are not counted [delivery.bytes]', async (t) => {
  const budget = makeByteBudget()
  for (let n = 0; n < 1000; n += 1) t.ok(budget.take(order('a', LARGE_BYTES - 1)))
  t.equal(budget.taken, 0)
})

t.test(
  'byte-budget: a quarter for a site, half for unknown sites, all of it for the relay [delivery.bytes]',
  async (t) => {
    const cases: [string, (n: number) => ReturnType<typeof order>, number][] = [
      ['one site', () => order('a', 4 * MB), BYTES_MAX / 4],
      ['many unknown sites', (n) => order(`s${n}`, 4 * MB, { isProven: false }), BYTES_MAX / 2],
      ['many sites', (n) => order(`s${n}`, 4 * MB), BYTES_MAX],
      ['the relay', () => order('relay', 4 * MB, { isRelay: true, isProven: false }), BYTES_MAX],
    ]
    for (const [name, next, max] of cases) {
      const budget = makeByteBudget()
      const back: (() => void)[] = []
      for (let n = 0; n < 100; n += 1) {
        const release = budget.take(next(n))
        if (release !== null) back.push(release)
      }
      t.equal(budget.taken, max, name)
      back.pop()?.()
      t.ok(budget.take(next(100)), 'what is given back can be taken')
    }
  },
)

t.test('byte-budget: the first may pass whatever its size, and everything is returned', async (t) => {
  const budget = makeByteBudget()
  const release = budget.take(order('a', 2 * BYTES_MAX, { isProven: false }))
  t.ok(release)
  t.equal(budget.take(order('b', LARGE_BYTES)), null)
  release?.()
  t.equal(budget.taken, 0)
  t.ok(budget.take(order('b', LARGE_BYTES)))
})
