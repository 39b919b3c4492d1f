/**
 * The proof of erasure: a person with a unique address is used in every feature, and searched for in every key and
 * field of Redis, its append-only file, every file under DATA_DIR, opened objects of the content store and the log.
 * Each place is found before the erasure, and after it none except an operator's note.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { shardOf } from '../../../cluster/id.ts'
import { keepSaidOps } from '../../../cluster/shard/poison.ts'
import { contentFolder } from '../../../src/content/files.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { startMx } from '../../support/peers/mx.ts'
import { startReceiver } from '../../support/peers/receiver.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { openSubmission, submitMail } from '../../support/peers/submission.ts'
import { startZone } from '../../support/peers/zone.ts'
import { verifyDomain } from '../../support/service/crash-live.ts'
import { setScene } from '../../support/service/crash-scene.ts'
import { startHost } from '../../support/service/host.ts'
import { Seeker, seekInFiles, seekInRedis } from '../../support/store/seek.ts'
import { seekInObjects } from '../../support/store/seek-objects.ts'

const WAIT_MS = 60_000
const DOMAIN = 'acme.example'
/** Letters and digits that occur nowhere else. */
const WORD = `q${Array.from({ length: 23 }, () => Math.floor(Math.random() * 36).toString(36)).join('')}`
const PERSON = `Jo.${WORD}@${DOMAIN}`
const OTHER = `ann@${DOMAIN}`
const seeker = new Seeker(WORD)
/** Keys that hold it before an erasure. */
const KINDS = (
  'audit, bodies, content a, content head, content r, delivery, head, person, received-head, received-state, ' +
  'staged, status, suppressed'
).split(', ')

