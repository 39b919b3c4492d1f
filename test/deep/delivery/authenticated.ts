/**
 * authenticated - what the service sends, as it arrives: our own judge and the verifiers of others say `pass`, for SPF
 * by the return path, for DKIM by the customer's domain and the service's, and for DMARC with strict alignment.
 */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { DnsBudget } from '../../../src/dns/budget.ts'
import { createResolver } from '../../../src/dns/resolve.ts'
import { judgeMail } from '../../../src/mail/authenticate/judge.ts'
import { until } from '../../support/machine/until.ts'
import { startLinePeer } from '../../support/peers/line-peer.ts'
import { startMx } from '../../support/peers/mx.ts'
import { DKIMPY, MAIL_DKIM, MAIL_SPF, OPENDMARC, PYSPF, type Verifier } from '../../support/peers/verifiers.ts'
import { startZone, type ZoneRecord } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { startTestService } from '../../support/service/service.ts'

/** Where mail goes out from, as the records say: some verifiers pass what comes from the loopback without a look. */
const OUT_ADDRESS = '192.0.2.25'
const SERVICE_DOMAIN = 'service.example'
const CUSTOMER = 'acme.example'
const ARRIVED_MS_MAX = 20_000
const txt = (data: string): ZoneRecord => ({ type: 'TXT', data })

