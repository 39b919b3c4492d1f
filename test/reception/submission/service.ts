/** Submission to a whole service: the API's decisions over SMTP, one by one, and the log afterwards. */

import t from 'tap'
import { until } from '../../support/machine/until.ts'
import type { SmtpDialog } from '../../support/peers/smtp-dialog.ts'
import { openSubmission, submitMail } from '../../support/peers/submission.ts'
import { startTestService } from '../../support/service/service.ts'

const WAIT_MS = 20_000
const service = await startTestService()
const { firstRun, config } = service
const { account, testServer, liveServer, operatorToken } = firstRun
t.teardown(() => service.stop())

const MAIL = 'From: you@simulator.test\nTo: person@simulator.test\nSubject: Hello\n\nHello there\n'
const TO = ['person@simulator.test']
const ACCEPTED = /^250 2\.0\.0 accepted ([\da-f-]{36})$/

const open = (password: string = testServer.token, username = 'x', port = config.submissionPort): Promise<SmtpDialog> =>
  openSubmission(port, { password, username })

async function submit(mail: string, { dialog, to = TO }: { dialog?: SmtpDialog; to?: readonly string[] } = {}) {
  const used = dialog ?? (await open())
  const reply = await submitMail(used, to, mail)
  if (dialog === undefined) used.end()
  return reply
}

const idOf = (reply: string): string => ACCEPTED.exec(reply)?.[1] ?? reply

async function message(id: string) {
  return (await service.call(`GET /v1/messages/${id}`, { token: testServer.token })).json
}

const operate = (what: string, body: object = {}) =>
  service.operate(what.replace(' ', ' /v1/operator'), { token: operatorToken, body })

async function makeStream(kind: string, name: string): Promise<string> {
  const made = await service.call('POST /v1/streams', { token: testServer.token, body: { kind, name } })
  return made.json.streamId
}

t.test("submission: a Sender of a domain that is not the account's is refused [submission.header]", async (t) => {
  const mail = (sender: string) => MAIL.replace('To:', `Sender: ${sender}\nTo:`)
  t.match(await submit(mail('boss@bank.example')), /^550 5\.7\.1 domain_not_verified .* bank\.example /)
  t.match(await submit(mail('Ann <ann@simulator.test>')), ACCEPTED)
})

t.test(
  'submission: a message is sent, simulated, announced and shown like one of the API [submission.log]',
  async (t) => {
    const html =
      'Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/html\n\n<p>Hi</p>\n--b\nContent-Type: image/png\nContent-Disposition: inline; filename="a.png"\nContent-ID: <pic>\nContent-Transfer-Encoding: base64\n\nAAAA\n--b--\n'
    const fields = 'X-Sendwright-Tag: welcome\nX-Sendwright-Metadata-orderId: 17\nX-Own: yes\n'
    const mail = `${fields}From: "You" <you@simulator.test>\nTo: P <person@simulator.test>\nCc: bounce@simulator.test\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\nMessage-ID: <1@app.test>\n${html}`
    const id = idOf(
      await submit(mail, { to: ['person@simulator.test', 'bounce@simulator.test', 'blind@simulator.test'] }),
    )
    const seen = await until(async () => {
      const one = await message(id)
      return one.events?.length === 3 ? one : null
    }, WAIT_MS)
    t.match(seen, {
      source: 'smtp',
      test: true,
      status: 'mixed',
      from: { email: 'you@simulator.test', name: 'You' },
      subject: 'Grüße',
      tag: 'welcome',
      metadata: { orderId: '17' },
      headers: { 'X-Own': 'yes' },
      messageIdHeader: '<1@app.test>',
      text: null,
      html: '<p>Hi</p>',
      attachmentCount: 1,
      attachments: [{ name: 'a.png', contentType: 'image/png', contentId: 'pic', size: 3, inline: true }],
    })
    t.same(
      seen.recipients.map((one: { kind: string; name: string; status: string }) => [one.kind, one.name, one.status]),
      [
        ['to', 'P', 'delivered'],
        ['cc', null, 'bounced'],
        ['bcc', null, 'delivered'],
      ],
    )
    t.ok(seen.sizeBytes > mail.length)
    const found = await service.call('POST /v1/messages/search', {
      token: testServer.token,
      body: { source: 'smtp', tag: 'welcome', recipient: 'bounce@simulator.test' },
    })
    t.same(found.json.messages.length, 1)
    const again = idOf(await submit(MAIL, { to: ['bounce@simulator.test'] }))
    t.match((await message(again)).recipients, [{ status: 'suppressed' }], 'its list holds')
    const { json } = await service.call('GET /v1/server', { token: testServer.token })
    t.equal(json.limits[0].used + json.limits[1].used >= 4, true, 'and it is counted')
  },
)

