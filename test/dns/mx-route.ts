/** mx-route - the route of mail for a domain, from a real zone and its policy. */

import t from 'tap'
import { findRoute, relayRoute } from '../../src/dns/mx-route.ts'
import { createResolver } from '../../src/dns/resolve.ts'
import { SITE_LIMITS } from '../../src/mail/site.ts'
import type { StsPolicy } from '../../src/mail/sts-policy.ts'
import { RELAY_LIMITS } from '../../src/outbound/relay-limits.ts'
import { startZone } from '../support/peers/zone.ts'

const zone = await startZone()
t.teardown(() => zone.close())
const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
const policyOf = (mode: StsPolicy['mode'], mx: string): StsPolicy => ({ id: '1', mode, mx: [mx], untilMs: 1 })

function routeOf(domain: string, policy: StsPolicy | null = null) {
  return findRoute(domain, {
    resolver,
    policies: { find: async () => policy },
    siteLimits: new Map([['mx.a.test', { connections: 3 }]]),
    ownHosts: ['mx.svc.test'],
    ownDomains: ['svc.test'],
    unit: () => 0.5,
  })
}

zone.set(
  'a.test',
  { type: 'MX', exchange: 'MX.B.test', priority: 20 },
  { type: 'MX', exchange: 'mx.a.test', priority: 10 },
)
zone.set('bare.test', { type: 'A', address: '192.0.2.1' })
zone.set('null.test', { type: 'MX', exchange: '', priority: 0 })
zone.set('loop.test', { type: 'MX', exchange: 'mx.svc.test', priority: 1 })
zone.set('rp.svc.test', { type: 'MX', exchange: 'mx.svc.test', priority: 1 })
zone.set('literal.test', { type: 'MX', exchange: '192.0.2.1', priority: 1 })
zone.fail('fail.test', 'servfail')
const many = Array.from({ length: 15 }, (_, n) => ({ type: 'MX', exchange: `m${n}.many.test`, priority: n }) as const)
zone.set('many.test', ...many)

t.test('route: the servers by preference, the site without it, its limits [delivery.mx, delivery.site]', async (t) => {
  t.match(await routeOf('a.test'), {
    hosts: ['mx.a.test', 'mx.b.test'],
    site: 'mx.a.test,mx.b.test',
    limits: { ...SITE_LIMITS, connections: 3, connectionsStart: 3 },
    sts: null,
    isOwn: false,
    isRelay: false,
  })
  t.match(await routeOf('bare.test'), { hosts: ['bare.test'], site: 'bare.test' })
  const long = await routeOf('many.test')
  t.same('hosts' in long && long.hosts.length, 10, 'the first ones')
})

t.test('route: a domain without a place to deliver to is an outcome [delivery.mx]', async (t) => {
  const cases: [string, object][] = [
    ['null.test', { result: 'bounced', classification: 'BadDomain', hard: true }],
    ['missing.test', { result: 'bounced', classification: 'BadDomain', hard: true }],
    ['fail.test', { result: 'deferred', classification: 'DNSFailure', response: /^4\.4\.3 / }],
    ['loop.test', { result: 'bounced', classification: 'RoutingErrors', hard: false }],
    ['literal.test', { result: 'bounced', hard: false }],
  ]
  for (const [domain, outcome] of cases) t.match(await routeOf(domain), outcome, domain)
  t.match(await routeOf('rp.svc.test'), { hosts: ['mx.svc.test'], isOwn: true }, 'our own servers for our own domain')
})

t.test('route: the demands of a policy [delivery.sts]', async (t) => {
  const cases: [StsPolicy | null, object][] = [
    [policyOf('enforce', 'mx.a.test'), { hosts: ['mx.a.test'], sts: 'enforce', isNamed: true }],
    [
      policyOf('enforce', '*.else.test'),
      { result: 'deferred', classification: 'PolicyRelated', response: /^4\.7\.0 / },
    ],
    [policyOf('testing', '*.else.test'), { hosts: ['mx.a.test', 'mx.b.test'], sts: 'testing', isNamed: false }],
    [policyOf('none', '*.else.test'), { hosts: ['mx.a.test', 'mx.b.test'], sts: null, isNamed: true }],
  ]
  for (const [policy, expected] of cases) t.match(await routeOf('a.test', policy), expected, `${policy?.mode}`)
  const kept = await routeOf('a.test', policyOf('enforce', 'mx.a.test'))
  t.match(kept, { site: 'mx.a.test,mx.b.test' }, 'one site, whatever a policy leaves of it')
})

t.test('route: the relay has no rate and no end of messages on a connection', async (t) => {
  const { limits, ...route } = relayRoute(RELAY_LIMITS)
  t.match(route, { site: 'relay', hosts: [], isRelay: true, isOwn: true })
  t.match(limits, { connections: 256, connectionsStart: 256 })
  t.ok(Math.min(limits.messagesPerSecond, limits.messagesPerConnection, limits.connectionsPerMinute) >= 1_000_000)
})
