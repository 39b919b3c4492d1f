/** sender-rate - how many connections one sender has. */
import t from 'tap'
import { makeSenderRate } from '../../src/reception/sender-rate.ts'

t.test('sender-rate: 30 at once, whoever else comes [mx.rate]', async (t) => {
  const rate = makeSenderRate(() => 0)
  for (let opened = 1; opened <= 31; opened += 1) t.equal(rate.open('192.0.2.1'), opened <= 30)
  t.ok(rate.open('192.0.2.2'))
  rate.close('192.0.2.1')
  t.notOk(rate.open('192.0.2.1'), 'the one that was refused was open too')
  rate.close('192.0.2.1')
  rate.close('192.0.2.1')
  t.ok(rate.open('192.0.2.1'))
})

t.test('sender-rate: 300 a minute, and again in the next [mx.rate]', async (t) => {
  let nowMs = 0
  const rate = makeSenderRate(() => nowMs)
  const openOne = () => {
    const isAllowed = rate.open('2001:db8::1')
    rate.close('2001:db8::2')
    return isAllowed
  }
  for (let opened = 1; opened <= 301; opened += 1) t.equal(openOne(), opened <= 300)
  nowMs = 60_000
  t.ok(openOne())
})

t.test('sender-rate: more senders than the table holds share one count', async (t) => {
  const rate = makeSenderRate(() => 0)
  let refused = 0
  for (let index = 0; index < 50_400; index += 1) {
    const address = `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`
    if (!rate.open(address)) refused += 1
    rate.close(address)
  }
  t.equal(refused, 100)
})
