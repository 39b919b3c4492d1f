/**
 * webhooks - ten thousand first attempts in the order of their events, the operator's statistics, and the schedule of
 * retries with a moved clock: the real service, a real store, a receiver on TLS.
 */
import t from 'tap'
import { WEBHOOK_RETRIES_SECONDS } from '../../../schemas/limits.ts'
import { MOVED_CLOCK_SKIP, makeMovedClock } from '../../support/machine/moved-clock.ts'
import { watchStalls } from '../../support/machine/stall.ts'
import { until } from '../../support/machine/until.ts'
import { isSigned, type Reaction, startReceiver } from '../../support/peers/receiver.ts'
import { startTestService } from '../../support/service/service.ts'

const WEBHOOKS = 4
/** For each webhook, which gets the events of its own stream. */
const EVENTS = 2_500
const DELIVERIES_PAGE = 1_000
const RECIPIENTS = 50
const SENDERS = 5
/** Of the posts to every second webhook, one in this many fails. */
const FAILING = 10
const WAIT_MS = 300_000
/** Beside times in which the machine gave this process nothing. */
const LATE_MS_MAX = 4_000
const DAY_S = 86_400

const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const clock = MOVED_CLOCK_SKIP === false ? makeMovedClock() : null
const settings = { PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8', APPROVAL: 'automatic' }
const start = () => startTestService(settings, { smtp: { ca: receiver.ca } })
const service = await (clock === null ? start() : clock.around(start))
const { testServer, account, operatorToken } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await receiver.close()
})
const { token } = testServer
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
const hook = async (path: string, events: readonly string[], streamId: string | null = null): Promise<string> => {
  const made = await call('POST /v1/webhooks', { url: receiver.url + path, events, streamId })
  return made.json.webhookId
}
const posts = (path: string) => receiver.received.filter((one) => one.path === path)
const answer =
  (status: number): Reaction =>
  (_request, response) => {
    response.statusCode = status
    response.end()
  }

/** Every delivery of a webhook, newest first. */
async function queuedFor(webhookId: string): Promise<string[]> {
  const queued: string[] = []
  for (let after: string | null = ''; after !== null; ) {
    const page = `limit=${DELIVERIES_PAGE}${after === '' ? '' : `&after=${after}`}`
    const { json } = await call(`GET /v1/webhooks/${webhookId}/deliveries?${page}`)
    queued.push(...json.deliveries.map(({ deliveryId }: { deliveryId: string }) => deliveryId))
    after = json.next
  }
  return queued
}

/** Values of the operator's page by name and labels. */
async function metrics(): Promise<Map<string, number>> {
  const { text } = await service.operateActors('GET /metrics', { token: operatorToken })
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]))
}

t.test('webhooks: backlog and its age by class, as an operator reads them [webhook.backlog]', async (t) => {
  const held: (() => void)[] = []
  receiver.react(({ path }, response) => {
    response.statusCode = path === '/ill' ? 500 : 200
    if (path === '/well' && posts('/well').length !== 2) held.push(() => response.end())
    else response.end()
  })
  const [ill, well] = await Promise.all(['/ill', '/well'].map((path) => hook(path, ['bounced'])))
  for (let n = 0; n < 3; n += 1) await call(`POST /v1/webhooks/${ill}/test`, { event: 'bounced' })
  for (let n = 0; n < 5; n += 1) await call(`POST /v1/webhooks/${well}/test`, { event: 'bounced' })
  await until(() => held.length === 1, WAIT_MS)
  held[0]?.()
  const backlogOf = (values: Map<string, number>) =>
    ['failing', 'healthy'].map((name) => values.get(`sendwright_webhook_backlog{class="${name}"}`))
  // Before that a look may find the same figures on their way.
  await until(() => held.length === 2 && posts('/ill').length >= 3, WAIT_MS)
  const page = await until(async () => {
    const values = await metrics()
    return String(backlogOf(values)) === '3,3' ? values : null
  }, WAIT_MS)
  for (const name of ['failing', 'healthy']) {
    const age = page.get(`sendwright_webhook_oldest_seconds{class="${name}"}`) ?? -1
    t.ok(age > 0 && age < WAIT_MS / 1000, `${name}: ${age} s`)
  }
  receiver.react(null)
  for (const id of [ill, well]) t.equal((await call(`DELETE /v1/webhooks/${id}`)).status, 204)
})

