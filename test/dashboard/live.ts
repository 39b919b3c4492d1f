/** live - the events on a server as a page receives them: events, acceptances, rights, the end, bounds. */
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t from 'tap'
import { shardOf } from '../../cluster/id.ts'
import { EVENT_BODIES, type EventName } from '../../schemas/webhook.ts'
import { compileBody } from '../../src/http/shape/validate.ts'
import { heardKey } from '../../src/state/keys.ts'
import { Browser } from '../support/clients/browser.ts'
import { type EventLine, readEventLines } from '../support/clients/event-lines.ts'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
/** Less than from one renewal to the next, which would end a feed too. */
const SIGNAL_MS = 15_000
const PASSWORD = 'correct horse battery'
const service = await startTestService()
t.teardown(() => service.stop())
const origin = `http://127.0.0.1:${service.config.httpPort}`
const { testServer, liveServer, account, operatorToken, dashboardUrl } = service.firstRun
await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
  token: operatorToken,
  body: { testPerMinuteLimit: 1_000_000 },
})

let clients = 0

async function come(url: string, address: string): Promise<Browser> {
  const browser = new Browser(origin, `192.0.2.${++clients}`)
  const body = { token: Browser.tokenOf(url), address, name: address, password: PASSWORD }
  const came = await browser.call('POST /links/consume', body)
  if (came.status !== 200) throw new Error(came.text)
  return browser
}

const ada = await come(dashboardUrl, 'ada@a.example')

async function member(address: string, body: object, accountId = account.accountId): Promise<Browser> {
  const path = `POST /v1/operator/accounts/${accountId}/link`
  const { json } = await service.operate(path, { token: operatorToken, body: { address, ...body } })
  return come(json.url, address)
}

/** Opens the feed as a browser does; `lines` grows as they come. */
async function open(browser: Browser, serverId = testServer.serverId, headers: Readonly<Record<string, string>> = {}) {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const response = await fetch(`${origin}/dashboard/api/servers/${serverId}/events`, {
    headers: { cookie: browser.cookie ?? '', 'x-forwarded-for': browser.address, ...headers },
    signal: stop.signal,
  })
  const { lines, over } = readEventLines(response)
  const isOver = () => Promise.race([over, setTimeout(SIGNAL_MS, false, { ref: false })])
  return { response, lines, isOver, stop: () => stop.abort() }
}

async function send(to: string): Promise<string> {
  const body = { from: 'shop@simulator.test', to: [to], subject: 'Order', text: 'Secret' }
  return (await service.call('POST /v1/email', { token: testServer.token, body })).json.messageId
}

const of = (lines: readonly EventLine[], messageId: string, event: string) =>
  lines.find(({ data }) => data.messageId === messageId && data.event === event)

t.test(
  'live: a message is reported when it is accepted, and each event as a webhook gets it [member.live]',
  async (t) => {
    const [feed, other] = [await open(ada), await open(ada, liveServer.serverId)]
    t.equal(feed.response.status, 200)
    t.equal(feed.response.headers.get('content-type'), 'text/event-stream')
    t.equal(feed.response.headers.get('x-content-type-options'), 'nosniff')
    t.equal(feed.response.headers.get('x-accel-buffering'), 'no', 'no proxy holds an event back')
    const [ann, ben] = [await send('ann@simulator.test'), await send('bounce+ben@simulator.test')]
    await until(() => of(feed.lines, ann, 'delivered') && of(feed.lines, ben, 'bounced') !== undefined, WAIT_MS)
    for (const id of [ann, ben]) t.match(of(feed.lines, id, 'accepted')?.data, { messageId: id, occurredAt: /Z$/ })
    const events = feed.lines.filter(({ data }) => data.event !== 'accepted')
    for (const { id, data } of events) {
      t.match(id, /^\d+-\d+$/)
      t.ok(compileBody(EVENT_BODIES[data.event as EventName])(data).ok, JSON.stringify(data))
    }
    t.notMatch(JSON.stringify(feed.lines), 'Secret')
    t.same(other.lines, [], 'of its own server alone')
    feed.stop()
    other.stop()
  },
)

