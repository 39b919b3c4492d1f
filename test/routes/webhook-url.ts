/** webhook-url - which URLs may be registered if no private network is allowed, and the handling of the others. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { findSuite } from '../support/machine/suites.ts'
import { until } from '../support/machine/until.ts'
import { startReceiver } from '../support/peers/receiver.ts'
import { startZone } from '../support/peers/zone.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 60_000
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const zone = await startZone()
const service = await startTestService({ DNS_SERVERS: zone.server }, { smtp: { ca: receiver.ca } })
t.teardown(async () => {
  await service.stop()
  await Promise.all([zone.close(), receiver.close()])
})
const { token } = service.firstRun.testServer
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
const create = (url: string) => call('POST /v1/webhooks', { url })
/** Posts an example to a webhook, removes it, and returns the result of the delivery. */
async function attempt(webhookId: string): Promise<{ status: string; attempts: number; lastError: string }> {
  const path = `/v1/webhooks/${webhookId}`
  const { deliveryId } = (await call(`POST ${path}/test`, { event: 'bounced' })).json
  const read = async () => (await call(`GET ${path}/deliveries/${deliveryId}`)).json
  const record = await until(async () => {
    const seen = await read()
    return seen.attempts > 0 ? seen : null
  }, WAIT_MS)
  t.equal((await call(`DELETE ${path}`)).status, 204)
  return record
}

t.test('webhook url: this machine by its names and addresses is refused [webhook.url]', async (t) => {
  for (const host of [
    'localhost',
    'LOCALHOST',
    'localhost.',
    'x.localhost',
    '127.0.0.1',
    '127.1',
    '[::1]',
    '0.0.0.0',
  ]) {
    const refused = await create(`https://${host}:${receiver.port}/`)
    t.match([refused.status, refused.json.error, refused.json.issues[0].path], [400, 'invalid_request', 'url'], host)
  }
})

t.test('webhook url: a name that leads to a private address is dead at once [webhook.private]', async (t) => {
  zone.set('inside.test', { type: 'A', address: '10.0.0.1' })
  zone.set('here.test', { type: 'A', address: '127.0.0.1' })
  for (const host of ['inside.test', 'here.test']) {
    const { webhookId } = (await create(`https://${host}:${receiver.port}/`)).json
    t.match(await attempt(webhookId), {
      status: 'dead',
      attempts: 1,
      lastError: 'private_address',
      nextAttemptAt: null,
    })
  }
  t.equal(receiver.connections(), 0)
})

/** Not on that list, and yet not a host's address: multicast, of protocols (2001::/23), outside 2000::/3. */
const NOBODYS = new Set([
  '226.84.185.150',
  '227.202.96.196',
  '2001:2:ffff:ffff:ffff:ffff:ffff:ffff',
  '2001:10::',
  '2001:1f:ffff:ffff:ffff:ffff:ffff:ffff',
])
const isNobodys = (host: string) => NOBODYS.has(host) || (host.includes(':') && !/^[23][0-9a-f]{3}:/.test(host))

t.test('webhook url: an IPv6 host is one of 2000::/3 less its reserved parts [webhook.private]', async (t) => {
  const refused = ['::127.0.0.1', '::a00:1', '1::1', '4000::1', '::ffff:8.8.8.8', '64:ff9b::808:808', '2002:808:808::1']
  for (const host of refused) {
    const { status, json } = await create(`https://[${host}]:${receiver.port}/`)
    t.match([status, json.error, json.issues?.[0].path], [400, 'invalid_request', 'url'], host)
    // The same for a name that leads there, which is looked up at each attempt.
    zone.set('six.test', { type: 'AAAA', address: host })
    const { webhookId } = (await create(`https://six.test:${receiver.port}/`)).json
    t.match(await attempt(webhookId), { status: 'dead', attempts: 1, lastError: 'private_address' }, host)
  }
  const { status, json } = await create('https://[2606:4700:4700::1111]/')
  t.equal(status, 201)
  t.equal((await call(`DELETE /v1/webhooks/${json.webhookId}`)).status, 204)
})

interface Vector {
  readonly kind: string
  readonly value: string
  readonly blocked: boolean
}

t.test('webhook url: public addresses are registered, private ones are not or are dead [webhook.url]', async (t) => {
  const file = findSuite('ssrf/vectors.json')
  if (file === null) return t.comment('SUITES_DIR is not there: skipped')
  const vectors = JSON.parse(readFileSync(file, 'utf8')) as readonly Vector[]
  const seen = { public: 0, refused: 0, dead: 0 }
  for (const { kind, value, blocked } of vectors) {
    // Over https, or its scheme alone would refuse it; to our port, so that a connection would be seen.
    const host = value.includes(':') && !value.startsWith('[') ? `[${value}]` : value
    const url = kind === 'url' ? value.replace(/^\w+:/, 'https:') : `https://${host}:${receiver.port}/`
    const { status, json } = await create(url)
    if (!blocked) {
      t.equal(status, isNobodys(value) ? 400 : 201, value)
      seen.public += 1
      if (status === 201) t.equal((await call(`DELETE /v1/webhooks/${json.webhookId}`)).status, 204)
    } else if (status === 201) {
      seen.dead += 1
      const { lastError } = await attempt(json.webhookId)
      t.ok(['private_address', 'dns_error', 'port_not_allowed'].includes(lastError), `${value}: ${lastError}`)
    } else {
      seen.refused += 1
      t.equal(status, 400, value)
    }
  }
  t.equal(seen.public + seen.refused + seen.dead, vectors.length, JSON.stringify(seen))
  t.ok(seen.public >= 46 && vectors.length >= 280)
  t.equal(receiver.connections(), 0)
})
