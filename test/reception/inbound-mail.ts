/**
 * inbound-mail - mail over real SMTP into a running service, and its form in the API, in the webhooks' events and on
 * disk.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { withoutSum } from '../../cluster/sum.ts'
import { until } from '../support/machine/until.ts'
import { openDialog, type SmtpDialog } from '../support/peers/smtp-dialog.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const zone = await startZone()
const service = await startTestService({
  CONTENT_STORE: 'file',
  INBOUND_DOMAIN: 'in.service.example',
  DNS_SERVERS: zone.server,
})
t.teardown(async () => {
  await service.stop()
  await zone.close()
})
const { account, liveServer, operatorToken } = service.firstRun
const { token } = liveServer
const port = service.config.mxPort
const made = await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Mail' } })
const stream = made.json as { streamId: string; inboundAddress: string }

/** A dialog up to MAIL FROM. */
async function begin(sender = 'ada@example.net'): Promise<SmtpDialog> {
  const dialog = await openDialog(port)
  await dialog.say('EHLO client.example')
  await dialog.say(`MAIL FROM:<${sender}>`)
  return dialog
}

/** Sends a mail and answers the last reply. In: lines end in LF. */
async function deliver(mail: string | Buffer, to: readonly string[] = [stream.inboundAddress], sender?: string) {
  const dialog = await begin(sender)
  for (const one of to) {
    const reply = await dialog.say(`RCPT TO:<${one}>`)
    if (!reply.startsWith('250')) return reply
  }
  await dialog.say('DATA')
  const bytes = typeof mail === 'string' ? Buffer.from(`${mail.trimEnd()}\n`.replace(/\r?\n/g, '\r\n')) : mail
  dialog.write(Buffer.from(bytes.toString('latin1').replace(/^\./gm, '..'), 'latin1'))
  const reply = await dialog.say('.')
  dialog.end()
  return reply
}

const redis = new Redis(service.redis.socketPath)
t.teardown(() => redis.disconnect())

const unfinished = (): string[] => {
  const tmp = join(service.dataDir, 'content', 'tmp')
  return existsSync(tmp) ? readdirSync(tmp) : []
}
const idOf = (reply: string): string => /^250 2\.0\.0 accepted ([0-9a-f-]{36})/.exec(reply)?.[1] ?? ''
const read = (id: string) => service.call(`GET /v1/inbound/${id}`, { token })
const search = async (body: object) => (await service.call('POST /v1/inbound/search', { token, body })).json
const isParsed = async (id: string) => {
  const { json } = await read(id)
  return json.from !== null || json.parseIssue !== null ? json : null
}

const MAIL = `Received: from a by b; now
From: Ada Lovelace <ada@example.net>
To: Desk <desk@in.service.example>, bob@example.org
Subject: =?utf-8?q?Caf=C3=A9?=
Date: Mon, 23 Nov 2026 08:00:00 +0000
Message-ID: <one@example.net>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=utf-8

Hello
..dots
--b
Content-Type: application/pdf; name="r\u00e9.pdf"
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename="bill.pdf"

aGVsbG8gd29ybGQ=
--b--
`

t.test(
  'inbound-mail: a mail is received, parsed, searched, read, and returned byte for byte [inbound.receive]',
  async (t) => {
    const [local, domain] = stream.inboundAddress.split('@') as [string, string]
    const to = `${local.toUpperCase()}+order-7@${domain}`
    const reply = await deliver(MAIL, [to])
    const id = idOf(reply)
    t.match(id, /^[0-9a-f-]{36}$/, reply)
    const json = await until(() => isParsed(id), 20_000)
    t.match(json, {
      inboundMessageId: id,
      streamId: stream.streamId,
      envelopeRecipient: to,
      mailboxHash: 'order-7',
      from: { address: 'ada@example.net', name: 'Ada Lovelace' },
      subject: 'Café',
      date: '2026-11-23T08:00:00.000Z',
      text: 'Hello\n..dots',
      html: null,
      hasText: true,
      hasHtml: false,
      attachmentCount: 1,
      contentAvailable: true,
      contentOmitted: null,
      envelope: { sender: 'ada@example.net' },
      toCount: 2,
      messageIdHeader: '<one@example.net>',
      attachments: [{ position: 0, name: 'bill.pdf', contentType: 'application/pdf', size: 11, inline: false }],
    })
    const sent = Buffer.from(MAIL.replace(/\n/g, '\r\n'))
    t.equal(json.sizeBytes, sent.length)
    const base = `http://127.0.0.1:${service.config.httpPort}/v1/inbound/${id}`
    const headers = { authorization: `Bearer ${token}`, connection: 'close' }
    const raw = await fetch(`${base}/raw`, { headers })
    t.equal(raw.headers.get('content-type'), 'message/rfc822')
    t.equal(raw.headers.get('content-disposition'), `attachment; filename="${id}.eml"`)
    t.equal(sha256(Buffer.from(await raw.arrayBuffer())), sha256(sent), 'byte for byte')
    const file = await fetch(`${base}/attachments/0`, { headers })
    t.equal(file.headers.get('x-content-type-options'), 'nosniff')
    t.equal(await file.text(), 'hello world')
    const part = await fetch(`${base}/attachments/0`, { headers: { ...headers, range: 'bytes=6-8' } })
    t.equal(part.status, 206)
    t.equal(await part.text(), 'wor')
    for (const position of ['1', '-1', 'x', '00000'])
      t.equal((await fetch(`${base}/attachments/${position}`, { headers })).status, 404)
  },
)