t.test(
  'live: it continues after the last event; lost ones were missed; an invalid id is 400 [member.live]',
  async (t) => {
    const feed = await open(ada)
    const first = await send('first@simulator.test')
    await until(() => of(feed.lines, first, 'delivered') !== undefined, WAIT_MS)
    feed.stop()
    const missed = await send('missed@simulator.test')
    await until(
      async () =>
        (await service.call(`GET /v1/messages/${missed}`, { token: testServer.token })).json.status === 'delivered',
      WAIT_MS,
    )
    const { id } = of(feed.lines, first, 'delivered') as EventLine
    const again = await open(ada, testServer.serverId, { 'last-event-id': id ?? '' })
    await until(() => of(again.lines, missed, 'delivered') !== undefined, WAIT_MS)
    t.equal(of(again.lines, first, 'delivered'), undefined, 'what was heard is not said again')
    again.stop()
    const gone = await open(ada, testServer.serverId, { 'last-event-id': '1-1' })
    await until(() => gone.lines[0]?.isMissed === true, WAIT_MS)
    gone.stop()
    t.equal((await open(ada, testServer.serverId, { 'last-event-id': 'x' })).response.status, 400)
  },
)

t.test('live: the roles that may read it, and missing servers [member.live] [member.role]', async (t) => {
  t.equal((await open(new Browser(origin))).response.status, 401)
  const keyed = await service.call(`GET /dashboard/api/servers/${testServer.serverId}/events`, {
    token: testServer.token,
  })
  t.equal(keyed.status, 401)
  const body = { name: 'Other', administrators: [] }
  const { accountId } = (await service.operate('POST /v1/operator/accounts', { token: operatorToken, body })).json
  const stranger = await member('eve@e.example', {}, accountId)
  for (const id of [testServer.serverId, 'x']) t.equal((await open(stranger, id)).response.status, 404)
})

t.test('live: another role and a removal end it at once, as signing out does [member.live]', async (t) => {
  const ben = await member('ben@b.example', { role: 'member' })
  const { members } = (await ada.call('GET /members')).json
  const { userId } = members.find(({ address }: { address: string }) => address === 'ben@b.example')
  const before = await open(ben)
  t.equal((await ada.call(`PATCH /members/${userId}`, { readOnly: true })).status, 200)
  t.ok(await before.isOver())
  const reading = await open(ben)
  t.equal(reading.response.status, 200, 'who reads may hear')
  t.equal((await ada.call(`DELETE /members/${userId}`)).status, 204)
  t.ok(await reading.isOver())
  t.equal((await open(ben)).response.status, 401)
})

t.test('live: five feeds of a user; one that ended leaves its place [member.live]', async (t) => {
  const gil = await member('gil@g.example', { role: 'member' })
  const feeds = await Promise.all(Array.from({ length: 5 }, () => open(gil)))
  t.ok(feeds.every(({ response }) => response.status === 200))
  const more = await gil.call(`GET /servers/${testServer.serverId}/events`)
  t.match([more.status, more.json], [409, { error: 'feed_limit', max: 5 }])
  const other = await open(ada)
  t.equal(other.response.status, 200, 'another user has his own')
  other.stop()
  feeds[0]?.stop()
  await until(async () => {
    const feed = await open(gil)
    feed.stop()
    return feed.response.status === 200
  }, WAIT_MS)
  for (const feed of feeds) feed.stop()
  const out = await open(ada)
  await ada.call('DELETE /session')
  t.ok(await out.isOver())
})

t.test('live: what exceeds a page is left out, and reported as such [member.live]', async (t) => {
  const hal = await member('hal@h.example', { role: 'member' })
  const feed = await open(hal)
  const messages = Array.from({ length: 100 }, (_, at) => {
    return { from: 'shop@simulator.test', to: [`many+${at}@simulator.test`], subject: 'Order', text: 'Hello' }
  })
  const batch = () => service.call('POST /v1/email/batch', { token: testServer.token, body: { messages } })
  await Promise.all([batch(), batch(), batch()])
  await until(() => feed.lines.some(({ isMissed }) => isMissed), WAIT_MS)
  // Once the burst is over and the feed has come to its end nothing is left out any more.
  const search = { token: testServer.token, body: { status: 'accepted' } }
  await until(async () => (await service.call('POST /v1/messages/search', search)).json.messages.length === 0, WAIT_MS)
  const redis = new Redis(service.redis.socketPath)
  const key = heardKey(shardOf(testServer.serverId) as number, testServer.serverId)
  const newest = (await redis.xrevrange(key, '+', '-', 'COUNT', 1))[0]?.[0]
  redis.disconnect()
  await until(() => feed.lines.findLast(({ id }) => id !== null)?.id === newest, WAIT_MS)
  const last = await send('last@simulator.test')
  await until(() => of(feed.lines, last, 'delivered') !== undefined, WAIT_MS)
  t.ok(feed.lines.length < 602, `told ${feed.lines.length}`)
  feed.stop()
})
