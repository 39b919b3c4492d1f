/**
 * dane - delivery through a resolver that validates signed zones (unbound over nsd): what a mail server's TLSA records
 * demand is done, and doctor proves that the resolver validates.
 */
import t from 'tap'
import { issuer, makeCertificates, tlsaOf } from '../../support/dnssec/certificates.ts'
import { hasSigners, startSignedZones } from '../../support/dnssec/signed-zones.ts'
import { freePort } from '../../support/machine/port.ts'
import { type MxScript, startMx } from '../../support/peers/mx.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startDelivery, TIMEOUTS } from '../../support/service/delivery.ts'

const made = makeCertificates([
  { name: 'root', extensions: issuer() },
  { name: 'leaf', by: 'root', extensions: 'subjectAltName=DNS:issued.signed.test' },
  { name: 'other', extensions: issuer() },
])
if (made === null || !hasSigners()) {
  t.pass('dane', { skip: 'no openssl, unbound, nsd or ldnsutils' })
  process.exit(0)
}
const { root, leaf, other } = made as Record<'root' | 'leaf' | 'other', { key: string; cert: string }>
const SHOWN = { key: leaf.key, cert: leaf.cert + root.cert }
const smtpPort = await freePort()
/** Each domain is its own mail server. */
const HOSTS = {
  own: ['127.0.78.1', tlsaOf('3 1 1', leaf)],
  issued: ['127.0.78.2', tlsaOf('2 1 1', root)],
  'two-of': ['127.0.78.3', tlsaOf('3 0 2', leaf)],
  wrong: ['127.0.78.4', tlsaOf('3 1 1', other)],
  bogus: ['127.0.78.5', tlsaOf('3 1 1', leaf)],
  none: ['127.0.78.6', null],
} as const
const records = Object.entries(HOSTS).flatMap(([name, [address, tlsa]]) => [
  `${name} MX 10 ${name}`,
  `${name} A ${address}`,
  ...(tlsa === null ? [] : [`_${smtpPort}._tcp.${name} TLSA ${tlsa}`]),
])
const zone = await startZone()
const resolver = await startSignedZones(
  [
    { name: 'signed.test', records, forge: (text) => forgeTlsa(text, 'bogus') },
    { name: 'ietf.org', records: ['@ MX 10 mail', 'mail A 192.0.2.1'] },
    {
      name: 'dnssec-failed.org',
      records: ['@ A 192.0.2.1'],
      forge: (text) => text.replaceAll('192.0.2.1', '192.0.2.2'),
    },
  ],
  zone.server,
)
const delivery = await startDelivery(
  { DNS_SERVERS: resolver.server, DNSSEC: 'trusted', DELIVERY_PORT: String(smtpPort) },
  { zone, smtp: { timeouts: TIMEOUTS } },
)
const { send, messageWhen, operate } = delivery
const receivers = new Map<string, Awaited<ReturnType<typeof startMx>>>()
const listen = async (host: string, script: MxScript) =>
  receivers.set(host, await startMx(script, { host, port: smtpPort }))
for (const [address] of Object.values(HOSTS)) await listen(address, { capabilities: ['STARTTLS'], tls: SHOWN })
await listen('127.0.78.7', { capabilities: [] })
t.teardown(async () => {
  await delivery.stop()
  await Promise.all([...receivers.values()].map((mx) => mx.close()))
  await resolver.close()
})

/** Replaces the first digits of a record after it was signed. */
function forgeTlsa(text: string, host: string): string {
  return text.replace(new RegExp(`^(_\\d+\\._tcp\\.${host}\\.\\S*\\s.*TLSA\\s+3 1 1 )\\S{8}`, 'm'), '$100000000')
}

t.test('dane: signed zones, by the records of the mail server [delivery.dane]', async (t) => {
  for (const [name, dane] of [
    ['own', 'verified'],
    ['issued', 'verified'],
    ['two-of', 'verified'],
    ['none', null],
  ] as const) {
    const { events } = await messageWhen(
      await send([`ann@${name}.signed.test`]),
      ({ status }) => status === 'delivered',
    )
    t.equal(events[0]?.route?.dane, dane, name)
  }
  const wrong = await messageWhen(await send(['ann@wrong.signed.test']), ({ status }) => status === 'deferred')
  t.match(wrong.recipients[0], { code: null, response: /^4\.7\.5 DANE: no verified TLS with wrong\.signed\.test\[/ })
  t.equal(wrong.events[0]?.route?.dane, 'failed')
  const bogus = await messageWhen(await send(['ann@bogus.signed.test']), ({ status }) => status === 'deferred')
  t.match(
    bogus.recipients[0]?.response,
    /^4\.4\.3 DANE: TLSA lookup of _\d+\._tcp\.bogus\.signed\.test failed: ESERVFAIL$/,
  )
  for (const name of ['wrong', 'bogus'] as const)
    t.notMatch(
      receivers
        .get(HOSTS[name][0])
        ?.sessions.flatMap(({ commands }) => commands)
        .join(),
      /MAIL/,
    )
})

t.test('dane: an unsigned domain is served as before [delivery.dane]', async (t) => {
  zone.set('plain.example', { type: 'MX', exchange: 'mx.plain.example', priority: 10 })
  zone.set('mx.plain.example', { type: 'A', address: '127.0.78.7' })
  zone.set(`_${smtpPort}._tcp.mx.plain.example`, { type: 'TLSA', tlsa: tlsaOf('3 1 1', other) })
  const { events } = await messageWhen(await send(['ann@plain.example']), ({ status }) => status === 'delivered')
  t.equal(events[0]?.route?.dane, null)
  t.notOk(zone.asked.some((one) => one.startsWith('TLSA')))
})

t.test('dane: doctor proves that the resolver validates [operator.health]', async (t) => {
  const { json } = await operate('GET /health')
  const findings = json.findings as { name: string; status: string; message: string }[]
  const finding = findings.find(({ name }) => name === 'dnssec')
  t.match(finding, { status: 'ok', message: `${resolver.server} validates with DNSSEC: DANE is used` })
})
