/**
 * Mail handed over by SMTP, as it arrives: the bytes that were written but for the fields that are named, signed, to
 * each recipient, again the same after a deferral, from either store; and nothing of it is kept when it has ended.
 */

import { Resolver } from 'node:dns/promises'
import { Redis } from 'ioredis'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import type { FakeMx } from '../support/peers/mx.ts'
import { openSubmission, submitMail } from '../support/peers/submission.ts'
import { startDelivery } from '../support/service/delivery.ts'

const WAIT_MS = 20_000
const KB = 1024

const delivery = await startDelivery({ SMTP_HOSTNAME: 'smtp.service.example', CONTENT_STORE: 'file' })
const { service, zone } = delivery
const token = service.firstRun.liveServer.token
const redis = new Redis({ path: service.redis.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
})

async function submit(recipients: readonly string[], mail: string): Promise<string> {
  const dialog = await openSubmission(service.config.submissionPort, { password: token })
  const reply = await submitMail(dialog, recipients, mail)
  dialog.end()
  const id = /^250 2\.0\.0 accepted ([\da-f-]{36})$/.exec(reply)?.[1]
  if (id === undefined) throw new Error(reply)
  return id
}

/** Messages that a server has taken. */
const messagesOf = ({ sessions }: FakeMx) => sessions.flatMap(({ messages }) => messages)

/** The same, once there are `count`. */
const arrived = (mx: FakeMx, count: number) =>
  until(() => {
    const all = messagesOf(mx)
    return all.length >= count ? all : null
  }, WAIT_MS)

/** Verdicts on the signatures of a message, by a verifier that is not ours, which asks the zone. */
async function verdicts(message: string): Promise<string[]> {
  const dns = new Resolver()
  dns.setServers([zone.server])
  const resolver = (name: string, type: string) => dns.resolve(name, type) as Promise<string[] | string[][]>
  const { results } = await dkimVerify(Buffer.from(message, 'latin1'), { resolver })
  return results.map((one: { signingDomain?: string; status: { result: string } }) => {
    return `${one.signingDomain}: ${one.status.result}`
  })
}

const HEADER = [
  'Received: from elsewhere by somewhere; Mon, 23 Nov 2026 08:00:00 +0000',
  'X-Sendwright-Tag: order',
  'Bcc: secret@there.test',
  'From : "Sh\xf6p" <shop@acme.example>',
  'To: ann@there.test,\n\tbob@there.test',
  'Subject: raw \xc3\xbcmlaut\n  folded',
  'Date: Mon, 23 Nov 2026 09:00:00 +0100',
  'Message-ID: <own@acme.example>',
  'X-Odd:   blanks   stay  ',
  'MIME-Version: 1.0',
  'Content-Type: text/plain; charset=utf-8',
  'Content-Transfer-Encoding: 8bit',
].join('\n')
const BODY = `ümlaut and 😀\n.dot\n..dots\n\ttab  \n\n${'long '.repeat(300)}\n\n\n`
const utf8 = (text: string) => Buffer.from(text).toString('latin1')
const crlf = (text: string) => text.replace(/\n/g, '\r\n')
/** What must arrive: all but the fields that are named. */
const KEPT = crlf(`${HEADER.split('\n').slice(3).join('\n')}\n\n${utf8(BODY)}`)

t.test('submission: what arrives is what was written, signed [submission.header, dkim.signed]', async (t) => {
  const mx = await delivery.destination('there.test')
  const id = await submit(['ann@there.test', 'bob@there.test', 'secret@there.test'], `${HEADER}\n\n${utf8(BODY)}`)
  const messages = await arrived(mx, 3)
  t.equal(new Set(messages).size, 1, 'the same for all its recipients')
  const [message = ''] = messages
  t.equal(message.slice(-KEPT.length), KEPT)
  const added = message.slice(0, -KEPT.length).replace(/\r\n[ \t]+/g, ' ')
  t.match(
    added.split('\r\n'),
    [
      new RegExp(`^Received: by smtp\\.service\\.example \\(Sendwright\\) with ESMTPSA id ${id}; `),
      /^DKIM-Signature: v=1; a=rsa-sha256; c=relaxed\/relaxed; d=acme\.example; /,
      `X-Sendwright-Id: ${id}`,
      /^Feedback-ID: [\w-]{8}:[\da-f]{8}:[\da-f]{8}:sw[\da-f]{10}$/,
      '',
    ],
    'and before it no other field',
  )
  t.same(await verdicts(message), ['acme.example: pass'])
  const commands = mx.sessions.flatMap(({ commands }) => commands)
  const froms = commands.filter((line) => line.startsWith('MAIL FROM'))
  t.equal(new Set(froms).size, 3, 'a return path for each')
  t.ok(froms.every((line) => /^MAIL FROM:<b-[a-z2-7]{40}@sw-bounce\.acme\.example>/.test(line)))
  const seen = await delivery.messageWhen(id, ({ status }) => status === 'delivered')
  t.match(seen, {
    source: 'smtp',
    tag: 'order',
    messageIdHeader: '<own@acme.example>',
    subject: 'raw ümlaut  folded',
    from: { email: 'shop@acme.example' },
    text: BODY,
    headers: { 'X-Odd': 'blanks   stay' },
    sizeBytes: message.length - (message.indexOf('X-Sendwright-Id') as number),
  })
  t.same(
    seen.recipients.map(({ recipient, kind }) => `${kind} ${recipient}`),
    ['to ann@there.test', 'to bob@there.test', 'bcc secret@there.test'],
  )
})

