/**
 * events - a server's events as they happen, over real HTTP; the command line that shows and forwards them.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t from 'tap'
import { EVENT_BODIES, type EventName } from '../../../schemas/webhook.ts'
import { compileBody } from '../../../src/http/shape/validate.ts'
import { eventHeaders } from '../../../src/webhooks/sign-event.ts'
import { readEventLines } from '../../support/clients/event-lines.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'
import { isSigned, type Received } from '../../support/peers/receiver.ts'
import { deliverMail } from '../../support/peers/smtp-dialog.ts'
import { startZone } from '../../support/peers/zone.ts'
import { startTestService } from '../../support/service/service.ts'

const WAIT_MS = 20_000
const LOOKS_MS = 20_000
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
const zone = await startZone()
const service = await startTestService({ CONTENT_STORE: 'file', DNS_SERVERS: zone.server })
const { testServer, liveServer, account, operatorToken } = service.firstRun
t.teardown(async () => {
  await service.stop()
  await zone.close()
})
// Sent over and over until an event is seen: more in a minute than a test server may.
await service.operate(`PATCH /v1/operator/accounts/${account.accountId}`, {
  token: operatorToken,
  body: { testPerMinuteLimit: 1_000_000 },
})

const send = (...to: string[]) => {
  const body = { from: 'shop@simulator.test', to, subject: 'Order', text: 'Hello' }
  return service.call('POST /v1/email', { token: testServer.token, body })
}

/** Opens the feed of a server; `events` grows as they come. */
async function open(serverId: string, token = operatorToken) {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const url = `http://127.0.0.1:${service.config.operatorPort}/v1/operator/servers/${serverId}/events`
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` }, signal: stop.signal })
  const { lines, over } = readEventLines(response)
  return {
    response,
    get events() {
      return lines.map(({ data }) => data)
    },
    over,
    stop: () => stop.abort(),
  }
}

/** Whether a feed ends while its key is looked at a few times. */
function isOver(over: Promise<true>): Promise<boolean> {
  return Promise.race([over, setTimeout(LOOKS_MS, false, { ref: false })])
}

t.test('operator events: each event from now on, as a webhook would get it [operator.events]', async (t) => {
  await send('before@simulator.test')
  const feed = await open(testServer.serverId)
  t.equal(feed.response.status, 200)
  t.equal(feed.response.headers.get('content-type'), 'text/event-stream')
  const other = await open(liveServer.serverId)
  await until(async () => {
    await send('bounce@simulator.test')
    return feed.events.length > 0
  }, WAIT_MS)
  const { messageId } = (await send('ann+delivered@simulator.test')).json
  await until(() => feed.events.some((one) => one.messageId === messageId), WAIT_MS)
  for (const one of feed.events) t.same(compileBody(EVENT_BODIES[one.event as EventName])(one).ok, true)
  t.match(feed.events.at(-1), { event: 'delivered', recipient: 'ann+delivered@simulator.test', test: true, attempt: 1 })
  t.same(other.events, [], 'of its own server alone')
  feed.stop()
  other.stop()
})

t.test('operator events: keys without the right, and missing servers', async (t) => {
  t.equal((await open(testServer.serverId, account.token)).response.status, 401)
  for (const id of ['x', '01a1f8d8-8300-7000-8000-0e7faee555a7', account.accountId])
    t.equal((await open(id)).response.status, 404, id)
})

t.test('operator events: received mail as a reference, without its content [operator.events]', async (t) => {
  const body = { kind: 'inbound', name: 'Mail' }
  const { streamId } = (await service.call('POST /v1/streams', { token: liveServer.token, body })).json
  const feed = await open(liveServer.serverId)
  const mail = 'From: a@a.example\nTo: b@b.example\nSubject: Word\nContent-Type: text/html\n\n<p>xyzzy</p>\n'
  await until(async () => {
    await deliverMail(service.config.mxPort, `${streamId}@${service.config.inboundDomain}`, mail)
    return feed.events.length > 0
  }, WAIT_MS)
  t.match(feed.events[0], { event: 'inbound', streamId, hasHtml: true })
  t.notMatch(JSON.stringify(feed.events), /xyzzy|Word|a\.example/)
  feed.stop()
})

t.test('operator events: a feed ends with the session that opened it [operator.events]', async (t) => {
  const session = async () =>
    (await service.operate('POST /v1/operator/session', { token: operatorToken, body: {} })).json.token as string
  const [ended, kept] = [await session(), await session()]
  const [feed, other] = [await open(testServer.serverId, ended), await open(testServer.serverId, kept)]
  t.equal((await service.operate('DELETE /v1/operator/session', { token: ended, body: {} })).status, 204)
  t.ok(await isOver(feed.over))
  await until(async () => {
    await send('bounce@simulator.test')
    return other.events.length > 0
  }, WAIT_MS)
  other.stop()
})

t.test(
  'operator events: a closing listener ends its feeds; tail continues, listen forwards signed events',
  async (t) => {
    const received: Received[] = []
    const local = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const headers = request.headers as Record<string, string>
        received.push({ path: request.url ?? '', headers, body, json: JSON.parse(body), atMs: Date.now() })
        response.end()
      })
    })
    await new Promise<void>((resolve) => local.listen(0, '127.0.0.1', resolve))
    const { port } = local.address() as AddressInfo
    const run = (...args: string[]) => {
      const child = spawnNode([join(ROOT, 'build/src/cli/main.js'), ...args], {
        env: { ...process.env, DATA_DIR: service.dataDir, OPERATOR_PORT: String(service.config.operatorPort) },
      })
      const said = { out: '', err: '' }
      child.stdout.on('data', (piece: Buffer) => {
        said.out += piece
      })
      child.stderr.on('data', (piece: Buffer) => {
        said.err += piece
      })
      t.teardown(() => child.kill('SIGKILL'))
      return said
    }
    t.teardown(() => new Promise((resolve) => local.close(resolve)))
    const tail = run('tail', '--json')
    const listen = run('listen', `http://127.0.0.1:${port}/hook`, '--secret', SECRET)
    await until(() => /Listening to/.test(tail.err) && /Listening to/.test(listen.err), WAIT_MS)
    const feed = await open(testServer.serverId)
    await service.restart()
    await feed.over
    await until(() => tail.err.split('Listening to').length > 2 && listen.err.split('Listening to').length > 2, WAIT_MS)
    await until(async () => {
      await send('bounce@simulator.test')
      return tail.out.includes('"bounced"') && received.length > 0
    }, WAIT_MS)
    t.match(JSON.parse(tail.out.split('\n')[0] ?? ''), { event: 'bounced', serverId: testServer.serverId })
    const [first] = received as [Received]
    t.match([first.path, first.headers['service-event']], ['/hook', 'bounced'])
    t.ok(isSigned(first, SECRET))
    const unixSeconds = Number(first.headers['webhook-timestamp'])
    const { id, event } = first.json
    const expected = eventHeaders({ deliveryId: id, event, body: first.body, secrets: [SECRET], unixSeconds })
    for (const name of Object.keys(expected))
      t.equal(first.headers[name], expected[name], `${name}, as a webhook posts it`)
    await until(() => /bounced .*-> 200/.test(listen.out), WAIT_MS)
  },
)
