/** queue - the operator's view of pending mail, and the effect of orders. */

import { Redis } from 'ioredis'
import t from 'tap'
import { startDelivery } from '../../support/service/delivery.ts'

const delivery = await startDelivery()
const { send, message, messageWhen, destination, operate, service } = delivery
const redis = new Redis(service.redis.socketPath)
t.teardown(async () => {
  redis.disconnect()
  await delivery.stop()
})
t.jobs = 1

// biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
async function listed(domain: string): Promise<any> {
  const { destinations } = (await operate('GET /queue?limit=100')).json as { destinations: { domain: string }[] }
  return destinations.find((one) => one.domain === domain)
}

t.test('queue: a destination with its pending mail, its age, and its last reply [queue.list]', async (t) => {
  await destination('late.test', { rcpt: '450 4.2.0 <ann@late.test>: try later' })
  const id = await send(['ann@late.test', 'bob@late.test'])
  const { submittedAt } = await messageWhen(id, ({ status }) => status === 'deferred')
  t.match(await listed('late.test'), {
    site: 'mx.late.test',
    waiting: 2,
    deferred: 2,
    held: 0,
    oldestAt: submittedAt,
    lastCode: 450,
    // It names one of the two, and is kept for both.
    lastResponse: /^450 4\.2\.0 <<(rcpt|address)>>: try later$/,
  })
  const { text } = await service.operate('GET /metrics')
  const actors = await service.operateActors('GET /metrics')
  t.match(text, /^sendwright_queue_recipients\{site="mx\.late\.test",age="5m"\} 2$/m)
  t.match(actors.text, /^sendwright_attempts_total\{result="deferred",class="PolicyRelated"\} 2$/m)
  t.match(actors.text, /^sendwright_sessions_total\{tls="none",verified="false"\} [12]$/m)
})

