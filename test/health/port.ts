/** port - receivers and relays that answer, refuse, say nothing or are not there. */

import t from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import { examinePort } from '../../src/health/port.ts'
import { freePort } from '../support/machine/port.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'

const zone = await startZone()
const mx = await startMx()
const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
const config = { relayUrl: null, deliveryPort: mx.port, deliveryIpv6: false, privateNetworksAllowed: ['127.0.0.0/8'] }
const deps = { resolver, config }
t.teardown(async () => {
  resolver.close()
  await mx.close()
  await zone.close()
})

t.test('health: no receiver is found, or may be connected to [operator.health]', async (t) => {
  const { finding, outAddresses } = await examinePort(deps)
  t.match(finding, { name: 'outbound-port', status: 'failed', fix: /RELAY_URL/ })
  t.same(outAddresses, [])
})

t.test('health: one receiver that answers is enough, and shows our address [operator.health]', async (t) => {
  const fresh = { resolver: createResolver({ servers: [zone.server], nowMs: () => 0 }), config }
  t.teardown(() => fresh.resolver.close())
  zone.set('yahoo.com', { type: 'MX', exchange: 'mx.y.test', priority: 10 })
  zone.set('mx.y.test', { type: 'A', address: '127.0.0.1' })
  t.match(await examinePort(fresh), { finding: { status: 'ok' }, outAddresses: ['127.0.0.1'] })
  const hidden = await examinePort({ ...fresh, config: { ...config, privateNetworksAllowed: [] } })
  t.match(hidden.finding, { status: 'failed', message: /mx\.y\.test has no address/ })
  mx.script({ banner: '554 5.7.1 no mail from you' })
  t.match((await examinePort(fresh)).finding, { status: 'failed', message: /554 5\.7\.1 no mail from you/ })
  mx.script({ banner: 'drop' })
  t.match((await examinePort(fresh)).finding, { status: 'failed', message: /no greeting/ })
  const closed = { ...config, deliveryPort: await freePort() }
  t.match((await examinePort({ ...fresh, config: closed })).finding, { status: 'failed', message: /ECONNREFUSED/ })
  mx.script({})
  t.ok(
    mx.sessions.every(({ commands }) => commands.every((command) => command === 'QUIT')),
    'no mail is begun',
  )
})

t.test('health: each family is tried where both are used, and shows its address [operator.health]', async (t) => {
  const fresh = {
    resolver: createResolver({ servers: [zone.server], nowMs: () => 0 }),
    config: { ...config, deliveryIpv6: true, privateNetworksAllowed: ['127.0.0.0/8', '::1/128'] },
  }
  t.teardown(() => fresh.resolver.close())
  zone.set('gmail.com', { type: 'MX', exchange: 'mx.g.test', priority: 10 })
  zone.set('mx.g.test', { type: 'A', address: '127.0.0.1' })
  const onlyFour = await examinePort(fresh)
  t.match(onlyFour.finding, {
    status: 'warning',
    message: /over IPv6: mx\.g\.test has no address/,
    fix: /DELIVERY_IPV6/,
  })
  t.same(onlyFour.outAddresses, ['127.0.0.1'])
  const six = await startMx({}, { host: '::1', port: mx.port }).catch(() => null)
  if (six === null) return t.comment('this machine has no IPv6: skipped')
  t.teardown(() => six.close())
  zone.set('outlook.com', { type: 'MX', exchange: 'mx.o.test', priority: 10 })
  zone.set('mx.o.test', { type: 'AAAA', address: '::1' })
  const again = { ...fresh, resolver: createResolver({ servers: [zone.server], nowMs: () => 0 }) }
  t.teardown(() => again.resolver.close())
  t.match(await examinePort(again), { finding: { status: 'ok' }, outAddresses: ['127.0.0.1', '::1'] })
})

t.test('health: the relay [operator.health]', async (t) => {
  const relayed = (relayUrl: string) => examinePort({ resolver, config: { ...config, relayUrl } })
  t.match((await relayed(`smtp://127.0.0.1:${mx.port}`)).finding, { status: 'ok', message: /relay 127\.0\.0\.1/ })
  t.match((await relayed(`smtp://127.0.0.1:${await freePort()}`)).finding, { status: 'failed', fix: /relay/ })
})
