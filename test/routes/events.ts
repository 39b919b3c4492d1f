/** events - the feed of a server's events over real HTTP: from now on, after the last received one, and its end. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import t from 'tap'
import { shardOf } from '../../cluster/id.ts'
import { EVENT_BODIES, type EventName } from '../../schemas/webhook.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { heardKey } from '../../src/state/keys.ts'
import { type EventLine, readEventLines } from '../support/clients/event-lines.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
const service = await startTestService()
const { testServer, liveServer, account, operatorToken } = service.firstRun
t.teardown(() => service.stop())
await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
  token: operatorToken,
  body: { testPerMinuteLimit: 1_000_000 },
})

async function send(to: string): Promise<string> {
  const body = { from: 'shop@simulator.test', to: [to], subject: 'Order', text: 'Hello' }
  return (await service.call('POST /v1/email', { token: testServer.token, body })).json.messageId
}

/** Opens the feed; `lines` grows as they come. */
async function open(token: string, headers: Readonly<Record<string, string>> = {}) {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(`http://127.0.0.1:${service.config.httpPort}/v1/events`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: stop.signal,
  })
  const { lines, over: isOver } = readEventLines(response)
  return { response, lines, isOver, stop: () => stop.abort() }
}

const ofMessage = (lines: readonly EventLine[], messageId: string) =>
  lines.find(({ data }) => data.messageId === messageId)

t.test('events: each event from now on with a rising id, as a webhook would get it [event.feed]', async (t) => {
  const before = await send('before@simulator.test')
  await until(
    async () =>
      (await service.call(`GET /v1/messages/${before}`, { token: testServer.token })).json.status === 'delivered',
    WAIT_MS,
  )
  const [feed, other] = await Promise.all([open(testServer.token), open(liveServer.token)])
  t.equal(feed.response.status, 200)
  t.equal(feed.response.headers.get('content-type'), 'text/event-stream')
  const ids = [await send('ann@simulator.test'), await send('bounce+1@simulator.test')]
  await until(() => ids.every((id) => ofMessage(feed.lines, id) !== undefined), WAIT_MS)
  t.equal(ofMessage(feed.lines, before), undefined, 'nothing of before')
  for (const { id, data } of feed.lines) {
    t.match(id, /^\d+-\d+$/)
    t.ok(compileBody(EVENT_BODIES[data.event as EventName])(data).ok, JSON.stringify(data))
  }
  t.equal(new Set(feed.lines.map(({ data }) => data.id)).size, feed.lines.length)
  t.same(other.lines, [], 'of its own server alone')
  feed.stop()
  other.stop()
})

t.test('events: an interrupted feed continues after the last received event [event.feed]', async (t) => {
  const feed = await open(testServer.token)
  const first = await send('first@simulator.test')
  await until(() => ofMessage(feed.lines, first) !== undefined, WAIT_MS)
  feed.stop()
  const missed = [await send('missed+1@simulator.test'), await send('missed+2@simulator.test')]
  const { id, data } = ofMessage(feed.lines, first) as EventLine
  await until(
    async () =>
      (await service.call(`GET /v1/messages/${missed[1]}`, { token: testServer.token })).json.status === 'delivered',
    WAIT_MS,
  )
  const again = await open(testServer.token, { 'last-event-id': id ?? '' })
  await until(() => missed.every((one) => ofMessage(again.lines, one) !== undefined), WAIT_MS)
  t.equal(ofMessage(again.lines, first), undefined, 'what was heard is not said again')
  const next = await send('next@simulator.test')
  await until(() => ofMessage(again.lines, next) !== undefined, WAIT_MS)
  again.stop()
  const whole = await open(testServer.token, { 'last-event-id': id ?? '' })
  await until(() => ofMessage(whole.lines, next) !== undefined, WAIT_MS)
  const idsOf = (lines: readonly EventLine[]) => lines.map((line) => line.data.id)
  t.same(idsOf(whole.lines).slice(0, 2), idsOf(again.lines).slice(0, 2), 'an event keeps its id')
  t.not(idsOf(whole.lines)[0], data.id)
  whole.stop()
})

t.test('events: an id that no event has yet is 410, not silence [event.feed]', async (t) => {
  const feed = await open(testServer.token)
  const messageId = await send('future@simulator.test')
  await until(() => ofMessage(feed.lines, messageId) !== undefined, WAIT_MS)
  feed.stop()
  const newest = feed.lines.at(-1)?.id as string
  const [ms = '', sequence = ''] = newest.split('-')
  const next = `${ms}-${BigInt(sequence) + 1n}`
  for (const id of ['999999999999999-0', next])
    t.equal((await open(testServer.token, { 'last-event-id': id })).response.status, 410, id)
  const last = await open(testServer.token, { 'last-event-id': newest })
  t.equal(last.response.status, 200, 'the newest of all is one to go on after')
  last.stop()
})

