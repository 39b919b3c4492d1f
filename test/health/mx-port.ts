/** mx-port - the service's own mail server, another one, none, a closed port, and addresses that nobody reaches. */
import t from 'tap'
import { createResolver } from '../../src/dns/resolve.ts'
import { examineMxPort } from '../../src/health/mx-port.ts'
import { freePort } from '../support/machine/port.ts'
import { startMx } from '../support/peers/mx.ts'
import { startZone } from '../support/peers/zone.ts'

const HOST = 'mx.svc.acme.net'
const zone = await startZone()
const mx = await startMx()
const resolver = createResolver({ servers: [zone.server], nowMs: () => 0 })
t.teardown(async () => {
  resolver.close()
  await mx.close()
  await zone.close()
})
const config = {
  serviceDomain: 'svc.acme.net',
  smtpHostname: 'out.svc.acme.net',
  deliveryPort: mx.port,
  privateNetworksAllowed: ['127.0.0.0/8'],
}
const look = (changes: Partial<typeof config> = {}, roles: readonly string[] = ['mx']) =>
  examineMxPort({ resolver, config: { ...config, ...changes }, livingRoles: async () => new Set(roles) })

t.test('health: without a process that takes bounces nothing is tried [operator.health]', async (t) => {
  t.match(await look({}, ['http', 'actors']), { name: 'mx-port', status: 'ok', message: /^Not checked/, fix: null })
})

t.test('health: what was seen of MX_PORT, and what is not known from here [operator.health]', async (t) => {
  t.match(await look(), { status: 'failed', message: `${HOST} has no address` })
  zone.set(HOST, { type: 'A', address: '127.0.0.1' })
  mx.script({ banner: '220 out.svc.acme.net ESMTP' })
  const well = await look()
  t.match(well, { status: 'ok', message: /greets on port \d+; these are addresses of the machine itself/, fix: null })
  t.match(well.message, /a firewall in front may still block others.*nc -v mx\.svc\.acme\.net/)
  mx.script({ banner: '220 mail.elsewhere.net ESMTP' })
  t.match(await look(), { status: 'failed', message: /^Another server answers .*mail\.elsewhere\.net/, fix: /MX_PORT/ })
  const closed = await look({ deliveryPort: await freePort() })
  t.match(closed, { status: 'warning', message: /ECONNREFUSED.*may still reach the port$/, fix: /firewall/ })
  zone.fail(HOST, 'servfail')
  t.match(await look(), { status: 'warning', message: `DNS did not answer about ${HOST}` })
  t.ok(
    mx.sessions.every(({ commands }) => commands.every((command) => command === 'QUIT')),
    'no mail is begun',
  )
})

t.test('health: an address that nobody outside reaches is told as that [operator.health]', async (t) => {
  for (const address of ['10.0.0.5', '192.168.1.9', '100.64.3.3', '169.254.1.1', '127.0.0.1']) {
    zone.set(HOST, { type: 'A', address })
    const found = await look({ privateNetworksAllowed: ['10.0.0.0/8'] })
    t.match(found, { status: 'failed', message: `${HOST} is ${address}, which is not reachable from outside` })
    t.notMatch(found.fix, address)
  }
})
