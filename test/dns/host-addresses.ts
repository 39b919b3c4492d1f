/** host-addresses - which addresses of a server are tried, in which order. */
import t from 'tap'
import { hostAddresses } from '../../src/dns/host-addresses.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { startZone, type ZoneRecord } from '../support/peers/zone.ts'

const zone = await startZone()
const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
t.teardown(async () => {
  resolver.close()
  await zone.close()
})
const four = (last: number): ZoneRecord => ({ type: 'A', address: `192.0.2.${last}` })
const six = (last: number): ZoneRecord => ({ type: 'AAAA', address: `2001:db8::${last}` })

t.test('addresses: of both families by turns, IPv4 first, and only IPv4 by default [delivery.ipv6]', async (t) => {
  zone.set('both.test', four(1), four(2), four(3), six(1))
  zone.set('six.test', six(1), six(2))
  zone.set('four.test', four(1))
  zone.set('none.test')
  const look = (host: string, usesIpv6 = true) => hostAddresses(resolver, host, { usesIpv6 })
  const both = ['192.0.2.1', '2001:db8::1', '192.0.2.2', '192.0.2.3']
  t.same(await look('both.test'), { addresses: both, isDual: true, hasFailed: false })
  t.same(await look('six.test'), { addresses: ['2001:db8::1', '2001:db8::2'], isDual: false, hasFailed: false })
  t.same(await look('four.test'), { addresses: ['192.0.2.1'], isDual: false, hasFailed: false })
  t.same(await look('none.test'), { addresses: [], isDual: false, hasFailed: false })
  t.same(await look('six.test', false), { addresses: [], isDual: false, hasFailed: false })
  zone.set('new.test', four(1), six(1))
  t.same((await look('new.test', false)).addresses, ['192.0.2.1'])
  t.notOk(zone.asked.includes('AAAA new.test'), 'nobody asks for what is not used')
})

t.test('addresses: a failure for one family leaves the other one [delivery.ipv6]', async (t) => {
  zone.fail('half.test', 'servfail', four(1))
  const found = await hostAddresses(resolver, 'half.test', { usesIpv6: true })
  t.same(found, { addresses: ['192.0.2.1'], isDual: false, hasFailed: true })
})
