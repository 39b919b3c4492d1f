/** returned-mail - live mail to a scripted server, and the reports about it, over real SMTP into a running service. */
import t from 'tap'
import { formatReturnPath } from '../../../src/mail/return-path.ts'
import { makeSecrets } from '../../../src/process/secrets.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startTestService } from '../../support/service/service.ts'
import { ringOf } from '../../support/world/rings.ts'

const zone = await startZone()
const mx = await startMx()
const service = await startTestService({
  DNS_SERVERS: zone.server,
  DELIVERY_PORT: String(mx.port),
  PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
  SERVICE_DOMAIN: 'service.example',
  CONTENT_STORE: 'file',
})
const { account, liveServer, operatorToken } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await mx.close()
  await zone.close()
})
const port = service.config.mxPort
const token = liveServer.token
const { tokenKey } = makeSecrets(ringOf(service.config.secretKey as string))

const added = await service.call('POST /v1/domains', { token: account.token, body: { domain: 'live.example' } })
zone.set(added.json.returnPath.host, { type: 'CNAME', domain: added.json.returnPath.value })
zone.set(added.json.dkim.host, { type: 'TXT', data: added.json.dkim.value.match(/.{1,255}/g) })
const verify = () => service.call(`POST /v1/domains/${added.json.domainId}/verify`, { token: account.token })
await verify()
zone.set('there.example', { type: 'MX', exchange: 'mx.there.example', priority: 10 })
zone.set('mx.there.example', { type: 'A', address: '127.0.0.1' })

const readMessage = async (id: string) => (await service.call(`GET /v1/messages/${id}`, { token })).json
const listed = async (recipient: string) =>
  (await service.call('POST /v1/suppressions/search', { token, body: { recipient } })).json.suppressions

/** Sends a live message to one address. Returns its id and the return path that the server got. */
async function send(to: string): Promise<{ id: string; returnPath: string }> {
  const before = mx.sessions.length
  const sent = await service.call('POST /v1/email', {
    token,
    body: { from: 'shop@live.example', to: [to], subject: 'Hello', text: 'Mail' },
  })
  await until(async () => ((await readMessage(sent.json.messageId)).status === 'delivered' ? true : null), 10_000)
  const said = mx.sessions.slice(Math.max(0, before - 1)).flatMap(({ commands }) => commands)
  const returnPath = said.map((line) => /^MAIL FROM:<([^>]*)>/.exec(line)?.[1]).findLast(Boolean) ?? ''
  return { id: sent.json.messageId, returnPath }
}

const status = (action: string, code: string, diagnostic = '') => `From: MAILER-DAEMON@mx.there.example
To: sender
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b"

--b
Content-Type: text/plain

I'm sorry.

--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.there.example

Final-Recipient: rfc822; forwarded@elsewhere.example
Action: ${action}
Status: ${code}
${diagnostic === '' ? '' : `Diagnostic-Code: smtp; ${diagnostic}\n`}
--b
Content-Type: message/rfc822

Subject: Hello

Mail
--b--
`

const complaint = (type: string, returnPath: string, id = '') => `From: staff@provider.example
Subject: FW: Hello
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

This is an email abuse report.

--b
Content-Type: message/feedback-report

Feedback-Type: ${type}
User-Agent: Loop/1.0
Version: 1

--b
Content-Type: message/rfc822

Return-Path: <${returnPath}>
X-Sendwright-Id: ${id}
Subject: Hello

Mail
--b--
`

t.test(
  'returned-mail, delivery 35: a failed delivery becomes bounced after delivered, once, and suppresses [bounce.dsn] [bounce.once]',
  async (t) => {
    const { id, returnPath } = await send('gone@there.example')
    t.match(returnPath, /^b-[a-z2-7]{40}@sw-bounce\.live\.example$/)
    const dsn = status('failed', '5.1.1', '550 5.1.1 <forwarded@elsewhere.example> unknown')
    t.match(await deliverMail(port, returnPath.toUpperCase(), dsn), /^250 /)
    const message = await readMessage(id)
    t.equal(message.status, 'bounced')
    t.same(
      message.events.map(({ event }: { event: string }) => event),
      ['delivered', 'bounced'],
    )
    t.strictSame(message.events[1].details, {
      code: 550,
      response: '550 5.1.1 <<address>> unknown',
      classification: 'InvalidRecipient',
      hard: true,
      expired: false,
    })
    t.match(await listed('gone@there.example'), [{ reason: 'hard_bounce', messageId: id, code: 550, liftable: true }])
    t.match(await deliverMail(port, returnPath, status('failed', '5.2.2')), /^250 /)
    t.equal((await readMessage(id)).events.length, 2)
  },
)

