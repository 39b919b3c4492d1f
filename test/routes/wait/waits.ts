/** waits - searches that wait: for messages and events, in both topologies, and how a wait ends. */
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { type Called, startTestService } from '../../support/service/service.ts'

const WAIT_MS = 20_000
const service = await startTestService()
const { liveServer, testServer } = service.firstRun
const { token } = testServer
t.teardown(() => service.stop())

const waitFor = (body: object, by = token): Promise<Called> =>
  service.call('POST /v1/messages/search', { token: by, body: { waitSeconds: 30, ...body } })
const waitForEvents = (body: object): Promise<Called> =>
  service.call('POST /v1/events/search', { token, body: { waitSeconds: 30, ...body } })
const send = (body: object, by = token): Promise<Called> =>
  service.call('POST /v1/email', {
    token: by,
    body: { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'Hello', text: 'x', ...body },
  })

/** Searches that the process with the HTTP listener counts as waiting. */
async function waiting(): Promise<number> {
  const { text } = await service.operate('GET /metrics')
  return Number(/^sendwright_searches_waiting (\d+)$/m.exec(text)?.[1])
}

t.test('wait: it is answered by the message that matches, and by no other [search.wait]', async (t) => {
  const found = waitFor({ tag: 'wanted' })
  await until(async () => (await waiting()) === 1, WAIT_MS)
  await send({ tag: 'other' })
  const { messageId } = (await send({ tag: 'wanted' })).json
  // Sooner than the wait would end by itself.
  await until(async () => (await waiting()) === 0, WAIT_MS)
  const { status, json } = await found
  t.equal(status, 200)
  t.match(json, { messages: [{ messageId }], next: null })
  t.equal(json.messages.length, 1)
  t.equal((await waitFor({ tag: 'wanted' })).json.messages[0].messageId, messageId, 'what is there answers at once')
  t.equal(await waiting(), 0)
})

t.test('wait: a status and an event end a wait too [search.wait]', async (t) => {
  const delivered = waitFor({ tag: 'status', status: 'delivered' })
  const bounced = waitForEvents({ tag: 'status', event: 'bounced' })
  await until(async () => (await waiting()) === 2, WAIT_MS)
  await send({ tag: 'status', to: ['d@simulator.test'] })
  await send({ tag: 'status', to: ['bounce@simulator.test'] })
  await until(async () => (await waiting()) === 0, WAIT_MS)
  t.match((await delivered).json.messages, [{ status: 'delivered' }])
  t.match((await bounced).json.events, [{ event: 'bounced', recipient: 'bounce@simulator.test' }])
})

t.test('wait: without a match it is an empty page, and 0 does not wait [search.wait]', async (t) => {
  t.same((await waitFor({ tag: 'never', waitSeconds: 1 })).json, { messages: [], next: null })
  t.same((await waitForEvents({ tag: 'never', waitSeconds: 0 })).json, { events: [], next: null })
  for (const waitSeconds of [-1, 31, 1.5, '5'])
    t.match((await waitFor({ waitSeconds })).json, { error: 'invalid_request', issues: [{ path: 'waitSeconds' }] })
  const after = '01a1f8d8-8300-7000-8000-0e7faee555a7'
  t.match((await waitFor({ after })).json, { error: 'invalid_request', issues: [{ path: 'waitSeconds' }] })
  t.equal((await waitFor({ after, waitSeconds: 0 })).status, 200)
})

t.test('wait: places are bounded, and a client that leaves gives its own back [search.wait]', async (t) => {
  const body = JSON.stringify({ tag: 'never', waitSeconds: 30 })
  const head = [
    'POST /v1/messages/search HTTP/1.1',
    'Host: a',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  const sockets = Array.from({ length: 10 }, () => connect(service.config.httpPort, '127.0.0.1'))
  for (const socket of sockets) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  await until(async () => (await waiting()) === 10, WAIT_MS)
  const refused = await fetch(`http://127.0.0.1:${service.config.httpPort}/v1/messages/search`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body,
  })
  t.equal(refused.status, 429)
  t.equal(refused.headers.get('retry-after'), '1')
  await refused.text()
  const other = waitFor({ tag: 'live' }, liveServer.token)
  await until(async () => (await waiting()) === 11, WAIT_MS)
  for (const socket of sockets) {
    socket.destroy()
    await once(socket, 'close')
  }
  await until(async () => (await waiting()) === 1, WAIT_MS)
  t.equal((await send({ tag: 'live' }, liveServer.token)).status, 422)
  void other.catch(() => undefined)
})

t.test('wait: a revocation ends it with 401 [search.wait]', async (t) => {
  const made = (await service.call('POST /v1/tokens', { token, body: { name: 'Two' } })).json
  const before = await waiting()
  const found = waitFor({ tag: 'never' }, made.token)
  await until(async () => (await waiting()) === before + 1, WAIT_MS)
  t.equal((await service.call(`POST /v1/tokens/${made.tokenId}/revoke`, { token })).status, 200)
  await until(async () => (await waiting()) === before, WAIT_MS)
  t.match(await found, { status: 401, json: { error: 'unauthorized' } })
})

t.test('wait: a stop answers an empty page [search.wait]', async (t) => {
  const found = waitFor({ tag: 'never' })
  const before = await waiting()
  await until(async () => (await waiting()) >= Math.max(1, before), WAIT_MS)
  await service.restart()
  t.match(await found, { status: 200, json: { messages: [], next: null } })
})