t.test('webhooks: 10,000 first attempts under load, in the order of their events [webhook.attempt]', async (t) => {
  const most = 1_000_000
  const raised = await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
    token: operatorToken,
    body: { testPerMinuteLimit: most, testMonthlyCap: most },
  })
  t.equal(raised.status, 200)
  const seen = new Map<string, { id: string; attempt: number; occurredAt: string }[]>()
  const resultOf = (values: Map<string, number>, result: string) =>
    values.get(`sendwright_webhook_attempts_total{result="${result}"}`) ?? 0
  const before = await metrics()
  let fails = 0
  receiver.react(({ path, json: { id, attempt, occurredAt } }, response) => {
    const of = seen.get(path) ?? []
    seen.set(path, of)
    of.push({ id, attempt, occurredAt })
    const isFailing = Number(path.slice(2)) % 2 === 1 && of.length % FAILING === 0
    if (isFailing) fails += 1
    response.statusCode = isFailing ? 503 : 200
    response.end()
  })
  const paths = Array.from({ length: WEBHOOKS }, (_, n) => `/w${n}`)
  const streams: string[] = []
  for (const name of paths)
    streams.push((await call('POST /v1/streams', { kind: 'transactional', name })).json.streamId)
  const ids = await Promise.all(paths.map((path, n) => hook(path, ['delivered'], streams[n])))
  const send = async (sender: number): Promise<void> => {
    for (let n = 0; n < (EVENTS * WEBHOOKS) / RECIPIENTS / SENDERS; n += 1) {
      const to = Array.from({ length: RECIPIENTS }, (_, at) => `delivered+${sender}.${n}.${at}@simulator.test`)
      const more = { subject: 'Order', text: 'Hello', streamId: streams[n % WEBHOOKS] }
      t.equal((await call('POST /v1/email', { from: 'shop@simulator.test', to, ...more })).status, 200)
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, (_, sender) => send(sender)))
  const firstsOf = (path: string) => (seen.get(path) ?? []).filter(({ attempt }) => attempt === 1)
  await until(() => paths.every((path) => firstsOf(path).length >= EVENTS), WAIT_MS)
  for (const [n, path] of paths.entries()) {
    const queued = (await queuedFor(ids[n] as string)).reverse()
    const firsts = firstsOf(path)
    t.equal(firsts.length, EVENTS)
    t.ok(
      firsts.every(({ id }, at) => id === queued[at]),
      `${path}: in the order of their deliveries`,
    )
    t.ok(
      firsts.every(({ occurredAt }, at) => at === 0 || occurredAt >= (firsts[at - 1]?.occurredAt ?? '')),
      `${path}: in the order in which it happened`,
    )
  }
  t.ok(fails > (WEBHOOKS / 2) * (EVENTS / FAILING) - WEBHOOKS, `${fails} attempts failed in between`)
  const values = await until(async () => {
    // Retries fail meanwhile. The page contains the failures before its request.
    const failed = fails
    const now = await metrics()
    const grown = (result: string) => resultOf(now, result) - resultOf(before, result)
    return grown('delivered') >= EVENTS * WEBHOOKS - failed && grown('http_5xx') >= failed ? now : null
  }, WAIT_MS)
  const firsts = values.get('sendwright_webhook_first_attempt_seconds_count') ?? 0
  t.ok(firsts >= EVENTS * WEBHOOKS, `${firsts} first attempts`)
  t.ok((values.get('sendwright_webhook_first_attempt_seconds_sum') ?? 0) < (firsts * WAIT_MS) / 1000)
  for (const id of ids) t.equal((await call(`DELETE /v1/webhooks/${id}`)).status, 204)
})

t.test(
  'webhooks: every retry comes by the schedule, then the delivery is dead until it is replayed [webhook.retry]',
  { skip: MOVED_CLOCK_SKIP },
  async (t) => {
    receiver.react(answer(503))
    const created = await call('POST /v1/webhooks', { url: `${receiver.url}/retry`, events: ['bounced'] })
    const { webhookId, secret } = created.json
    const { deliveryId } = (await call(`POST /v1/webhooks/${webhookId}/test`, { event: 'bounced' })).json
    const path = `/v1/webhooks/${webhookId}/deliveries/${deliveryId}`
    const read = async () => (await call(`GET ${path}`)).json
    /** The deliveries with this number of attempts, once that is committed. */
    const attempted = (attempts: number) =>
      until(async () => {
        const record = await read()
        return record.attempts === attempts ? record : null
      }, WAIT_MS)
    const signedAtMs = (at: number) => Number(posts('/retry')[at]?.headers['webhook-timestamp']) * 1000
    const stalls = watchStalls(t)
    let beganAtMs = performance.now()
    let record = await attempted(1)
    for (const [n, seconds] of WEBHOOK_RETRIES_SECONDS.entries()) {
      t.match(record, { status: 'pending', attempts: n + 1, lastError: 'http_503' })
      const dueAtMs = Date.parse(record.nextAttemptAt)
      const lateMs = dueAtMs - signedAtMs(n) - seconds * 1000 - stalls.during(beganAtMs)
      t.ok(
        dueAtMs - signedAtMs(n) >= seconds * 1000 && lateMs <= LATE_MS_MAX,
        `planned ${lateMs} ms after ${seconds} s`,
      )
      beganAtMs = performance.now()
      // Shortly before it is due. The next commit gets the time.
      clock?.moveTo(Math.floor((dueAtMs - Date.now()) / 1000 - 1) / DAY_S)
      await call('POST /v1/email', {
        from: 'shop@simulator.test',
        to: ['a@simulator.test'],
        subject: 'Now',
        text: 'Now',
      })
      record = await attempted(n + 2)
      const afterMs = signedAtMs(n + 1) - dueAtMs - stalls.during(beganAtMs)
      t.ok(
        signedAtMs(n + 1) - dueAtMs > -1000 && afterMs <= LATE_MS_MAX,
        `attempt ${n + 2} ${afterMs} ms after it was due`,
      )
    }
    t.match(record, { status: 'dead', attempts: 9, nextAttemptAt: null, lastStatusCode: 503 })
    receiver.react(null)
    t.equal((await call(`POST ${path}/replay`)).status, 202)
    t.match(await attempted(10), { status: 'delivered', attempts: 10, lastError: null })
    const all = posts('/retry')
    t.same(
      all.map(({ json }) => [json.id, json.attempt]),
      all.map((_, n) => [deliveryId, n + 1]),
    )
    t.equal(new Set(all.map(({ headers }) => headers['service-signature'])).size, 10, 'signed anew each time')
    for (const one of all.slice(0, 1)) t.ok(isSigned(one, secret))
  },
)