t.test('inbound-mail: each filter of the search finds it, and no other [inbound.search]', async (t) => {
  const reply = await deliver(
    'From: header@example.org\nSubject: two\n\nx',
    [stream.inboundAddress],
    'Bounce=x@example.com',
  )
  const id = idOf(reply)
  t.match(id, /^[0-9a-f-]{36}$/, reply)
  await until(() => isParsed(id), 20_000)
  const [local, domain] = stream.inboundAddress.split('@') as [string, string]
  const found = async (body: object) =>
    (await search(body)).messages.map((one: { inboundMessageId: string }) => one.inboundMessageId)
  t.same(await found({ from: 'header@example.org' }), [id])
  t.same(await found({ from: 'bounce=X@example.com' }), [id])
  t.same(await found({ from: 'nobody@example.com' }), [])
  t.same(await found({ recipient: stream.inboundAddress }), [id])
  const before = await found({ mailboxHash: 'order-7' })
  t.equal(before.length, 1)
  t.same(await found({ recipient: `${local}+ORDER-7@${domain}` }), before)
  t.same(await found({ mailboxHash: 'order-8' }), [])
  t.same(await found({ streamId: stream.streamId, limit: 1 }), [id])
  const page = await search({ limit: 1 })
  t.same(page.next, id)
  t.same(
    (await search({ limit: 1, after: page.next })).messages.map(
      (one: { inboundMessageId: string }) => one.inboundMessageId,
    ),
    before,
  )
  t.equal((await search({ streamId: liveServer.streamId })).error, 'stream_not_found')
  t.same(await found({ receivedFrom: new Date(Date.now() + 60_000).toISOString() }), [])
})

t.test(
  'inbound-mail: one mail to two addresses of a stream is two messages, one copy on disk [inbound.receive]',
  async (t) => {
    const [local, domain] = stream.inboundAddress.split('@') as [string, string]
    const reply = await deliver('From: a@b.example\n\nboth', [
      `${local}+a@${domain}`,
      `${local}+b@${domain}`,
      `${local.toUpperCase()}+b@${domain}`,
    ])
    t.match(reply, /^250 2\.0\.0 accepted [0-9a-f-]{36} and 1 more$/)
    const both = await until(async () => {
      const { messages } = await search({ from: 'a@b.example' })
      return messages.length === 2 ? messages : null
    }, 20_000)
    t.same(both.map(({ mailboxHash }: { mailboxHash: string }) => mailboxHash).sort(), ['a', 'b'])
  },
)

t.test('inbound-mail: the refused recipients, and the replies [inbound.recipient] [inbound.roles]', async (t) => {
  const [local, domain] = stream.inboundAddress.split('@') as [string, string]
  const dialog = await begin()
  const said = (to: string) => dialog.say(`RCPT TO:<${to}>`)
  t.match(await said(`01a1f8d8-8300-7000-8000-0e7faee555a7@${domain}`), /^550 5\.1\.1 /)
  t.match(await said(`nobody@${domain}`), /^550 5\.1\.1 /)
  t.match(await said(`${liveServer.streamId}@${domain}`), /^550 5\.1\.1 /)
  t.match(await said(`${local}@elsewhere.example`), /^550 5\.7\.1 /)
  t.match(await said(`${local}+${'h'.repeat(253 - 38 - domain.length)}@${domain}`), /^250 /)
  t.match(await said(`${local}+${'h'.repeat(254 - 38 - domain.length)}@${domain}`), /^501 /)
  t.match(await said('postmaster@rp.sendwright.localhost'), /^452 4\.5\.3 /)
  t.match(await said(`Postmaster@${domain}`), /^250 /)
  await dialog.say('RSET')
  await dialog.say('MAIL FROM:<x@example.net>')
  t.match(await said('postmaster@rp.sendwright.localhost'), /^250 /)
  t.match(await said(stream.inboundAddress), /^452 4\.5\.3 /)
  await dialog.say('RSET')
  const before = (await search({})).messages.length
  t.match(await deliver('Subject: x\n\nx', [`abuse@${domain}`]), /^250 /)
  t.equal((await search({})).messages.length, before)
  t.match(await dialog.say('MAIL FROM:<\u00e4@example.net>'), /^553 5\.6\.7 /)
  dialog.end()
})

