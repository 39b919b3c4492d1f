/** message-deliveries - the webhook deliveries of one message, and the responses of its receivers. */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { MessageDelivery } from '../../schemas/webhook.ts'
import { until } from '../support/machine/until.ts'
import { startReceiver } from '../support/peers/receiver.ts'
import { startTestService } from '../support/service/service.ts'

const WAIT_MS = 30_000
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const service = await startTestService({ PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' }, { smtp: { ca: receiver.ca } })
const { testServer, liveServer, account } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await receiver.close()
})

const token = testServer.token
const call = (what: string, body?: object) => service.call(what, { token, ...(body !== undefined && { body }) })
const listOf = async (id: string, query = '') => (await call(`GET /v1/messages/${id}/deliveries${query}`)).json

t.test('message-deliveries: each event of the message, for each of its webhooks [webhook.of-message]', async (t) => {
  receiver.react(({ path, json }, response) => {
    response.statusCode = path === '/failing' ? 500 : 200
    response.end(`thanks for ${json.recipient}`)
  })
  const all = (await call('POST /v1/webhooks', { url: `${receiver.url}/all` })).json.webhookId
  const failing = { url: `${receiver.url}/failing`, events: ['bounced'] }
  const bounces = (await call('POST /v1/webhooks', failing)).json.webhookId
  const to = ['fine@simulator.test', 'bounce+9@simulator.test', 'deferred@simulator.test']
  const one = { from: 'shop@simulator.test', subject: 'Order', text: 'Hello' }
  const { messageId } = (await call('POST /v1/email', { ...one, to })).json
  // Another message at the same time. None of its deliveries is in the list.
  await call('POST /v1/email', { ...one, to })
  const seen = await until(async () => {
    const { deliveries } = await listOf(messageId)
    return deliveries.length === 6 && deliveries.every((one: MessageDelivery) => one.attempts > 0) ? deliveries : null
  }, WAIT_MS)
  const { events } = (await call(`GET /v1/messages/${messageId}`)).json
  t.equal(events.length, 5)
  for (const { event, recipient, occurredAt } of events) {
    const own = seen.filter((one: MessageDelivery) => one.occurredAt === occurredAt && one.recipient === recipient)
    const hearers = event === 'bounced' ? [all, bounces] : [all]
    t.same(own.map(({ webhookId }: MessageDelivery) => webhookId).sort(), [...hearers].sort(), event)
    for (const delivery of own) t.match(delivery, { event, messageId, inboundMessageId: null })
  }
  const ids = seen.map(({ deliveryId }: MessageDelivery) => deliveryId)
  t.same(ids, [...ids].sort().reverse(), 'newest first')
  const failed = seen.find(({ webhookId }: MessageDelivery) => webhookId === bounces)
  t.match(failed, { status: 'pending', lastError: 'http_500', lastResponse: 'thanks for <address>' })
  const paged: string[] = []
  for (let after = ''; ; ) {
    const { deliveries, next } = await listOf(messageId, `?limit=2${after}`)
    t.ok(deliveries.length <= 2)
    paged.push(...deliveries.map(({ deliveryId }: MessageDelivery) => deliveryId))
    if (next === null) break
    after = `&after=${next}`
  }
  t.same(paged, ids, 'the same page by page')
  const { webhookId, recipient: _, occurredAt: __, ...shown } = failed
  const { body: ___, ...read } = (await call(`GET /v1/webhooks/${webhookId}/deliveries/${failed.deliveryId}`)).json
  t.same(shown, read, 'as the webhook lists it')
  await call(`DELETE /v1/webhooks/${bounces}`)
  t.equal((await listOf(messageId)).deliveries.length, 5, 'those of a webhook that was removed are gone')
})

t.test('message-deliveries: of missing messages, and messages without a webhook', async (t) => {
  const of = (id: string, as = token) => service.call(`GET /v1/messages/${id}/deliveries`, { token: as })
  for (const id of ['x', randomUUID(), testServer.serverId]) t.equal((await of(id)).status, 404)
  t.equal((await of(randomUUID(), account.token)).json.error, 'wrong_token_kind')
  const body = { from: 'shop@simulator.test', to: ['fine@simulator.test'], subject: 'x', text: 'x' }
  const { messageId } = (await call('POST /v1/email', body)).json
  t.equal((await of(messageId, liveServer.token)).status, 404, 'of another server')
  t.equal((await of(messageId)).status, 200)
})