const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const folder = mkdtempSync(join(tmpdir(), 'sendwright-ca-'))
writeFileSync(join(folder, 'ca.pem'), receiver.ca)
const [zone, mx] = [await startZone(), await startMx()]
const {
  redis: store,
  settings,
  firstRun,
  end,
} = await setScene(
  {
    DNS_SERVERS: zone.server,
    DELIVERY_PORT: String(mx.port),
    PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8',
    SERVICE_DOMAIN: 'service.example',
    CONTENT_STORE: 'file',
    MX_PORT: String(await freePort()),
    SUBMISSION_PORT: String(await freePort()),
    LOG_LEVEL: 'debug',
  },
  // A compressed word cannot be found in a file.
  { settings: { rdbcompression: 'no' } },
)
const env = { ...settings, NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem') }
const keptChars = 50_000_000
// Apart, so that commands go through the store.
const actors = await startHost({ ...env, ROLES: 'actors', OPERATOR_PORT: String(await freePort()) }, { keptChars })
const edge = await startHost({ ...env, ROLES: 'http,mx,submission' }, { keptChars })
const redis = new Redis(store.socketPath)
const dataDir = settings.DATA_DIR as string
t.teardown(async () => {
  redis.disconnect()
  await edge.kill('SIGKILL')
  await actors.kill('SIGKILL')
  await end()
  await Promise.all([zone.close(), mx.close(), receiver.close()])
  rmSync(folder, { recursive: true, force: true })
})

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
type Json = any
const { account, liveServer, testServer, operatorToken } = firstRun

async function ask(
  what: string,
  {
    token = liveServer.token,
    body,
    headers = {},
    port = settings.HTTP_PORT,
  }: { token?: string; body?: object; headers?: Record<string, string>; port?: string | undefined } = {},
): Promise<Json> {
  const [method = 'GET', path = '/'] = what.split(' ')
  return until(async () => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        connection: 'close',
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (answer.status === 503) return null
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${what}: ${answer.status} ${text}`)
    return text === '' ? {} : JSON.parse(text)
  }, WAIT_MS)
}

const message = (id: string) => ask(`GET /v1/messages/${id}`)
const statusOf = async (id: string, isSo: (message: Json) => boolean) =>
  until(async () => {
    const seen = await message(id)
    return isSo(seen) ? seen : null
  }, WAIT_MS)
const mail = (to: unknown, more: object = {}) => ({
  from: `shop@${DOMAIN}`,
  to: [to].flat(),
  subject: `For ${WORD}`,
  text: `Dear ${PERSON}`,
  ...more,
})
const send = async (body: object, headers = {}) => (await ask('POST /v1/email', { body, headers })).messageId as string

/** Makes Redis rewrite its file, and waits for its end. */
async function rewriteFile(): Promise<void> {
  await redis.bgrewriteaof()
  const isRunning = /aof_rewrite_(?:in_progress|scheduled):1/
  await until(async () => (isRunning.test(await redis.info('persistence')) ? null : true), WAIT_MS)
}

/** Every place that holds the word. */
async function seekAll() {
  // Work in flight between processes ends first.
  await rewriteFile()
  return {
    keys: await seekInRedis(redis, seeker),
    store: seekInFiles(store.dir, seeker),
    files: seekInFiles(dataDir, seeker),
    objects: await seekInObjects({ redis, dataDir, secretKey: settings.SECRET_KEY as string, seeker }),
    log: `${edge.said()}${actors.said()}`.split('\n').filter((line) => seeker.isIn(Buffer.from(line))),
  }
}

/** The first word of a key; for content, its part. */
const kindOf = (key: string) => {
  const [, kind = '', , part = ''] = key.replace(/^\{\w+\}/, '').split(':')
  return kind === 'content' ? `content ${part.replace(/\d.*$/, '')}` : kind
}

const BUSY = (line: string) => `451 4.3.0 ${line.toLowerCase().includes(WORD) ? `jo.${WORD}` : 'somebody'} is busy`

/** The reply of the receiving server from now on, on open sessions too. */
function script(what: Parameters<typeof mx.script>[0]): void {
  mx.script(what)
  mx.sever()
}

/** Uses the address in every feature. Out: ids of messages that are looked at afterwards. */
async function useEverywhere() {
  zone.set(DOMAIN, { type: 'MX', exchange: `mx.${DOMAIN}`, priority: 10 })
  zone.set(`mx.${DOMAIN}`, { type: 'A', address: '127.0.0.1' })
  await verifyDomain(Number(settings.HTTP_PORT), firstRun, { zone, domain: DOMAIN })
  await ask(`PATCH /v1/operator/accounts/${account.accountId}`, {
    token: operatorToken,
    port: settings.OPERATOR_PORT,
    body: { perMinuteLimit: 100_000, monthlyCap: 100_000, note: `asked by ${PERSON}` },
  })
  receiver?.react(({ body }, response) =>
    response.end(body.toLowerCase().includes(WORD) ? `no customer Jo ${WORD}` : 'ok'),
  )
  await ask('POST /v1/webhooks', { body: { url: receiver?.url } })
  const large = Buffer.alloc(90_000, `${PERSON} `).toString('base64')
  script({ dot: `250 2.0.0 kept for jo.${WORD}` })
  const told = await send(mail(PERSON))
  await statusOf(told, ({ status }) => status === 'delivered')
  script({})
  const delivered = await send(
    mail([{ email: PERSON, name: `Jo ${WORD}` }, OTHER], {
      tag: `tag ${WORD}`,
      metadata: { who: PERSON },
      headers: { 'X-Who': WORD },
      html: `<p>${PERSON}</p>`,
    }),
    { 'idempotency-key': `key-${WORD}` },
  )
  await statusOf(delivered, ({ status }) => status === 'delivered')
  await send(mail(OTHER, { from: { email: PERSON, name: WORD } }))
  const dialog = await openSubmission(Number(settings.SUBMISSION_PORT), { password: liveServer.token })
  const raw = `From: shop@${DOMAIN}\nTo: ${PERSON}\nSubject: Raw ${WORD}\nContent-Transfer-Encoding: base64\nContent-Type: text/plain\n\n${Buffer.from(`Dear ${PERSON}`).toString('base64')}\n`
  if (!(await submitMail(dialog, [PERSON], raw)).startsWith('250')) throw new Error('Not submitted')
  await ask('POST /v1/email/batch', {
    body: { messages: [mail(PERSON), mail(OTHER, { cc: [PERSON], bcc: [`bea@${DOMAIN}`] })] },
  })
  const { streamId } = await ask('POST /v1/streams', { body: { kind: 'broadcast', name: 'News' } })
  const listed = [PERSON, OTHER].map((to) => ({ to, substitutions: { name: to } }))
  const broadcast = async (from: string) =>
    (
      await ask('POST /v1/broadcasts', {
        body: { streamId, from, subject: 'Hi {{name}}', text: 'Dear {{name}}', messages: listed },
      })
    ).broadcastId as string
  const done = await broadcast(`news@${DOMAIN}`)
  await until(async () => ((await ask(`GET /v1/broadcasts/${done}`)).status === 'completed' ? true : null), WAIT_MS)
  await ask(`PATCH /v1/operator/streams/${streamId}`, {
    token: operatorToken,
    port: settings.OPERATOR_PORT,
    body: { pacePerMinute: 1 },
  })
  // The next one waits for a minute.
  await ask('POST /v1/broadcasts', {
    body: { streamId, from: `news@${DOMAIN}`, subject: 'Hi', text: 'Hi', messages: [{ to: OTHER }] },
  })
  const waits = await broadcast(`news@${DOMAIN}`)
  await ask(`POST /v1/broadcasts/${waits}/pause`)
  const own = await broadcast(PERSON)
  await ask(`POST /v1/broadcasts/${own}/pause`)
  script({ rcpt: BUSY })
  const deferred = await send(
    mail([PERSON, OTHER], {
      attachments: [{ name: `${WORD}.txt`, content: large }],
      html: `<p>${PERSON} ${randomBytes(30_000).toString('hex')}</p>`,
    }),
  )
  await send(mail(PERSON, { attachments: [{ name: 'small.txt', content: Buffer.from(PERSON).toString('base64') }] }))
  if (!(await submitMail(dialog, [PERSON], raw)).startsWith('250')) throw new Error('Not submitted')
  dialog.end()
  await statusOf(deferred, ({ recipients }) => recipients.some(({ status }: Json) => status === 'deferred'))
  await useInbound()
  await useReports()
  await ask('POST /v1/suppressions', { body: { streamId, recipients: [PERSON] } })
  await ask('POST /v1/email', { token: testServer.token, body: { ...mail(PERSON), from: 'hello@simulator.test' } })
  const gone = await ask('POST /v1/servers', { token: account.token, body: { name: 'Gone', mode: 'test' } })
  await ask('POST /v1/email', {
    token: gone.key.token,
    body: { ...mail(PERSON), from: 'hello@simulator.test' },
  })
  await until(
    () =>
      fetch(`http://127.0.0.1:${settings.HTTP_PORT}/v1/servers/${gone.serverId}`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${account.token}` },
      }).then(({ status }) => (status === 204 ? true : null)),
    WAIT_MS,
  )
  const ops = keepSaidOps(shardOf(account.accountId) as number, 'acommandthatnobodycouldbear', {
    nowMs: Date.now(),
    said: Buffer.from(`{"to":"${PERSON}"}`),
  })
  for (const { key, write, args } of ops) await redis.call(write, key, ...(args as string[]))
  return { delivered, deferred, done, waits, own }
}