t.test(
  'returned-mail, delivery 35: delays, automatic answers and people change nothing; 4.4.7 is expired [bounce.dsn] [bounce.text]',
  async (t) => {
    const { id, returnPath } = await send('slow@there.example')
    const answer =
      'From: Ada <slow@there.example>\nSubject: Automatic reply: Hello\nAuto-Submitted: auto-replied\n\nI am away.\n'
    for (const mail of [status('delayed', '4.4.1'), answer, 'Subject: Re: Hello\n\nThanks!\n', 'no header at all'])
      t.match(await deliverMail(port, returnPath, mail), /^250 /)
    t.equal((await readMessage(id)).status, 'delivered')
    t.match(await deliverMail(port, returnPath, status('failed', '4.4.7')), /^250 /)
    const message = await readMessage(id)
    t.match(message.events.at(-1), {
      event: 'bounced',
      details: { classification: 'MessageExpired', expired: true, hard: false },
    })
    t.same(await listed('slow@there.example'), [])
  },
)

t.test('returned-mail: only a report of a dead recipient suppresses [message.hard] [bounce.dsn]', async (t) => {
  const dead = "5.1.0 - Unknown address error 550-'5.1.1 <x@y.example>... User unknown' (delivery attempts: 0)"
  const rate = '550 5.2.1 The user you are trying to contact is receiving mail at a rate that prevents delivery'
  const cases: [name: string, mail: string, isListed: boolean][] = [
    ['rate', status('failed', '5.2.1', rate), false],
    ['gateway', status('failed', '5.0.0', dead), true],
    ['loose', status('failed', '5.1.1', '550 5.1.1 unknown').replace('boundary="b"', 'boundary="c"'), true],
    ['robot', 'From: Robot <robot@there.example>\nSubject: Undeliverable: Hello\n\n550 5.1.1 user unknown\n', true],
    ['reply', 'From: Ann <ann@there.example>\nSubject: Re: Hello\n\n> 550 5.1.1 user unknown\n', false],
  ]
  for (const [name, mail, isListed] of cases) {
    const { id, returnPath } = await send(`${name}@there.example`)
    t.match(await deliverMail(port, returnPath, mail), /^250 /)
    t.equal((await readMessage(id)).status, name === 'reply' ? 'delivered' : 'bounced', name)
    t.equal((await listed(`${name}@there.example`)).length, isListed ? 1 : 0, name)
  }
})

t.test('returned-mail: the accepted addresses [bounce.recipient] [complaint.address]', async (t) => {
  const { id, returnPath } = await send('rcpt@there.example')
  const flipped = returnPath.replace(/^b-./, (start) => `b-${start.endsWith('a') ? 'c' : 'a'}`)
  const of = (host: string, messageId = id) => formatReturnPath(tokenKey, { messageId, recipient: 0, host })
  const cases: [recipient: string, reply: RegExp][] = [
    [flipped, /^550 5\.1\.1 /],
    [of('sw-bounce.live.example', '01a1f8d8-8300-7000-8000-0e7faee555a7'), /^550 5\.1\.1 /],
    [formatReturnPath(tokenKey, { messageId: id, recipient: 7, host: 'sw-bounce.live.example' }), /^550 5\.1\.1 /],
    [of('sw-bounce.other.example'), /^550 5\.1\.1 /],
    [of('elsewhere.example'), /^550 5\.7\.1 Relaying denied/],
    ['person@sw-bounce.live.example', /^550 5\.7\.1 Relaying denied/],
    ['person@example.net', /^550 5\.7\.1 Relaying denied/],
    ['person@rp.service.example', /^550 5\.1\.1 /],
    ['person@[127.0.0.1]', /^501 5\.1\.3 /],
    ['abuse@rp.service.example', /^250 /],
    ['Postmaster@RP.service.example', /^250 /],
    ['fbl@rp.service.example', /^250 /],
    [of('rp.service.example'), /^250 /],
    [of(added.json.returnPath.value), /^250 /],
    [`abuse@${added.json.returnPath.value}`, /^550 5\.1\.1 /],
  ]
  for (const [recipient, reply] of cases)
    t.match(await deliverMail(port, recipient, 'Subject: Hello\n\nHello\n'), reply, recipient)
  t.equal((await readMessage(id)).status, 'delivered')
})

