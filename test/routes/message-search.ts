/**
 * message-search - POST /v1/messages/search over real HTTP: bounds of every filter, the found messages, their shown
 * fields.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import { withoutSum } from '../../cluster/sum.ts'
import { until } from '../support/machine/until.ts'
import { type Called, startTestService } from '../support/service/service.ts'

const service = await startTestService()
const redis = new Redis({ path: service.redis.socketPath })
const { testServer, liveServer, account } = service.firstRun
const token = testServer.token
t.teardown(async () => {
  redis.disconnect()
  await service.stop()
})

const MESSAGE = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' }

async function send(body: object = {}): Promise<string> {
  const { json } = await service.call('POST /v1/email', { token, body: { ...MESSAGE, ...body } })
  return json.messageId
}

const search = (body: object = {}, by = token): Promise<Called> =>
  service.call('POST /v1/messages/search', { token: by, body })
const idsOf = async (body: object) => (await search(body)).json.messages.map((one: Called['json']) => one.messageId)
const read = async (id: string) => (await service.call(`GET /v1/messages/${id}`, { token })).json

t.test('search: a summary has the same values as GET of the message [message.search] [message.summary]', async (t) => {
  const id = await send({
    from: { email: 'Shop@Simulator.Test', name: 'Shop' },
    to: [{ email: 'Ada@simulator.test', name: 'Ada' }, 'bounce@simulator.test'],
    cc: ['copy@simulator.test'],
    attachments: [{ name: 'a.txt', content: 'QQ==' }],
    subject: 'Grüße an Ada Lovelace',
    tag: 'welcome',
    metadata: { order: '17', region: 'eu' },
  })
  await until(async () => (await read(id)).status === 'mixed', 10_000)
  const whole = await read(id)
  const [summary] = (await search()).json.messages
  for (const name of Object.keys(summary)) t.strictSame(summary[name], whole[name], name)
  const { streamId } = testServer
  const at = Date.parse(whole.submittedAt)
  const from = new Date(at).toISOString()
  const finding: object[] = [
    { recipient: 'ada@SIMULATOR.test' },
    { recipient: 'ADA@simulator.test', from: 'shop@simulator.test' },
    { recipient: 'copy@simulator.test' },
    { from: 'SHOP@simulator.test' },
    { recipientContains: 'COPY@' },
    { recipientContains: 'Ada' },
    { tag: 'welcome' },
    { metadata: { order: '17' } },
    { subject: 'lovelace grüße' },
    { subject: '  ada  ' },
    { status: 'mixed' },
    { status: 'bounced' },
    { status: 'delivered' },
    { event: 'bounced' },
    { event: 'bounced', status: 'bounced', classification: 'InvalidRecipient', site: 'simulator' },
    { site: 'Simulator' },
    { source: 'api' },
    { streamId },
    { streamId: streamId.toUpperCase() },
    { submittedFrom: from },
    { submittedFrom: from.replace('Z', '+00:00') },
    { submittedTo: new Date(at + 1).toISOString() },
    { submittedFrom: '0001-01-01T00:00:00Z', submittedTo: '9999-12-31T23:59:59Z' },
    {
      recipient: 'ada@simulator.test',
      tag: 'welcome',
      metadata: { region: 'eu' },
      status: 'mixed',
      source: 'api',
      streamId,
    },
  ]
  for (const filter of finding) t.strictSame(await idsOf(filter), [id], JSON.stringify(filter))
  const missing: object[] = [
    { recipient: 'shop@simulator.test' },
    { from: 'ada@simulator.test' },
    { recipient: 'nobody@simulator.test' },
    { recipientContains: 'shop@' },
    { tag: 'Welcome' },
    { metadata: { order: '18' } },
    { metadata: { toString: 'x' } },
    { subject: 'ada hopper' },
    { status: 'accepted' },
    { event: 'spam_complaint' },
    { event: 'bounced', status: 'delivered' },
    { classification: 'SpamBlock' },
    { site: 'google' },
    { source: 'smtp' },
    { broadcastId: randomUUID() },
    { submittedTo: from },
    { submittedFrom: new Date(at + 1).toISOString() },
    { submittedTo: '0001-01-01T00:00:00Z' },
    { recipient: 'ada@simulator.test', tag: 'other' },
  ]
  for (const filter of missing)
    t.strictSame((await search(filter)).json, { messages: [], next: null }, JSON.stringify(filter))
})

t.test('search: bounds of its filters [message.search]', async (t) => {
  const cases: [object, number][] = [
    [{ limit: 0 }, 400],
    [{ limit: 1 }, 200],
    [{ limit: 100 }, 200],
    [{ limit: 101 }, 400],
    [{ limit: '5' }, 400],
    [{ tag: '' }, 400],
    [{ tag: 't'.repeat(100) }, 200],
    [{ tag: 't'.repeat(101) }, 400],
    [{ tag: 'a\u0007' }, 400],
    [{ tag: null }, 400],
    [{ subject: '' }, 400],
    [{ subject: ' ' }, 200],
    [{ subject: 's'.repeat(998) }, 200],
    [{ subject: 's'.repeat(999) }, 400],
    [{ subject: 'a\u0007' }, 400],
    [{ metadata: {} }, 400],
    [{ metadata: { a: '1' } }, 200],
    [{ metadata: { a: '1', b: '2' } }, 400],
    [{ metadata: { ['k'.repeat(40)]: 'v'.repeat(500) } }, 200],
    [{ metadata: { ['k'.repeat(41)]: 'v' } }, 400],
    [{ metadata: { k: 'v'.repeat(501) } }, 400],
    [{ metadata: { k: '' } }, 200],
    [{ status: 'mixed' }, 200],
    [{ status: 'sent' }, 400],
    [{ event: 'unsubscribed' }, 200],
    [{ event: 'cancelled' }, 400],
    [{ site: 's'.repeat(255) }, 200],
    [{ site: 's'.repeat(256) }, 400],
    [{ site: '' }, 400],
    [{ classification: 'c'.repeat(101) }, 400],
    [{ source: 'broadcast' }, 200],
    [{ source: 'mail' }, 400],
    [{ recipient: 'nobody' }, 400],
    [{ from: 'a@b' }, 400],
    [{ submittedFrom: '2026-11-20' }, 400],
    [{ submittedFrom: '2026-11-20T00:00:00.123456789+05:30' }, 200],
    [{ submittedTo: '2026-13-20T00:00:00Z' }, 400],
    [{ after: 'x' }, 400],
    [{ after: randomUUID() }, 200],
    [{ broadcastId: 'x' }, 400],
    [{ streamId: 'x' }, 400],
    [{ streamID: testServer.streamId }, 400],
    [{ streamId: randomUUID() }, 422],
    [{ streamId: liveServer.streamId }, 422],
  ]
  for (const [body, status] of cases) {
    const called = await search(body)
    t.equal(called.status, status, `${JSON.stringify(body).slice(0, 80)} ${called.text.slice(0, 200)}`)
    if (status === 400) t.equal(called.json.issues[0].path.split('.')[0], Object.keys(body)[0])
    if (status === 422) t.equal(called.json.error, 'stream_not_found')
  }
  t.equal((await search([])).status, 400)
  t.match((await search({}, account.token)).json, { error: 'wrong_token_kind' })
})

t.test('search: pages continue below their last message, with or without new mail [list.page]', async (t) => {
  const ids: string[] = []
  for (let n = 0; n < 7; n += 1) ids.unshift(await send({ tag: 'paged', to: [`p${n % 2}@simulator.test`] }))
  const seen: string[] = []
  let after: string | undefined
  do {
    const { json } = await search({ tag: 'paged', limit: 2, ...(after && { after }) })
    seen.push(...json.messages.map((one: Called['json']) => one.messageId))
    if (seen.length === 2) await send({ tag: 'paged' })
    after = json.next ?? undefined
  } while (after !== undefined)
  t.strictSame(seen, ids)
  t.strictSame(await idsOf({ recipient: 'p1@simulator.test' }), [ids[1], ids[3], ids[5]])
  t.strictSame(await idsOf({ tag: 'paged', after: ids[3]?.toUpperCase() }), ids.slice(4))
})

t.test('search: the live server knows nothing of the test server', async (t) => {
  t.strictSame((await search({}, liveServer.token)).json, { messages: [], next: null })
})

t.test('search: a pseudonym is shown as it is stored, and no address is in a stream', async (t) => {
  const id = await send({ to: ['erased@simulator.test'] })
  const pseudonym = 'erased-abcdefghijkl@erased.invalid'
  for (const key of await redis.keys(`*:person:${account.accountId}*`)) {
    for (const [field, value] of Object.entries(await redis.hgetall(key)))
      if (withoutSum(value, 'address') === 'erased@simulator.test') await redis.hset(key, field, `202611 ${pseudonym}`)
  }
  const [summary] = (await search({ recipient: 'erased@simulator.test' })).json.messages
  t.match(summary, { messageId: id, recipients: [{ recipient: pseudonym }] })
  for (const key of await redis.keys('*')) {
    if ((await redis.type(key)) !== 'stream') continue
    t.notMatch(JSON.stringify(await redis.xrange(key, '-', '+')), /simulator\.test"|@simulator/, key)
  }
})
