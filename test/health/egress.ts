/** egress - sources whose names, reverse names and passwords are right or wrong. */

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import { type DnsDeps, examineSpf, reverseName } from '../../src/health/dns.ts'
import { examineEgress, sourceAddresses } from '../../src/health/egress.ts'
import type { StoredEgress } from '../../src/state/egress.ts'
import { deriveRingKeys, Ring } from '../../src/state/ring/ring.ts'
import { relayPasswordOwner } from '../../src/state/ring/sealed-values.ts'
import { sealSecret } from '../../src/state/ring/sealing.ts'
import { startZone } from '../support/peers/zone.ts'
import { egressDocument } from '../support/world/egress.ts'

const zone = await startZone()
const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
t.teardown(async () => {
  resolver.close()
  await zone.close()
})
const ring = new Ring(deriveRingKeys('a secret of the test'))
const config = {
  serviceDomain: 'svc.acme.net',
  inboundDomain: 'in.svc.acme.net',
  smtpHostname: 'out.svc.acme.net',
  dnsServers: [],
  privateNetworksAllowed: [],
}
const deps: DnsDeps = { resolver, config }

const stored = (passwords: [string, string][] = []): StoredEgress => ({
  version: 1,
  changedAtMs: 0,
  document: egressDocument({
    sources: [
      { name: 'one', address: '192.0.2.7', ehlo: 'one.acme.net' },
      { name: 'inside', address: '10.0.0.7' },
      { name: 'by', relay: 'smtp://user@relay.acme.net', password: 'x' },
    ],
  }),
  passwords: new Map(passwords),
})
const sealed = sealSecret(ring, { secret: Buffer.from('x'), owner: relayPasswordOwner('by'), nonce: randomBytes(12) })

t.test('egress: each public address has its name and the name has it [operator.health]', async (t) => {
  t.match(await examineEgress(deps, ring, stored()), { status: 'failed', message: /^one: one\.acme\.net.* no address/ })
  zone.set('one.acme.net', { type: 'A', address: '192.0.2.7' })
  t.match(await examineEgress(deps, ring, stored()), { status: 'failed', message: /^one: 192\.0\.2\.7 has no name/ })
  zone.set(reverseName('192.0.2.7'), { type: 'PTR', domain: 'one.acme.net' })
  t.match(await examineEgress(deps, ring, stored([['by', sealed.toString('base64')]])), { status: 'ok' })
  t.match(await examineEgress(deps, ring, stored([['by', 'damaged']])), {
    status: 'failed',
    message: /^by: the stored password of its relay cannot be opened/,
    fix: /egress apply/,
  })
  t.match(await examineEgress(deps, ring, null), { status: 'failed' })
  const none = { ...stored(), document: egressDocument({}) }
  t.match(await examineEgress(deps, ring, none), { status: 'ok', message: /as the settings say/ })
})

t.test('egress: the SPF record names the addresses of all sources [operator.health]', async (t) => {
  t.same(sourceAddresses(stored(), []), ['192.0.2.7'])
  for (const host of ['rp.svc.acme.net', '0123456789abcdef.rp.svc.acme.net'])
    zone.set(host, { type: 'TXT', data: ['v=spf1 ip4:192.0.2.1 -all'] })
  t.match(await examineSpf(deps, ['192.0.2.1'], ['192.0.2.7']), {
    status: 'failed',
    message: /does not name 192\.0\.2\.7/,
    fix: /ip4:192\.0\.2\.1 ip4:192\.0\.2\.7 -all/,
  })
  t.match(await examineSpf(deps, ['192.0.2.1']), { status: 'ok' })
})