t.test('inbound-mail: an incomplete mail is not received, however the peer leaves [inbound.receive]', async (t) => {
  const before = (await search({})).messages.length
  for (const leave of ['end', 'destroy'] as const) {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => undefined).resume()
    await once(socket, 'data')
    for (const line of ['EHLO x', 'MAIL FROM:<x@example.net>', `RCPT TO:<${stream.inboundAddress}>`, 'DATA']) {
      socket.write(`${line}\r\n`)
      await once(socket, 'data')
    }
    // Whole lines, and a dot that ends nothing.
    socket.write(`Subject: half\r\n\r\n${'x'.repeat(200_000)}\r\n.`)
    await until(() => unfinished().length > 0, 20_000)
    socket[leave]()
    await until(() => unfinished().length === 0, 20_000)
    socket.destroy()
  }
  t.equal((await search({})).messages.length, before)
  t.equal((await search({ from: 'x@example.net' })).messages.length, 0)
})

t.test('inbound-mail: the limit of a minute is exact, and only received mail counts [inbound.limit]', async (t) => {
  const limit = (inboundPerMinuteLimit: number) =>
    service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
      token: operatorToken,
      body: { inboundPerMinuteLimit },
    })
  // Earlier mail counts too: the limit is set by the account's usage.
  const packed = await redis.hget(`${tagOf(account.accountId)}:counters`, `account:${account.accountId}`)
  const counters = JSON.parse(withoutSum(packed ?? '', 'counters'))
  await until(() => Date.now() % 60_000 < 45_000, 20_000)
  const [minute, used] = counters.inboundMinute as [number, number]
  const already = minute === Math.floor(Date.now() / 60_000) ? used : 0
  await limit(already + 2)
  const [local, domain] = stream.inboundAddress.split('@') as [string, string]
  const dialog = await begin()
  const said = (hash: string) => dialog.say(`RCPT TO:<${local}+${hash}@${domain}>`)
  t.match(await said('1'), /^250 /)
  t.match(await said('2'), /^250 /)
  t.match(await said('3'), /^451 4\.7\.1 /, 'recipients of this transaction count')
  await dialog.say('RSET')
  t.match(await deliver('Subject: x\n\nx', [`${local}+1@${domain}`]), /^250 /, 'what was only asked for is not charged')
  t.match(await deliver('Subject: x\n\nx', [`${local}+1@${domain}`, `${local}+2@${domain}`]), /^451 4\.7\.1 /)
  t.match(await deliver('Subject: x\n\nx', [`${local}+1@${domain}`]), /^250 /)
  t.match(await deliver('Subject: x\n\nx', [`${local}+1@${domain}`]), /^451 4\.7\.1 /)
  await limit(300)
  dialog.end()
})

t.test(
  'inbound-mail: an archived stream refuses, a paused account receives, a closed one does not [inbound.recipient]',
  async (t) => {
    const operate = (act: string) =>
      service.operate(`POST /v1/operator/accounts/${account.accountId}/${act}`, { token: operatorToken, body: {} })
    await operate('pause')
    t.match(await deliver('Subject: x\n\nx'), /^250 /)
    await operate('resume')
    const dialog = await begin()
    t.match(await dialog.say(`RCPT TO:<${stream.inboundAddress}>`), /^250 /)
    await dialog.say('DATA')
    await service.call(`POST /v1/streams/${stream.streamId}/archive`, { token })
    t.match(await dialog.say('Subject: late\r\n\r\nx\r\n.'), /^451 4\.3\.0 /, 'archived while the mail came')
    dialog.end()
    t.match(await deliver('Subject: x\n\nx'), /^550 5\.2\.1 /)
    const next = await service.call('POST /v1/streams', { token, body: { kind: 'inbound', name: 'Next' } })
    t.match(await deliver('Subject: x\n\nx', [next.json.inboundAddress]), /^250 /)
    await operate('close')
    t.match(await deliver('Subject: x\n\nx', [next.json.inboundAddress]), /^550 5\.7\.1 /)
  },
)

t.test('inbound-mail: nothing of a mail is in Redis but its head, and nothing unfinished on the disk', async (t) => {
  const { messages } = await until(async () => {
    const page = await search({ limit: 100 })
    const isOver = page.messages.every(
      (one: { authentication: { checkedAt: string | null } }) => one.authentication.checkedAt !== null,
    )
    return isOver ? page : null
  }, 20_000)
  const files = (
    readdirSync(join(service.dataDir, 'content'), { recursive: true, encoding: 'utf8' }) as string[]
  ).filter((name) => /\/in\/\d{8}\//.test(name))
  t.equal(files.length, 2 * messages.length, 'the mail and its result, and nothing of what was refused')
  t.same(readdirSync(join(service.dataDir, 'content', 'tmp')), [])
})

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function tagOf(id: string): string {
  return `{s${String(Number.parseInt(id.slice(15, 18), 16)).padStart(3, '0')}}`
}