t.test('submission: bytes above ASCII are announced where that is offered, and sent in any case', async (t) => {
  const plain = await delivery.destination('plain.test')
  const eight = await delivery.destination('eight.test', { capabilities: ['8BITMIME', 'PIPELINING'] })
  await submit(['a@plain.test', 'a@eight.test'], `From: shop@acme.example\n\n${utf8(BODY)}`)
  for (const [mx, isOffered] of [
    [plain, false],
    [eight, true],
  ] as const) {
    const [message = ''] = await arrived(mx, 1)
    t.ok(message.endsWith(crlf(`From: shop@acme.example\n\n${utf8(BODY)}`)))
    t.equal(
      mx.sessions.some(({ commands }) => commands.some((line) => / BODY=8BITMIME/.test(line))),
      isOffered,
    )
    t.same(await verdicts(message), ['acme.example: pass'])
    for (const name of ['Date', 'Message-ID', 'MIME-Version'])
      t.equal(message.match(new RegExp(`^${name}: `, 'gm'))?.length, 1)
  }
})

t.test(
  'submission: small and large, again the same after a deferral, and gone at the end [retention.attachments]',
  async (t) => {
    const line = `${'x'.repeat(74)}\n`
    for (const [domain, bytes] of [
      ['small.test', 2 * KB],
      ['middle.test', 60 * KB],
      ['large.test', 900 * KB],
    ] as const) {
      const mx = await delivery.destination(domain, { dot: '451 4.3.0 later' })
      const mail = `From: shop@acme.example\nSubject: ${domain}\n\n${line.repeat(bytes / line.length)}`
      const id = await submit([`a@${domain}`, `b@${domain}`], mail)
      await delivery.messageWhen(id, ({ status }) => status === 'deferred')
      const kept = () => redis.keys('*:content:*:raw*')
      t.equal((await kept()).length, bytes > 64 * KB ? 0 : 1, 'in Redis where it is small')
      mx.script({})
      mx.sever()
      await until(async () => {
        await delivery.operate('POST /queue/retry', { domain })
        return (await delivery.message(id)).status === 'delivered'
      }, WAIT_MS)
      const messages = messagesOf(mx)
      t.ok(messages.length >= 4)
      t.equal(new Set(messages).size, 1, 'each time the same bytes')
      t.ok(messages[0]?.endsWith(crlf(mail)))
      t.same(await verdicts(messages[0] as string), ['acme.example: pass'])
      t.same(await kept(), [])
    }
  },
)

t.test('submission: on a broadcast stream each recipient has a link of its own [unsubscribe.fields]', async (t) => {
  const made = await service.call('POST /v1/streams', { token, body: { kind: 'broadcast', name: 'News' } })
  const mx = await delivery.destination('list.test')
  const dialog = await openSubmission(service.config.submissionPort, { password: token, username: made.json.streamId })
  const own = 'List-Unsubscribe: <mailto:own@acme.example>\nList-Id: own <own.acme.example>\nFeedback-ID: own\n'
  const mail = `From: shop@acme.example\n${own}Subject: News\n\nHello\n`
  t.match(await submitMail(dialog, ['a@list.test', 'b@list.test'], mail), /^250 /)
  dialog.end()
  const messages = await arrived(mx, 2)
  const links = messages.map((one) => /^List-Unsubscribe: <(http\S+\/u\/\S+)>\r$/m.exec(one)?.[1])
  t.equal(new Set(links).size, 2)
  t.notOk(links.includes(undefined))
  for (const one of messages) {
    t.notMatch(one, /own@acme|own\.acme|: own/)
    t.ok(one.endsWith(crlf('From: shop@acme.example\nSubject: News\n\nHello\n')))
    t.same(await verdicts(one), ['acme.example: pass'])
  }
})
