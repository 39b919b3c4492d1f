/**
 * scheduled - a message with sendAt: never early, sent on time, cancelled and moved as a whole until an attempt begins.
 */

import { randomUUID } from 'node:crypto'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startTestService } from '../support/service/service.ts'

const service = await startTestService()
const { testServer, operatorToken } = service.firstRun
const { token } = testServer
t.teardown(() => service.stop())

const MESSAGE = { from: 'you@simulator.test', to: ['delivered@simulator.test'], subject: 'Hello', text: 'It works.' }
const WAIT_MS = 20_000
const HOUR_MS = 3_600_000

const at = (ms: number) => new Date(Date.now() + ms).toISOString()
const send = (changes: object, headers: Record<string, string> = {}) =>
  service.call('POST /v1/email', { token, body: { ...MESSAGE, ...changes }, headers })
const read = async (id: string) => (await service.call(`GET /v1/messages/${id}`, { token })).json
const cancel = (id: string) => service.call(`POST /v1/messages/${id}/cancel`, { token })
const patch = (id: string, sendAt: string) => service.call(`PATCH /v1/messages/${id}`, { token, body: { sendAt } })

t.test('scheduled: sent at its time and not before [send.at]', async (t) => {
  const sendAt = at(3000)
  const { json } = await send({ sendAt })
  t.equal(json.status, 'accepted')
  const waiting = await read(json.messageId)
  t.match(waiting, { status: 'scheduled', sendAt, recipients: [{ status: 'scheduled', nextAttemptAt: sendAt }] })
  await until(async () => (await read(json.messageId)).status === 'delivered', WAIT_MS)
  const [event] = (await read(json.messageId)).events
  t.ok(event.occurredAt >= sendAt, `${event.occurredAt} is not before ${sendAt}`)
})

t.test('scheduled: a time that is past, too far ahead or no moment is a 400 [send.at]', async (t) => {
  for (const sendAt of [at(-61_000), at(6 * 24 * HOUR_MS + 60_000), '2026-12-24', '2026-12-24T08:00:00']) {
    const called = await send({ sendAt })
    t.equal(called.status, 400, sendAt)
    t.equal(called.json.issues[0].path, 'sendAt')
  }
  const { json } = await send({ sendAt: at(-30_000) })
  await until(async () => (await read(json.messageId)).status === 'delivered', WAIT_MS)
  const batch = await service.call('POST /v1/email/batch', {
    token,
    body: { messages: [MESSAGE, { ...MESSAGE, sendAt: at(-HOUR_MS) }] },
  })
  t.equal(batch.json.issues[0].path, 'messages.1.sendAt')
})

t.test('scheduled: a replay after its time is the first answer [request.idempotency]', async (t) => {
  const headers = { 'Idempotency-Key': randomUUID() }
  const sendAt = at(-59_000)
  const first = await send({ sendAt }, headers)
  await until(() => Date.parse(sendAt) < Date.now() - 60_000, WAIT_MS)
  const again = await send({ sendAt }, headers)
  t.same(again.json, first.json)
})

t.test('scheduled: cancelled as a whole, twice, with its attachment [message.cancel]', async (t) => {
  const attachments = [{ name: 'a.txt', content: Buffer.alloc(2000, 'a').toString('base64') }]
  const { json } = await send({
    sendAt: at(HOUR_MS),
    to: ['delivered@simulator.test', 'b@simulator.test'],
    attachments,
  })
  const before = (await service.call('GET /v1/server', { token })).json.limits[0].used
  for (const _ of [1, 2]) {
    const called = await cancel(json.messageId)
    t.equal(called.status, 200)
    t.match(called.json, { status: 'cancelled', events: [] })
    t.ok(called.json.recipients.every((one: { nextAttemptAt: unknown }) => one.nextAttemptAt === null))
  }
  t.equal((await service.call('GET /v1/server', { token })).json.limits[0].used >= before, true, 'usage stays')
  t.match((await patch(json.messageId, at(HOUR_MS))).json, { error: 'message_not_scheduled' })
})

t.test('scheduled: another time, earlier and later [message.reschedule]', async (t) => {
  const { json } = await send({ sendAt: at(HOUR_MS) })
  t.match((await patch(json.messageId, at(-HOUR_MS))).json, { error: 'invalid_request', issues: [{ path: 'sendAt' }] })
  const later = at(2 * HOUR_MS)
  t.match((await patch(json.messageId, later)).json, { sendAt: later, status: 'scheduled' })
  const soon = at(500)
  t.equal((await patch(json.messageId, soon)).status, 200)
  await until(async () => (await read(json.messageId)).status === 'delivered', WAIT_MS)
  t.match((await patch(json.messageId, at(HOUR_MS))).json, { error: 'message_not_scheduled' })
  t.match((await cancel(json.messageId)).json, { error: 'message_not_scheduled' })
})

t.test('scheduled: an ordinary message, a foreign one and one that is not there cannot be cancelled', async (t) => {
  const { json } = await send({})
  t.match((await cancel(json.messageId)).json, { error: 'message_not_scheduled' })
  t.equal((await cancel(randomUUID())).status, 404)
})

t.test('scheduled: the suppression list is checked at its time [send.suppressed]', async (t) => {
  const { json } = await send({ sendAt: at(3000), to: ['late@simulator.test'] })
  const added = await service.call('POST /v1/suppressions', {
    token,
    body: { streamId: (await read(json.messageId)).streamId, recipients: ['late@simulator.test'] },
  })
  t.equal(added.status, 200)
  await until(async () => (await read(json.messageId)).status === 'suppressed', WAIT_MS)
  t.match((await read(json.messageId)).events, [
    { event: 'bounced', details: { classification: 'Suppressed', hard: true } },
  ])
})

t.test('scheduled: a retry of the queue sends nothing early [queue.retry]', async (t) => {
  const { json } = await send({ sendAt: at(HOUR_MS) })
  await service.operate('POST /v1/operator/queue/simulator.test/retry', { token: operatorToken })
  t.equal((await read(json.messageId)).status, 'scheduled')
})