t.test('submission: over TLS from the first byte, on the other port', async (t) => {
  const { createTransport } = await import('nodemailer')
  const auth = { user: 'x', pass: testServer.token }
  const tls = { rejectUnauthorized: false }
  const transport = createTransport({ host: '127.0.0.1', port: config.submissionTlsPort, secure: true, auth, tls })
  const sent = await transport.sendMail({ from: 'you@simulator.test', to: TO[0], subject: 'x', text: 'Hi' })
  t.match(sent.response, ACCEPTED)
  transport.close()
})

t.test('submission: the user name selects the stream, the control field another one [submission.stream]', async (t) => {
  const [named, other] = [await makeStream('transactional', 'Named'), await makeStream('transactional', 'Other')]
  const streamOf = async (username: string, mail = MAIL) => {
    const dialog = await open(testServer.token, username)
    const { streamId } = await message(idOf(await submit(mail, { dialog })))
    dialog.end()
    return streamId
  }
  t.equal(await streamOf(named), named)
  t.equal(await streamOf(named.toUpperCase()), named)
  t.equal(await streamOf(named, `X-Sendwright-Stream: ${other}\n${MAIL}`), other)
  for (const username of ['', 'apikey', testServer.serverId, liveServer.streamId, 'ö'])
    t.equal(await streamOf(username), testServer.streamId, `${username} is any other text`)
})

/** The refused messages, and the replies. In: a stream of each kind. */
t.test('submission: the refusals of the decision [submission.replies]', async (t) => {
  const archived = await makeStream('transactional', 'Archived')
  await service.call(`POST /v1/streams/${archived}/archive`, { token: testServer.token })
  const paused = await makeStream('broadcast', 'Paused')
  await operate(`POST /streams/${paused}/pause`)
  const stream = (id: string) => `X-Sendwright-Stream: ${id}\n${MAIL}`
  const lines = `${MAIL}${`${'x'.repeat(998)}\n`.repeat(10_600)}`.replace(/\n/g, '\r\n')
  // It fits as submitted, and not with the added fields.
  const large = `${lines.slice(0, 10_485_760 - 102)}\r\n`
  for (const [mail, reply] of [
    [MAIL.replace('simulator', 'unknown'), /^550 5\.7\.1 domain_not_verified .* unknown\.test /],
    [stream(liveServer.streamId), /^550 5\.7\.1 stream_not_found /],
    [stream(archived), /^550 5\.7\.1 stream_archived /],
    [stream(paused), /^550 5\.7\.1 stream_paused /],
    [stream('x'), /^554 5\.6\.0 invalid_request X-Sendwright-stream must be the id of a stream$/],
    [MAIL.replace('From', 'Sender'), /^554 5\.6\.0 invalid_request From is missing$/],
    [`${'Received: x\n'.repeat(51)}${MAIL}`, /^554 5\.4\.6 /],
    [large, /^552 5\.3\.4 message_too_large /],
    ['', /^554 5\.6\.0 /],
  ] as const)
    t.match(await submit(mail), reply)
  const live = await open(liveServer.token)
  t.match(
    await submit(MAIL, { dialog: live }),
    /^550 5\.7\.1 domain_not_verified /,
    'the simulator’s is for test servers',
  )
  live.end()
  await operate(`POST /accounts/${account.accountId}/pause`)
  t.match(await submit(MAIL), /^550 5\.7\.1 account_paused /)
  await operate(`POST /accounts/${account.accountId}/resume`)
})

