/**
 * event-search - POST /v1/events/search over real HTTP: all events equal those of a webhook, every filter, pages,
 * refusals.
 */
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { startReceiver } from '../support/peers/receiver.ts'
import { type Called, startTestService } from '../support/service/service.ts'

const WAIT_MS = 20_000
const receiver = await startReceiver()
if (receiver === null) {
  t.pass('openssl is not installed: skipped')
  process.exit(0)
}
const settings = { PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8', CONTENT_STORE: 'file' }
const service = await startTestService(settings, { smtp: { ca: receiver.ca } })
const { testServer, liveServer, account } = service.firstRun
const { token, streamId } = testServer
t.teardown(async () => {
  await service.stop()
  await receiver.close()
})

const search = (body: object = {}, by = token): Promise<Called> =>
  service.call('POST /v1/events/search', { token: by, body })
const MESSAGE = { from: 'you@simulator.test', subject: 'Hello', text: 'It works.' }

async function send(body: object): Promise<string> {
  const sent = await service.call('POST /v1/email', { token, body: { ...MESSAGE, ...body } })
  t.equal(sent.status, 200, sent.text)
  return sent.json.messageId
}

/** All events, walked in pages. */
async function walk(filter: object, limit: number): Promise<Called['json'][]> {
  const found: Called['json'][] = []
  for (let after: string | null = null; ; ) {
    const page: Called = await search({ ...filter, limit, ...(after !== null && { after }) })
    found.push(...page.json.events)
    after = page.json.next
    if (after === null) return found
    t.equal(after, found.at(-1)?.id, 'the next page begins after the last event')
  }
}

/** An event without what its delivery adds. */
const plain = ({ id: _, attempt: __, ...rest }: Called['json']) => rest

t.test('events: all events equal those of a webhook, one by one [event.search]', async (t) => {
  const body = { url: `${receiver.url}/all`, inboundContent: 'reference' }
  t.equal((await service.call('POST /v1/webhooks', { token, body })).status, 201)
  const began = new Date().toISOString()
  const other = await service.call('POST /v1/streams', { token, body: { kind: 'transactional', name: 'Apart' } })
  const apart = other.json.streamId
  const receipt = { tag: 'receipt', metadata: { order: '17', region: 'eu' } }
  const first = await send({ to: ['Ada@simulator.test', 'bounce@simulator.test'], ...receipt })
  await send({ to: ['deferred@simulator.test'], tag: 'Receipt', metadata: { order: '18' } })
  await send({ to: ['complaint@simulator.test'], streamId: apart })
  await until(async () => (await search()).json.events.length === 7, WAIT_MS)
  // A bounced recipient is on the list, so the next message has its event at acceptance.
  await send({ to: ['bounce@simulator.test'] })
  await until(() => receiver.received.length === 8, WAIT_MS)
  const got = receiver.received.map(({ json }) => json).sort((one, two) => (one.id < two.id ? -1 : 1))
  const all = await walk({}, 3)
  t.same(all.map(plain), got.map(plain))
  t.equal(new Set(all.map(({ id }) => id)).size, 8)
  const ids = async (filter: object) => (await walk(filter, 100)).map(({ id }) => id)
  const those = (holds: (event: Called['json']) => boolean) => all.filter(holds).map(({ id }) => id)
  const at = all[3].occurredAt
  const filters: readonly [object, (event: Called['json']) => boolean][] = [
    [{ event: 'deferred' }, ({ event }) => event === 'deferred'],
    [{ streamId: apart.toUpperCase() }, (one) => one.streamId === apart],
    [{ streamId }, (one) => one.streamId === streamId],
    [{ tag: 'receipt' }, ({ tag }) => tag === 'receipt'],
    [{ metadata: { order: '17' } }, ({ metadata }) => metadata.order === '17'],
    [{ metadata: { toString: 'x' } }, () => false],
    [{ messageId: first.toUpperCase() }, ({ messageId }) => messageId === first],
    [{ recipient: 'ada@SIMULATOR.test' }, ({ recipient }) => recipient === 'Ada@simulator.test'],
    [{ recipient: 'nobody@simulator.test' }, () => false],
    [{ from: began }, () => true],
    [{ to: began }, () => false],
    [{ from: at }, ({ occurredAt }) => occurredAt >= at],
    [{ to: at }, ({ occurredAt }) => occurredAt < at],
    [{ from: '0001-01-01T00:00:00Z', to: '9999-12-31T23:59:59Z' }, () => true],
    [{ event: 'bounced', recipient: 'bounce@simulator.test', streamId }, ({ event }) => event === 'bounced'],
  ]
  for (const [filter, holds] of filters) t.same(await ids(filter), those(holds), JSON.stringify(filter))
  t.same(
    await ids({ after: all[4].id }),
    those(({ id }) => id > all[4].id),
  )
})

t.test('events: those of a cap are included [event.search]', async (t) => {
  const patch = `PATCH /v1/operator/accounts/${account.accountId}`
  const { operatorToken } = service.firstRun
  t.equal((await service.operate(patch, { token: operatorToken, body: { testMonthlyCap: 1 } })).status, 200)
  const body = { ...MESSAGE, to: ['a@simulator.test'] }
  t.match(await service.call('POST /v1/email', { token, body }), { json: { error: 'cap_reached' } })
  const { events } = (await search({ event: 'cap_reached' })).json
  t.match(events, [{ event: 'cap_reached', scope: 'test', cap: 1, attempt: 1 }])
  t.same((await search({ event: 'cap_reached', streamId })).json.events, [], 'of a stream are events of messages alone')
})

t.test('events: refusals [event.search]', async (t) => {
  const wrong: object[] = [
    { limit: 0 },
    { limit: 1001 },
    { event: 'opened' },
    { metadata: {} },
    { metadata: { a: '1', b: '2' } },
    { after: 'x' },
    { from: 'yesterday' },
    { recipient: 'nobody' },
    { since: '2026-01-01T00:00:00Z' },
  ]
  for (const body of wrong) t.match(await search(body), { status: 400, json: { error: 'invalid_request' } })
  const unknown = { status: 422, json: { error: 'stream_not_found' } }
  for (const id of [randomUUID(), liveServer.streamId]) t.match(await search({ streamId: id }), unknown)
  t.match(await search({}, account.token), { status: 403, json: { error: 'wrong_token_kind' } })
})