const folder = mkdtempSync(join(tmpdir(), 'sendwright-authenticated-'))
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
writeFileSync(join(folder, 'key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
writeFileSync(join(folder, 'suffixes'), 'example\n')
const ownKey = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
const zone = await startZone()
const mx = await startMx({ capabilities: ['PIPELINING', '8BITMIME'] })
const service = await startTestService({
  DNS_SERVERS: zone.server,
  RELAY_URL: `smtp://127.0.0.1:${mx.port}`,
  SERVICE_DOMAIN,
  SMTP_HOSTNAME: `out.${SERVICE_DOMAIN}`,
  SERVICE_DKIM: `own:${folder}/key.pem`,
})
const resolver = createResolver({ servers: [zone.server], nowMs: () => performance.now() })
t.teardown(async () => {
  await service.stop()
  await mx.close()
  resolver.close()
  await zone.close()
  rmSync(folder, { recursive: true })
})
// What docs/reference/dns.md tells an operator to publish; the customer's two records are made by `verifyDomain`.
zone.set(`own._domainkey.${SERVICE_DOMAIN}`, txt(`v=DKIM1; p=${ownKey}`))
zone.fill((name, type) =>
  name.endsWith(`.rp.${SERVICE_DOMAIN}`) && type === 'TXT' ? [txt(`v=spf1 ip4:${OUT_ADDRESS} -all`)] : [],
)
await verifyDomain(service.config.httpPort, service.firstRun, { zone, domain: CUSTOMER })
zone.set(`_dmarc.${CUSTOMER}`, txt('v=DMARC1; p=reject; adkim=s; aspf=r'))

interface Arrived {
  readonly raw: Buffer
  readonly sender: string
  readonly helo: string
}

let sent = 0

/** Sends a message, and waits for it. */
async function arrive(body: object): Promise<Arrived> {
  sent += 1
  const to = [`person${sent}@there.example`]
  const from = { email: `shop@${CUSTOMER}`, name: 'Shöp' }
  const message = { from, to, subject: `Grüße ${sent}`, text: 'Hello  there \n', ...body }
  const { token } = service.firstRun.liveServer
  const { status, json } = await service.call('POST /v1/email', { token, body: message })
  if (status !== 202 && status !== 200) throw new Error(`${status} ${JSON.stringify(json)}`)
  return await until(() => {
    for (const session of mx.sessions) {
      const at = session.messages.findIndex((one) => one.includes(`<${json.messageId}@`))
      const sender = session.commands.filter((line) => /^MAIL /i.test(line))[at]
      if (at >= 0 && sender !== undefined)
        return {
          raw: Buffer.from(session.messages[at] as string, 'latin1'),
          sender: /<(.*)>/.exec(sender)?.[1] ?? '',
          helo: session.commands.find((line) => /^EHLO /i.test(line))?.split(' ')[1] ?? '',
        }
    }
    return null
  }, ARRIVED_MS_MAX)
}

const lines = (line: string, count: number): string => `${line}\n`.repeat(count)
/** What a client may send. */
const BODIES: [string, object][] = [
  ['plain text', {}],
  ['letters beyond ASCII', { text: lines('Ünïcödé 件名 ', 60) }],
  ['a line of 5,000 characters', { text: 'x'.repeat(5000) }],
  ['dots, blanks and empty lines at the end', { text: '.\n..\n. \n\n\t \n\n\n' }],
  ['bare CR and LF', { text: 'a\rb\nc\r\nd\r' }],
  ['HTML too', { html: `<p>${'Hello  wörld. '.repeat(200)}</p>` }],
  [
    'an attachment, and a picture in the HTML',
    {
      html: '<img src="cid:logo">',
      attachments: [
        { name: 'réport.bin', content: Buffer.alloc(90_000, 7).toString('base64') },
        { name: 'logo.png', content: Buffer.alloc(300, 3).toString('base64'), contentId: 'logo' },
      ],
    },
  ],
  [
    'fields of the client',
    {
      headers: {
        'Reply-To': `Help  <help@${CUSTOMER}>`,
        References: `<${'r'.repeat(300)}@a>  <b@c>`,
        'X-Long': 'y '.repeat(400).trim(),
        'X-Letters': 'Grüße 件名',
      },
    },
  ],
  ['a long subject', { subject: '件'.repeat(300) }],
  ['nothing but a blank, from an address without a name', { from: `shop@${CUSTOMER}`, text: ' ' }],
]
const arrivals = Promise.all(BODIES.map(async ([what, body]) => [what, await arrive(body)] as const))

t.test('authenticated: by our own judge [dkim.signed] [inbound.authentication]', async (t) => {
  for (const [what, { raw, sender, helo }] of await arrivals) {
    const { lookUp } = new DnsBudget(resolver, { nowMs: () => performance.now() })
    const session = { address: sender, ip: OUT_ADDRESS, helo, receiver: 'mx.there.example' }
    const { authentication, findings } = await judgeMail(raw, { sender: session, lookUp, nowMs: Date.now() })
    t.match(authentication, { spf: 'pass', dkim: 'pass', dmarc: 'pass', dmarcPolicy: null, arc: 'none' }, what)
    t.same(
      findings.signatures?.signatures.map(({ domain, verdict }) => `${domain} ${verdict}`),
      [`${CUSTOMER} pass`, `${SERVICE_DOMAIN} pass`],
      what,
    )
    t.same(findings.dmarc?.aligned.dkim, CUSTOMER, what)
    t.equal(findings.dmarc?.aligned.spf, sender.slice(sender.indexOf('@') + 1), 'the return path aligns by itself')
  }
})

/** Asks a verifier about each. */
async function ask(
  t: Test,
  { program, args }: Verifier,
  { rest, job, expected }: { rest: readonly string[]; job: (mail: Arrived) => object; expected: string },
): Promise<void> {
  const peer = startLinePeer(program, [...args, ...rest])
  t.teardown(() => peer.close())
  for (const [what, mail] of await arrivals) t.equal(await peer.ask(job(mail)), expected, what)
}

const port = String(zone.port)
const rawOf = ({ raw }: Arrived): string => raw.toString('base64')
const domainOf = ({ sender }: Arrived): string => sender.slice(sender.indexOf('@') + 1)
/** The key of a signature, as the zone has it. */
const keysOf = async ({ raw }: Arrived): Promise<Record<string, string[]>> => {
  const names = [...raw.toString('latin1').matchAll(/d=([^;]+);\s+s=([^;]+);/g)].map(
    ([, d, s]) => `${s}._domainkey.${d}`,
  )
  const texts = await Promise.all(names.map((name) => resolver.look('TXT', name)))
  return Object.fromEntries(
    names.map((name, at) => {
      const answer = texts[at]
      return [name, answer?.status === 'ok' ? [`TXT ${answer.records[0]?.join('')}`] : []]
    }),
  )
}

t.test('authenticated: by dkimpy', { skip: DKIMPY.missing }, async (t) => {
  const [first] = await arrivals
  const keys = await keysOf(first![1])
  await ask(t, DKIMPY, { rest: [], job: (mail) => ({ raw: rawOf(mail), zone: keys }), expected: 'pass' })
})

t.test('authenticated: by Mail::DKIM', { skip: MAIL_DKIM.missing }, async (t) => {
  await ask(t, MAIL_DKIM, { rest: [port], job: (mail) => ({ raw: rawOf(mail) }), expected: 'pass' })
})

for (const verifier of [PYSPF, MAIL_SPF]) {
  t.test(`authenticated: by ${verifier.name}`, { skip: verifier.missing }, async (t) => {
    const job = ({ sender, helo }: Arrived) => ({ ip: OUT_ADDRESS, sender, helo })
    await ask(t, verifier, { rest: [port], job, expected: 'pass' })
    await ask(t, verifier, { rest: [port], job: (mail) => ({ ...job(mail), ip: '192.0.2.26' }), expected: 'fail' })
  })
}

t.test('authenticated: by OpenDMARC, for DKIM alone and for SPF alone', { skip: OPENDMARC.missing }, async (t) => {
  const rest = [join(folder, 'suffixes'), port]
  const job = { author: CUSTOMER, dkim: [] as string[], spf: '' }
  await ask(t, OPENDMARC, { rest, job: () => ({ ...job, dkim: [CUSTOMER, SERVICE_DOMAIN] }), expected: 'pass' })
  await ask(t, OPENDMARC, { rest, job: (mail) => ({ ...job, spf: domainOf(mail) }), expected: 'pass' })
  await ask(t, OPENDMARC, { rest, job: () => ({ ...job, dkim: [SERVICE_DOMAIN] }), expected: 'fail reject' })
})