t.test('submission: limits: the queue waits for a minute, and not for a month [submission.rate]', async (t) => {
  const set = (body: object) => operate(`PATCH /accounts/${account.accountId}`, body)
  await set({ testPerMinuteLimit: 2 })
  // Whatever was sent in this minute, three are too many for any.
  t.match(
    await submit(MAIL, { to: ['a', 'b', 'c'].map((name) => `${name}@simulator.test`) }),
    /^550 5\.7\.1 rate_limited /,
  )
  await until(async () => (await submit(MAIL)).startsWith('451 4.7.1 rate_limited '), WAIT_MS)
  await set({ testPerMinuteLimit: 1_000_000, testMonthlyCap: 1 })
  t.match(await submit(MAIL), /^550 5\.7\.1 cap_reached /)
  await set({ testMonthlyCap: 1_000_000 })
  t.match(await submit(MAIL), ACCEPTED)
})

t.test('submission: an Idempotency-Key, shared with the API [submission.fingerprint]', async (t) => {
  const mail = `X-Sendwright-Idempotency-Key: order 17\n${MAIL}`
  const first = await submit(mail)
  t.match(first, ACCEPTED)
  const used = async () => (await service.call('GET /v1/server', { token: testServer.token })).json.limits[1].used
  const before = await used()
  t.equal(
    await submit(`Date: Mon, 23 Nov 2026 09:00:00 +0000\nMessage-ID: <2@app.test>\n${mail}`),
    first,
    'a second try',
  )
  const replies = await Promise.all(Array.from({ length: 5 }, () => submit(mail)))
  t.same(new Set(replies), new Set([first]), 'and five at once')
  t.equal(await used(), before, 'count nothing')
  t.match(await submit(`${mail}more\n`), /^550 5\.7\.1 idempotency_key_reused /)
  t.match(await submit(mail, { to: ['other@simulator.test'] }), /^550 5\.7\.1 idempotency_key_reused /)
  const body = { from: 'you@simulator.test', to: TO, subject: 'Hello', text: 'Hello there\n' }
  const headers = { 'idempotency-key': 'order 17' }
  const asked = await service.call('POST /v1/email', { token: testServer.token, body, headers })
  t.match(asked, { status: 422, json: { error: 'idempotency_key_reused' } })
  const without = await Promise.all([submit(MAIL), submit(MAIL)])
  t.equal(new Set(without).size, 2, 'without a key they are two')
})

t.test('submission: the accepted passwords, and a key that is revoked meanwhile [submission.login]', async (t) => {
  for (const [password, reply] of [
    ['x', /^535 5\.7\.8 unauthorized /],
    [account.token, /^535 5\.7\.8 wrong_token_kind /],
    [operatorToken, /^535 5\.7\.8 unauthorized /],
  ] as const)
    await t.rejects(open(password), { message: reply })
  const made = await service.call('POST /v1/tokens', { token: testServer.token, body: { name: 'second' } })
  const { token, tokenId } = made.json
  const [atMail, afterData] = [await open(token), await open(token)]
  for (const line of ['MAIL FROM:<a@b.co>', 'RCPT TO:<person@simulator.test>', 'DATA']) await afterData.say(line)
  await service.call(`POST /v1/tokens/${tokenId}/revoke`, { token: testServer.token })
  t.match(await atMail.say('MAIL FROM:<a@b.co>'), /^535 5\.7\.8 unauthorized /)
  t.match(await afterData.say(`${MAIL.replace(/\n/g, '\r\n')}.`), /^550 5\.7\.1 unauthorized /)
  await t.rejects(open(token), { message: /^535 5\.7\.8 unauthorized / })
  for (const dialog of [atMail, afterData]) dialog.end()
})

t.test('submission: figures for the operator', async (t) => {
  const { text } = await service.operate('GET /metrics')
  t.match(text, /^sendwright_submission_replies_total\{what="login",code="235"\} \d+$/m)
  t.match(text, /^sendwright_submission_replies_total\{what="login",code="unauthorized"\} 3$/m)
  t.match(text, /^sendwright_submission_replies_total\{what="message",code="250"\} \d+$/m)
  t.match(text, /^sendwright_submission_replies_total\{what="message",code="stream_paused"\} 1$/m)
  const dialog = await open()
  t.match((await service.operate('GET /metrics')).text, /^sendwright_submission_connections [1-9]\d*$/m)
  dialog.end()
})

t.test('submission: a service that stops and starts again', async (t) => {
  const dialog = await open()
  const restarted = service.restart()
  t.match(await dialog.say(null), /^421 4\.3\.2 /)
  await restarted
  t.match(await submit(MAIL), ACCEPTED)
})