t.test('queue: each message of a destination, and why it waits [queue.messages]', async (t) => {
  await destination('why.test', { rcpt: '450 4.2.0 <ann@why.test>: try later' })
  const id = await send(['ann@why.test', 'bob@why.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  const sendAt = new Date(Date.now() + 3_600_000).toISOString()
  const later = await send(['ann@why.test'], { sendAt })
  const read = async (query: string) => (await operate(`GET /queue/messages?${query}`)).json
  const mine = { messageId: id, attempts: 1, lastCode: 450, lastResponse: /^450 4\.2\.0 <<\w+>>: try later$/ }
  t.match(await read('domain=Why.Test'), {
    messages: [
      { ...mine, why: 'deferred' },
      { ...mine, why: 'deferred' },
      { messageId: later, recipientIndex: 0, why: 'scheduled', attempts: 0, lastCode: null, dueAt: sendAt },
    ],
  })
  const { messages } = (await read('domain=why.test&limit=2')) as {
    messages: { recipientIndex: number; serverId: string }[]
  }
  t.same(messages.map(({ recipientIndex }) => recipientIndex).sort(), [0, 1])
  t.match(messages[0]?.serverId, /^[0-9a-f-]{36}$/)
  await operate('POST /queue/hold', { domain: 'why.test' })
  t.match(await read('domain=why.test'), { messages: [{ why: 'held' }, { why: 'held' }, { why: 'held' }] })
  await operate('POST /queue/release', { domain: 'why.test' })
  t.same(await read('domain=unknown.test'), { messages: [] })
})

t.test('queue: the accounts whose mail waits, of one destination and of all [queue.accounts]', async (t) => {
  await destination('many.test', { rcpt: '450 4.2.0 later' })
  const id = await send(['ann@many.test', 'bob@many.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  await send(['eve@many.test'], { sendAt: new Date(Date.now() + 3_600_000).toISOString() })
  const { accountId } = service.firstRun.account
  const { submittedAt } = await message(id)
  const read = async (query: string) => (await operate(`GET /queue/accounts?${query}`)).json
  t.same(await read('domain=Many.test'), {
    accounts: [{ accountId, waiting: 3, deferred: 2, scheduled: 1, oldestAt: submittedAt }],
    isComplete: true,
  })
  const { accounts } = (await read('')) as { accounts: { accountId: string; waiting: number }[] }
  t.equal(accounts[0]?.accountId, accountId)
  t.ok((accounts[0]?.waiting ?? 0) > 3, 'other destinations too')
  t.same(await read('domain=unknown.test'), { accounts: [], isComplete: true })
})

t.test('queue: retry makes pending mail due now, and the schedule continues [queue.retry]', async (t) => {
  const mx = await destination('grey.test', { mail: '451 4.7.1 Greylisted' })
  const id = await send(['ann@grey.test'])
  const { events } = await messageWhen(id, ({ status }) => status === 'deferred')
  const [lane] = await redis.keys('*:due:deliver/grey.test')
  const [, atMs] = await redis.zrange(lane ?? '', 0, 0, 'WITHSCORES')
  const delayMs = Number(atMs) - Date.parse(String(events[0]?.occurredAt))
  t.ok(delayMs > 50_000 && delayMs <= 66_000, `at +1 minute: ${delayMs} ms`)
  mx.sever()
  mx.script({})
  t.match(await operate('POST /queue/retry', { domain: 'Grey.Test', note: 'they said so' }), {
    json: { recipients: 1 },
  })
  const done = await messageWhen(id, ({ status }) => status === 'delivered')
  t.same(
    done.events.map(({ event }) => event),
    ['deferred', 'delivered'],
  )
  t.equal(await listed('grey.test'), undefined)
})

t.test('queue: held mail waits, and later mail too, until it is released [queue.hold]', async (t) => {
  const mx = await destination('held.test')
  t.match(await operate('POST /queue/hold', { domain: 'held.test' }), { status: 200, json: { recipients: 0 } })
  t.match(await listed('held.test'), { waiting: 0, held: 0 })
  const ids = [await send(['ann@held.test']), await send(['bob@held.test'])]
  t.match(await listed('held.test'), { waiting: 2, held: 2, deferred: 0 })
  const [lane = ''] = await redis.keys('*:due:deliver/held.test')
  const [item = '', atMs = ''] = await redis.zrange(lane, 0, 0, 'WITHSCORES')
  for (const [aheadMs, deferred] of [
    [3_000, 0],
    [20_000, 1],
  ] as const) {
    await redis.zadd(lane, Date.now() + aheadMs, item)
    t.match(await listed('held.test'), { deferred }, `due in ${aheadMs} ms`)
  }
  await redis.zadd(lane, atMs, item)
  t.match((await operate('POST /queue/retry', { domain: 'held.test' })).json, { recipients: 0 })
  const later = await destination('free.test')
  await messageWhen(await send(['ann@free.test']), ({ status }) => status === 'delivered')
  t.equal(later.sessions.length, 1, 'other mail went out meanwhile')
  t.equal(mx.sessions.length, 0)
  t.match(await operate('POST /queue/release', { domain: 'held.test' }), { json: { recipients: 2 } })
  for (const id of ids)
    t.equal((await messageWhen(id, ({ status }) => status === 'delivered')).recipients[0]?.attempts, 1)
})

t.test('queue: a hold outlives the service [queue.hold]', async (t) => {
  const mx = await destination('kept.test')
  await operate('POST /queue/hold', { domain: 'kept.test' })
  await service.restart()
  const id = await send(['ann@kept.test'])
  t.match(await listed('kept.test'), { waiting: 1, held: 1 })
  t.equal(mx.sessions.length, 0)
  await operate('POST /queue/release', { domain: 'kept.test' })
  await messageWhen(id, ({ status }) => status === 'delivered')
})

t.test('queue: dropped mail bounces, and suppresses no address [queue.drop]', async (t) => {
  const mx = await destination('gone.test', { rcpt: '450 4.2.0 later' })
  const id = await send(['ann@gone.test', 'bob@gone.test'])
  await messageWhen(id, ({ status }) => status === 'deferred')
  t.match(await operate('POST /queue/drop', { domain: 'gone.test', note: 'a typo' }), { json: { recipients: 2 } })
  const dropped = await message(id)
  t.equal(dropped.status, 'bounced')
  for (const { attempts } of dropped.recipients) t.equal(attempts, 1, 'that was no attempt')
  const bounces = dropped.events.filter(({ event }) => event === 'bounced')
  const told = { code: null, response: 'dropped by the operator', classification: null, hard: false, expired: false }
  t.match(bounces, [{ details: told }, { details: told }])
  t.equal(await listed('gone.test'), undefined)
  mx.sever()
  mx.script({})
  await messageWhen(await send(['ann@gone.test']), ({ status }) => status === 'delivered')
  t.match(await operate('POST /queue/drop', { domain: 'gone.test' }), { json: { recipients: 0 } })
})

t.test('queue: the fullest first, page by page [queue.list]', async (t) => {
  const domains = ['one.test', 'two.test', 'three.test']
  for (const [index, domain] of domains.entries()) {
    await operate('POST /queue/hold', { domain })
    await send(Array.from({ length: index + 10 }, (_, n) => `p${n}@${domain}`))
  }
  const seen: string[] = []
  let next: unknown = null
  for (let pages = 0; pages < 20; pages += 1) {
    const { json } = await operate(`GET /queue?limit=1${next === null ? '' : `&after=${next}`}`)
    seen.push(...(json.destinations as { domain: string }[]).map(({ domain }) => domain))
    next = json.next
    if (next === null) break
  }
  t.same(seen.slice(0, 3), ['three.test', 'two.test', 'one.test'])
  t.equal(new Set(seen).size, seen.length)
  t.equal((await operate('GET /queue?after=nonsense')).status, 400)
  for (const domain of domains) t.match(await operate('POST /queue/drop', { domain }), { status: 200 })
})

t.test('queue: orders are logged with their changes [operator.audit]', async (t) => {
  const { entries } = (await operate('GET /audit?limit=100')).json as { entries: { act: string }[] }
  const acts = entries.map(({ act }) => act).filter((act) => act.endsWith('Queue'))
  for (const act of ['holdQueue', 'releaseQueue', 'retryQueue', 'dropQueue']) t.ok(acts.includes(act), act)
  t.match(
    entries.find(({ act }) => act === 'releaseQueue'),
    { targets: { domain: 'kept.test' }, before: { held: true }, after: { held: false } },
  )
  t.equal((await operate('POST /queue/hold', {})).status, 400)
})