/** Received mail from the address, naming it, and beside it one that has nothing to do with it. */
async function useInbound(): Promise<void> {
  const { inboundAddress } = await ask('POST /v1/streams', { body: { kind: 'inbound', name: 'In' } })
  const port = Number(settings.MX_PORT)
  const [local, host] = (inboundAddress as string).split('@')
  const text = (from: string, to: string) =>
    `From: ${from}\nTo: ${to}\nSubject: About\nMIME-Version: 1.0\nContent-Type: text/plain\n\nDear all of ${WORD}\n`
  const filler = Array.from({ length: 1_200 }, (_, n) => `a${n}@example.org`).join(',\n ')
  const mails = [
    text(`Jo <${PERSON}>`, 'x@example.org'),
    text('other@example.org', `x@example.org, "Jo" <${PERSON.toUpperCase()}>`),
    text('other@example.org', `${filler},\n ${PERSON}`),
  ]
  for (const one of mails) {
    const reply = await deliverMail(port, `${local}+${WORD}@${host}`, one)
    if (!reply.startsWith('250')) throw new Error(reply)
  }
  await deliverMail(
    port,
    `${local}+plain@${host}`,
    text('other@example.org', 'x@example.org').replace(WORD, 'everybody'),
  )
  await until(async () => {
    const { messages } = await ask('POST /v1/inbound/search', { body: {} })
    return messages.length === 4 && messages.every(({ subject }: Json) => subject !== null) ? true : null
  }, WAIT_MS)
}

/** A bounce that came back and quotes the address. */
async function useReports(): Promise<void> {
  script({})
  const before = mx.sessions.length
  const id = await send(mail(PERSON))
  await statusOf(id, ({ status }) => status === 'delivered')
  const said = mx.sessions.slice(Math.max(0, before - 1)).flatMap(({ commands }) => commands)
  const returnPath = said.map((line) => /^MAIL FROM:<([^>]*)>/.exec(line)?.[1]).findLast(Boolean) ?? ''
  const dsn = `From: MAILER-DAEMON@mx.${DOMAIN}\nTo: sender\nSubject: Undelivered ${WORD}\nAuto-Submitted: auto-replied\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=delivery-status; boundary="b"\n\n--b\nContent-Type: text/plain\n\nI'm sorry, ${PERSON}.\n\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.${DOMAIN}\n\nFinal-Recipient: rfc822; ${PERSON}\nAction: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; 550 5.1.1 user jo.${WORD} unknown\n\n--b\nContent-Type: message/rfc822\n\nSubject: Hello\n\nMail\n--b--\n`
  const reply = await deliverMail(Number(settings.MX_PORT), returnPath, dsn)
  if (!reply.startsWith('250')) throw new Error(reply)
  await statusOf(id, ({ status }) => status === 'bounced')
  script({ rcpt: BUSY })
}