t.test(
  'returned-mail, delivery 36: complaints by a return path count, once; others do not [complaint.arf] [complaint.once]',
  async (t) => {
    const fbl = 'fbl@rp.service.example'
    const { id, returnPath } = await send('angry@there.example')
    for (const mail of [
      ...['not-spam', 'auth-failure', 'dmarc', 'virus', 'miscategorized', 'opt-out', 'opt-out-list'].map((type) =>
        complaint(type, returnPath),
      ),
      complaint('abuse', `b-${'a'.repeat(40)}@x.example`, id),
      complaint('abuse', '', id),
    ])
      t.match(await deliverMail(port, fbl, mail), /^250 /)
    t.equal((await readMessage(id)).events.length, 1)
    t.same(await listed('angry@there.example'), [])
    for (let round = 0; round < 2; round += 1)
      t.match(await deliverMail(port, fbl, complaint('abuse', returnPath, id)), /^250 /)
    const message = await readMessage(id)
    t.equal(message.status, 'delivered')
    t.type(message.recipients[0].complainedAt, 'string')
    t.same(message.events.map(({ event, details }: { event: string; details: object }) => [event, details]).slice(1), [
      ['spam_complaint', { feedbackType: 'abuse' }],
    ])
    t.match(await listed('angry@there.example'), [{ reason: 'spam_complaint', liftable: false, messageId: id }])
    const again = await service.call('POST /v1/email', {
      token,
      body: { from: 'shop@live.example', to: ['Angry@there.example'], subject: 'Hello', text: 'Mail' },
    })
    t.equal((await readMessage(again.json.messageId)).status, 'suppressed')
    const metrics = (await service.operate('GET /metrics', { token: operatorToken })).text
    if (service.config.isWhole) t.match(metrics, /sendwright_received_total\{kind="complaint_without_token"\} 2/)
    if (service.config.isWhole) t.match(metrics, /sendwright_received_total\{kind="no_complaint"\} 5/)
  },
)

t.test('returned-mail: one mail to several return paths is recorded for each', async (t) => {
  const [one, two] = [await send('one@there.example'), await send('two@there.example')]
  t.match(await deliverMail(port, [one.returnPath, two.returnPath], status('failed', '5.1.1')), /^250 /)
  for (const { id } of [one, two]) t.equal((await readMessage(id)).status, 'bounced')
})

t.test('returned-mail: a domain whose records are missing has a grace period [bounce.grace]', async (t) => {
  const { id, returnPath } = await send('grace@there.example')
  zone.set(added.json.returnPath.host)
  await until(async () => ((await verify()).json.failingSince === null ? null : true), 10_000)
  t.match(await deliverMail(port, returnPath, status('failed', '5.1.1')), /^451 4\.4\.3 /)
  t.equal((await readMessage(id)).status, 'delivered')
  zone.set(added.json.returnPath.host, { type: 'CNAME', domain: added.json.returnPath.value })
  await until(async () => ((await verify()).json.failingSince === null ? true : null), 10_000)
  t.match(await deliverMail(port, returnPath, status('failed', '5.1.1')), /^250 /)
  t.equal((await readMessage(id)).status, 'bounced')
})

t.test(
  'returned-mail: complaints about a removed domain still count, and its return path is unknown [complaint.arf] [bounce.recipient]',
  async (t) => {
    const { id, returnPath } = await send('left@there.example')
    const { status: removed } = await service.call(`DELETE /v1/domains/${added.json.domainId}`, {
      token: account.token,
    })
    t.ok(removed < 300, String(removed))
    t.match(await deliverMail(port, returnPath, status('failed', '5.1.1')), /^550 5\.1\.1 /)
    t.match(await deliverMail(port, 'fbl@rp.service.example', complaint('abuse', returnPath, id)), /^250 /)
    t.match((await readMessage(id)).events.at(-1), { event: 'spam_complaint', details: { feedbackType: 'abuse' } })
    t.match(await listed('left@there.example'), [{ reason: 'spam_complaint', messageId: id }])
  },
)
