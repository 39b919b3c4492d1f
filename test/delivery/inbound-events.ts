/**
 * inbound-events - received mail as webhooks hear of it, in both forms, and what is left of it once its days have
 * passed: the real service, a receiver on TLS, mail over real SMTP, the clock moved.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import PostalMime from 'postal-mime'
import t from 'tap'
import { EVENT_BODIES } from '../../schemas/webhook.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../support/machine/moved-clock.ts'
import { until } from '../support/machine/until.ts'
import { startReceiver } from '../support/peers/receiver.ts'
import { deliverMail } from '../support/peers/smtp-dialog.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 30_000
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const clock = MOVED_CLOCK_SKIP === false ? makeMovedClock() : null
const zone = await startZone()
const make = () =>
  startTestService(
    { DNS_SERVERS: zone.server, PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8', CONTENT_STORE: 'file' },
    { smtp: { ca: receiver.ca } },
  )
const service = await (clock === null ? make() : clock.around(make))
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
  await Promise.all([zone.close(), receiver.close()])
})
const { token } = service.firstRun.liveServer
const { serverId } = service.firstRun.liveServer
const call = async (what: string, body?: object) => {
  const { status, json } = await service.call(what, { token, ...(body !== undefined && { body }) })
  return { status, ...json }
}
const stream = await call('POST /v1/streams', { kind: 'inbound', name: 'Mail' })
const SECRET = 'someone.to.forget@example.net'
const MAIL = `From: Someone <${SECRET}>
To: ${Array.from({ length: 120 }, (_, n) => `a${n}@example.org`).join(',\n ')}
Subject: A word
Content-Type: text/plain

Forget the word xyzzy.
`
const hook = (path: string, more: object) => call('POST /v1/webhooks', { url: receiver.url + path, ...more })
await hook('/full', { events: ['inbound'] })
await hook('/reference', { inboundContent: 'reference', streamId: stream.streamId })
await hook('/raw', { inboundContent: 'raw', format: 'postmark', streamId: stream.streamId })
await hook('/others', { events: ['delivered'] })
await hook('/apart', { streamId: service.firstRun.liveServer.streamId })
const at = (path: string) => receiver.received.filter((one) => one.path === path).map(({ json }) => json)
let id = ''

t.test(
  'inbound-events: told once to each webhook that wants it, in its form [inbound.event] [webhook.filter]',
  async (t) => {
    t.match(
      await deliverMail(service.config.mxPort, `${stream.streamId}+x@${service.config.inboundDomain}`, MAIL),
      /^250 /,
    )
    const [full] = await until(() => (at('/full').length > 0 ? at('/full') : null), WAIT_MS)
    const [reference] = await until(() => (at('/reference').length > 0 ? at('/reference') : null), WAIT_MS)
    id = full.inboundMessageId
    for (const json of [full, reference]) {
      t.equal(compileBody(EVENT_BODIES.inbound)(json).ok, true, JSON.stringify(json).slice(0, 300))
      t.match(json, {
        event: 'inbound',
        attempt: 1,
        inboundMessageId: id,
        serverId,
        streamId: stream.streamId,
        mailboxHash: 'x',
        hasText: true,
      })
    }
    t.equal('text' in reference, false)
    t.match(full, {
      subject: 'A word',
      text: 'Forget the word xyzzy.\n',
      from: { address: SECRET, name: 'Someone' },
      toCount: 120,
      envelope: { sender: null },
    })
    t.equal(full.to.length, 100)
    const read = await call(`GET /v1/inbound/${id}`)
    t.equal(read.to.length, 120)
    const { id: _id, attempt: _attempt, event: _event, serverId: _server, to: _to, ...shown } = full
    t.match(read, shown, 'field for field what is read')
    t.equal(at('/full').length + at('/reference').length, 2)
    t.equal(at('/others').length + at('/apart').length, 0)
    const { webhooks } = await call('GET /v1/webhooks')
    const { webhookId } = webhooks.find(({ url }: { url: string }) => url.endsWith('/full'))
    const { deliveries } = await until(async () => {
      const found = await call(`GET /v1/webhooks/${webhookId}/deliveries`)
      return found.deliveries[0]?.status === 'delivered' ? found : null
    }, WAIT_MS)
    t.match(deliveries, [{ event: 'inbound', inboundMessageId: id, messageId: null }])
    await call(`POST /v1/webhooks/${webhookId}/deliveries/${deliveries[0].deliveryId}/replay`)
    const again = await until(() => at('/full')[1] ?? null, WAIT_MS)
    t.match(again, { id: full.id, attempt: 2, text: full.text })
  },
)

t.test(
  'inbound-events: Postmark\u2019s format has the source of the mail where it is asked for [webhook.raw]',
  async (t) => {
    const posted = await until(() => at('/raw')[0] ?? null, WAIT_MS)
    t.match(posted, { MessageID: id, Subject: 'A word', OriginalRecipient: /\+x@/ })
    const mail = await PostalMime.parse(posted.RawEmail)
    t.match(mail, { subject: 'A word', from: { address: SECRET }, text: 'Forget the word xyzzy.\n' })
    const raw = await service.call(`GET /v1/inbound/${id}/raw`, { token })
    t.equal(posted.RawEmail, raw.text, 'the same as /raw')
    t.match(
      (await service.operate('GET /metrics')).text,
      /^sendwright_webhook_raw_emails_total\{result="included"\} 1$/m,
    )
  },
)

t.test(
  'inbound-events: past its days nothing of the content is left, past 13 months nothing at all [retention.inbound]',
  { skip: MOVED_CLOCK_SKIP },
  async (t) => {
    const objects = () =>
      (readdirSync(join(service.dataDir, 'content'), { recursive: true, encoding: 'utf8' }) as string[]).filter(
        (name) => /\/in\/\d{8}\/./.test(name),
      )
    const holds = async (text: string): Promise<boolean> => {
      for (const key of await redis.keys('*')) {
        const type = await redis.type(key)
        const read = {
          hash: () => redis.hgetall(key),
          stream: () => redis.xrange(key, '-', '+'),
          string: () => redis.get(key),
        }[type]
        const value = read === undefined ? await redis.zrange(key, 0, -1) : await read()
        if (JSON.stringify(value).includes(text)) return true
      }
      return false
    }
    const onDisk = (text: string): string[] =>
      (readdirSync(service.dataDir, { recursive: true, encoding: 'utf8' }) as string[]).filter((name) => {
        const path = join(service.dataDir, name)
        return statSync(path).isFile() && readFileSync(path).includes(text)
      })
    const words = [SECRET, 'A word', 'xyzzy']
    const left = async () => {
      const held = await Promise.all(words.map(holds))
      return [...words.filter((_, at) => held[at]), ...objects(), ...(await redis.keys('*:received-head:*'))]
    }
    t.equal(objects().length, 2)
    t.same(await left(), [SECRET, 'A word', ...objects(), ...(await redis.keys('*:received-head:*'))])
    t.notOk(await holds('xyzzy'), 'nothing of the text is in the store')
    t.same(words.flatMap(onDisk), [], 'and nothing of the mail can be read on the disk')
    clock?.moveTo(29)
    t.match(await call(`GET /v1/inbound/${id}`), { contentAvailable: true, subject: 'A word' })
    clock?.moveTo(31)
    const past = await until(async () => {
      const read = await call(`GET /v1/inbound/${id}`)
      return read.contentAvailable === false ? read : null
    }, WAIT_MS)
    t.match(past, {
      contentOmitted: 'expired',
      from: null,
      subject: null,
      text: null,
      envelope: null,
      attachments: [],
      toCount: 0,
      hasText: true,
    })
    t.equal((await service.call(`GET /v1/inbound/${id}/raw`, { token })).status, 410)
    t.equal(
      (await call('POST /v1/inbound/search', { from: SECRET })).messages.length,
      1,
      'the reference is found still',
    )
    await until(async () => (await left()).length === 0, WAIT_MS)
    t.same(await left(), [], 'no word, no object, no key to one')
    t.same(words.flatMap(onDisk), [])
    clock?.moveTo(430)
    await until(async () => (await call(`GET /v1/inbound/${id}`)).status === 404, WAIT_MS)
    await until(async () => (await redis.keys('*:received*')).length === 0, WAIT_MS)
    t.same(await redis.keys('*:received*'), [])
  },
)