/** Sends to the person. The webhook has not answered yet, and does so on demand. */
async function sendUnanswered(): Promise<{ readonly messageId: string; answer(): void }> {
  let answer = (): void => undefined
  const asked = new Promise<void>((resolve) => {
    receiver?.react((_one, response) => {
      answer = () => response.end(`no customer Jo ${WORD}`)
      resolve()
    })
  })
  script({})
  const messageId = await send(mail(PERSON))
  await asked
  receiver?.react(null)
  return { messageId, answer }
}

t.test(
  "erasure: every place is found before it, and none after it but an operator's note [erasure.messages] [erasure.received] [erasure.broadcasts] [erasure.files]",
  async (t) => {
    const used = await useEverywhere()
    const before = await seekAll()
    const kinds = [...new Set(before.keys.map(kindOf))].sort()
    // The same look finds each place while nothing was erased.
    t.same(
      KINDS.filter((kind) => !kinds.includes(kind)),
      [],
      `found in ${kinds.join()}`,
    )
    t.ok(
      before.store.some((name) => name.includes('appendonly')),
      'the append-only file',
    )
    for (const kind of ['mail', 'parsed', 'body', 'files'])
      t.ok(
        before.objects.some((name) => name.endsWith(`(${kind})`)),
        `objects: ${kind}`,
      )
    t.same(before.log, [], 'no address is ever logged')

    t.match(await ask('GET /v1/stats?groupBy=tag'), { groups: [{ group: `tag ${WORD}`, delivered: 2 }] })
    const unanswered = await sendUnanswered()
    const ordered = await ask('POST /v1/erasures', { token: account.token, body: { address: PERSON.toLowerCase() } })
    const done = await until(async () => {
      const seen = await ask(`GET /v1/erasures/${ordered.erasureId}`, { token: account.token })
      return seen.status === 'done' ? seen : null
    }, WAIT_MS)
    t.match(done, { messages: 13, receivedMessages: 3 })
    unanswered.answer()
    const told = await until(async () => {
      const { deliveries } = await ask(`GET /v1/messages/${unanswered.messageId}/deliveries`)
      return deliveries.every(({ status }: Json) => status === 'delivered') ? deliveries : null
    }, WAIT_MS)
    t.match(told, [{ lastStatusCode: 200, lastResponse: null }], 'what is answered after it is not kept')
    await until(async () => ((await seekInRedis(redis, seeker)).length <= 1 ? true : null), WAIT_MS).catch(
      () => undefined,
    )
    const unlinked = () =>
      (readdirSync(contentFolder(dataDir), { recursive: true, encoding: 'utf8' }) as string[]).filter((name) =>
        /\/(?:in|out)\/\d{8}\/./.test(name),
      ).length
    await until(() => (unlinked() <= 2 ? true : null), WAIT_MS)
    const after = await seekAll()
    t.same(after.keys.map(kindOf), ['audit'], after.keys.join())
    t.same(after.objects, [])
    t.same(after.files, [])
    t.same(after.log, [])
    const note = await redis.keys('*:audit:*')
    for (const key of note) await redis.unlink(key)
    await rewriteFile()
    t.same(seekInFiles(store.dir, seeker), [], 'of the append-only file nothing but the note had been left')

    t.match(await ask('GET /v1/stats?groupBy=tag'), { groups: [{ group: null, delivered: 2 }] }, 'counts stay')
    t.match(await message(used.delivered), {
      subject: null,
      text: null,
      recipients: [
        { recipient: done.pseudonym, name: null, response: null, status: 'delivered' },
        { recipient: OTHER, status: 'delivered' },
      ],
    })
    t.match(await message(used.deferred), {
      recipients: [
        { recipient: done.pseudonym, status: 'cancelled' },
        { recipient: OTHER, status: 'failed' },
      ],
    })
    t.match(await ask(`GET /v1/broadcasts/${used.waits}`), { status: /accepted|processing/, total: 2, failed: 1 })
    t.match(await ask(`GET /v1/broadcasts/${used.own}`), { status: 'cancelled', subject: null })
    const again = { ...mail(PERSON), from: 'hello@simulator.test' }
    const later = (await ask('POST /v1/email', { token: testServer.token, body: again })).messageId
    const read = await until(async () => {
      const seen = await ask(`GET /v1/messages/${later}`, { token: testServer.token })
      return seen.status === 'delivered' ? seen : null
    }, WAIT_MS)
    t.match(read, { recipients: [{ recipient: PERSON }] }, 'later mail flows')
    t.ok((await seekInRedis(redis, seeker)).length > 1)
  },
)