t.test(
  'events: an event that is no longer kept, or never was, is 410; an invalid id is 400 [event.feed]',
  async (t) => {
    const old = await open(testServer.token, { 'last-event-id': '1-1' })
    t.equal(old.response.status, 410)
    t.match(await open(liveServer.token, { 'last-event-id': '1-1' }), { response: { status: 410 } }, 'nothing is there')
    t.equal((await open(testServer.token, { 'last-event-id': 'x' })).response.status, 400)
  },
)

t.test('events: stored references hold no address [event.feed]', async (t) => {
  const redis = new Redis(service.redis.socketPath)
  const entries = await redis.xrange(heardKey(shardOf(testServer.serverId) as number, testServer.serverId), '-', '+')
  redis.disconnect()
  t.ok(entries.length > 3)
  t.notMatch(JSON.stringify(entries), /@|simulator/)
})

t.test('events: a key of another kind, no key, a parameter in the URL [event.feed]', async (t) => {
  t.equal((await open(account.token)).response.status, 403)
  t.equal((await open('sk_test_none')).response.status, 401)
  t.equal((await service.call(`GET /v1/events?token=${testServer.token}`)).status, 401)
})

t.test('events: five feeds of a server; one that ended leaves its place [event.feed]', async (t) => {
  const feeds = await Promise.all(Array.from({ length: 5 }, () => open(testServer.token)))
  t.ok(feeds.every(({ response }) => response.status === 200))
  const called = await service.call('GET /v1/events', { token: testServer.token })
  t.equal(called.status, 409)
  t.match(called.json, { error: 'feed_limit', max: 5 })
  const other = await open(liveServer.token)
  t.equal(other.response.status, 200, 'another server has its own')
  other.stop()
  feeds[0]?.stop()
  await until(async () => {
    const one = await open(testServer.token)
    one.stop()
    return one.response.status === 200
  }, WAIT_MS)
  for (const feed of feeds) feed.stop()
})

/** Feeds that the process with the HTTP listener counts as open. */
async function feedsOpen(): Promise<number> {
  const { text } = await service.operate('GET /metrics')
  return Number(/^sendwright_feeds_open (\d+)$/m.exec(text)?.[1])
}

t.test('events: a HEAD request, or a client that leaves before the answer, takes no place [event.feed]', async (t) => {
  await until(async () => (await feedsOpen()) === 0, WAIT_MS)
  const url = `http://127.0.0.1:${service.config.httpPort}/v1/events`
  const headers = { authorization: `Bearer ${testServer.token}` }
  for (let asked = 0; asked < 6; asked += 1) {
    const { status } = await fetch(url, { method: 'HEAD', headers })
    t.equal(status, 200)
  }
  const head = `GET /v1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${testServer.token}\r\n\r\n`
  for (let left = 0; left < 40; left += 1) {
    const socket = connect(service.config.httpPort, '127.0.0.1')
    // How far the request gets before the client has gone differs from one to the next.
    socket.write(head, () => setTimeout(() => socket.destroy(), left % 5))
    await once(socket, 'close')
  }
  await until(async () => (await feedsOpen()) === 0, WAIT_MS)
  const feeds = await Promise.all(Array.from({ length: 5 }, () => open(testServer.token)))
  for (const { response } of feeds) t.equal(response.status, 200)
  t.equal(await feedsOpen(), 5)
  for (const feed of feeds) feed.stop()
  await until(async () => (await feedsOpen()) === 0, WAIT_MS)
})

t.test(
  'events: sixty-four clients at once: five are served, the others refused, none waits [event.feed]',
  async (t) => {
    const feeds = await Promise.all(Array.from({ length: 64 }, () => open(testServer.token)))
    t.equal(feeds.filter(({ response }) => response.status === 200).length, 5)
    t.equal(feeds.filter(({ response }) => response.status === 409).length, 59)
    const messageId = await send('crowd@simulator.test')
    const told = feeds.filter(({ response }) => response.status === 200)
    await until(() => told.every(({ lines }) => ofMessage(lines, messageId) !== undefined), WAIT_MS)
    for (const feed of feeds) feed.stop()
    await until(async () => (await feedsOpen()) === 0, WAIT_MS)
  },
)

t.test('events: a feed ends at once when its key is revoked, others continue [event.feed]', async (t) => {
  const made = (await service.call('POST /v1/tokens', { token: testServer.token, body: { name: 'Laptop' } })).json
  await until(async () => {
    const one = await open(made.token)
    one.stop()
    return one.response.status === 200
  }, WAIT_MS)
  const [feed, mine] = await Promise.all([open(made.token), open(testServer.token)])
  t.equal(feed.response.status, 200)
  const startMs = performance.now()
  await service.call(`POST /v1/tokens/${made.tokenId}/revoke`, { token: testServer.token })
  t.ok(await feed.isOver)
  t.ok(performance.now() - startMs < 3_000, 'before the next renewal')
  const next = await send('after@simulator.test')
  await until(() => ofMessage(mine.lines, next) !== undefined, WAIT_MS)
  t.equal(ofMessage(feed.lines, next), undefined)
  mine.stop()
})
