/** dnssec - findings about name servers that validate, do not validate, or are elsewhere. */
import t, { type Test } from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import { examineDnssec } from '../../src/health/dnssec.ts'
import { startZone } from '../support/peers/zone.ts'

async function setUp(t: Test) {
  const zone = await startZone()
  zone.fail('dnssec-failed.org', 'servfail')
  zone.set('ietf.org', { type: 'MX', exchange: 'mx.ietf.org', priority: 10 })
  zone.sign('ietf.org')
  const resolver = createResolver({ servers: [zone.server], isTrusted: true, nowMs: () => 0 })
  t.teardown(async () => {
    resolver.close()
    await zone.close()
  })
  const examine = (dnssec: 'off' | 'trusted' = 'trusted', dnsServers: readonly string[] = [zone.server]) =>
    examineDnssec({ resolver, config: { dnssec, dnsServers } })
  return { zone, examine }
}

t.test('dnssec: off asks nothing [operator.health]', async (t) => {
  const { zone, examine } = await setUp(t)
  t.match(await examine('off'), { status: 'ok', fix: null })
  t.same(zone.asked, [])
})

t.test('dnssec: trusted and validating [delivery.dane] [operator.health]', async (t) => {
  const { examine } = await setUp(t)
  t.match(await examine(), { name: 'dnssec', status: 'ok' })
  for (const server of ['[::1]:53', '127.0.0.1', '::1']) t.match(await examine('trusted', [server]), { status: 'ok' })
  for (const server of ['192.0.2.1:53', '[2001:db8::1]:53'])
    t.match(await examine('trusted', [server]), { status: 'warning', message: /forged on the way/ })
})

t.test('dnssec: trusted and not validating [delivery.dane] [operator.health]', async (t) => {
  const { zone, examine } = await setUp(t)
  zone.set('dnssec-failed.org', { type: 'A', address: '192.0.2.1' })
  t.match(await examine(), { status: 'failed', message: /answers for dnssec-failed\.org/, fix: /DNSSEC=off/ })
})

t.test('dnssec: trusted and no answers [operator.health]', async (t) => {
  const { zone, examine } = await setUp(t)
  zone.fail('dnssec-failed.org', 'refused')
  t.match(await examine(), { status: 'warning', message: /dnssec-failed\.org: EREFUSED/ })
  zone.fail('dnssec-failed.org', 'servfail')
  zone.remove('ietf.org')
  t.match(await examine(), { status: 'warning', message: /ietf\.org: nxdomain/ })
})

t.test('dnssec: trusted, and no answer is reported as validated [operator.health]', async (t) => {
  const { zone, examine } = await setUp(t)
  zone.set('ietf.org', { type: 'MX', exchange: 'mx.ietf.org', priority: 10 }, { type: 'CNAME', domain: 'else.org' })
  zone.set('else.org', { type: 'MX', exchange: 'mx.ietf.org', priority: 10 })
  t.match(await examine(), { status: 'failed', message: /is validated \(AD\)/ })
})
