/**
 * retries - what the client repeats: sends with their key and reads, after 429, 503 and a lost answer, and nothing else
 *
 * Between the client and the service is a proxy that loses the answers that a test names, or answers in place of the
 * service, as a proxy in front of it would.
 */
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { ConnectionError, LimitError, Sendwright, ServiceError, WaitTimeoutError } from '../../src/client/sendwright.ts'
import { startTestService } from '../support/service/service.ts'

interface Reaction {
  /** Null: the answer of the service is lost after it was given. */
  readonly status: number | null
  readonly headers?: Readonly<Record<string, string>>
}

const service = await startTestService()
const { token } = service.firstRun.testServer
const reactions: Reaction[] = []
const keys: (string | undefined)[] = []
const proxy = createServer((incoming, outgoing) => {
  keys.push(incoming.headers['idempotency-key'] as string | undefined)
  const reaction = reactions.shift()
  if (reaction?.status != null) {
    incoming.resume()
    outgoing.writeHead(reaction.status, reaction.headers).end('later')
    return
  }
  const { method = '', url = '', headers } = incoming
  const asked = request({ port: service.config.httpPort, method, path: url, headers }, (answer) => {
    if (reaction !== undefined) lose(outgoing)
    else {
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(outgoing)
    }
  })
  asked.on('error', () => lose(outgoing))
  incoming.pipe(asked)
})
await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
const client = new Sendwright({ key: token, url })
t.teardown(async () => {
  proxy.closeAllConnections()
  proxy.close()
  await service.stop()
})
t.beforeEach(() => {
  reactions.length = 0
  keys.length = 0
})

function lose(outgoing: ServerResponse): void {
  outgoing.socket?.destroy()
}

const LOST: Reaction = { status: null }
const BUSY: Reaction = { status: 503, headers: { 'retry-after': '1' } }
const EMAIL = { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'Once', text: 'x' }

async function sentWith(tag: string): Promise<number> {
  return (await service.call('POST /v1/messages/search', { token, body: { tag } })).json.messages.length
}

t.test('client: a send whose answer was lost takes effect once [client.retries]', async (t) => {
  reactions.push(LOST, BUSY, { status: 429, headers: { 'retry-after': '1' } }, { status: 502 })
  const { messageId } = await client.send({ ...EMAIL, tag: 'lost' })
  t.equal(keys.length, 5)
  t.equal(new Set(keys).size, 1, 'with one key')
  t.ok(keys[0])
  t.equal(await sentWith('lost'), 1)
  t.equal((await client.messages.search({ tag: 'lost' })).messages[0]?.messageId, messageId)
})

t.test('client: after four retries the error is that of the last attempt [client.retries]', async (t) => {
  reactions.push(...Array.from({ length: 9 }, () => LOST))
  await t.rejects(client.send({ ...EMAIL, tag: 'never' }), ConnectionError)
  t.equal(keys.length, 5)
  t.equal(await sentWith('never'), 1, 'it was accepted, which only another call with its key would show')
})

t.test('client: reads are repeated, other writes and long waits are not [client.retries]', async (t) => {
  reactions.push(BUSY)
  t.ok(await client.readServer())
  t.equal(keys.length, 2)
  reactions.push(BUSY)
  const suppressions = { streamId: service.firstRun.testServer.streamId, recipients: ['a@x.example'] }
  await t.rejects(client.suppressions.add(suppressions), ServiceError)
  t.equal(keys.length, 3)
  reactions.push({ status: 429, headers: { 'retry-after': '86400' } })
  const error = await client.send(EMAIL).catch((one: unknown) => one)
  t.ok(error instanceof LimitError)
  t.match(error, { retryAfterSeconds: 86_400, code: null, status: 429 })
  t.equal(keys.length, 4)
  await t.rejects(client.send({ ...EMAIL, subject: '' }), { code: 'invalid_request' })
  t.equal(keys.length, 5, 'a refusal is final')
})

t.test('client: a wait that no attempt has time for asks once a second [client.types]', async (t) => {
  const hasty = new Sendwright({ key: token, url, timeoutMs: 5_000 })
  await t.rejects(hasty.messages.wait({ tag: 'nothing' }, { timeoutSeconds: 2 }), WaitTimeoutError)
  t.ok(keys.length >= 2 && keys.length <= 4, `${keys.length} searches`)
})

t.test('client: a key that no header can hold is refused before a request [client.retries]', async (t) => {
  for (const idempotencyKey of ['', 'a\r\nx: y', 'ü', 'x'.repeat(256)])
    await t.rejects(client.send(EMAIL, { idempotencyKey }), { message: /^idempotencyKey must be/ })
  t.equal(keys.length, 0)
})

t.test('client: an answer that is no JSON is an error that shows it [client.errors]', async (t) => {
  reactions.push({ status: 200 })
  await t.rejects(client.readServer(), { name: 'SendwrightError', message: /is this the address of the API\? later/ })
})

t.test('client: a signal ends a call, its retries too, and an attempt has a time limit [client.retries]', async (t) => {
  const ending = new AbortController()
  reactions.push({ status: 503, headers: { 'retry-after': '60' } })
  const sent = client.send(EMAIL, { signal: ending.signal })
  setTimeout(() => ending.abort(new Error('enough')), 50)
  await t.rejects(sent, /enough/)
  await t.rejects(client.send(EMAIL, { signal: ending.signal }), /enough/)
  const silent = createServer(() => undefined)
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const { port } = silent.address() as AddressInfo
  const patient = new Sendwright({ key: token, url: `http://127.0.0.1:${port}`, timeoutMs: 50, retries: 1 })
  await t.rejects(patient.readServer(), /none within 50 ms/)
})
