/**
 * startup-summary - what a process says of itself and of its work: start, each refused request, each end of a
 * recipient, stop; and no address in any of it. The service is a process of its own, whose output is read.
 */
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startupSummary } from '../../../src/service/startup-summary.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { configOf } from '../../support/service/service.ts'

const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
const WAIT_MS_MAX = 60_000

t.test('startup-summary: listeners of the roles that run, and no password', (t) => {
  const settings = {
    REDIS_URL: 'rediss://me:secret@redis.example:6380/2',
    SECRET_KEY: 'a secret of the tests that is long enough',
    ROLES: 'http,mx',
    CONTENT_STORE: 'file',
  }
  t.same(startupSummary(configOf(settings), 'uws'), {
    roles: ['http', 'mx'],
    httpEngine: 'uws',
    listeners: { http: '127.0.0.1:8080', operator: '127.0.0.1:8081', mx: '127.0.0.1:2525' },
    store: 'rediss://redis.example:6380/2',
  })
  const own = startupSummary(configOf({ DATA_DIR: '/srv/mail', MX_PORT: '0', OPERATOR_PORT: '0' }), 'node')
  const mx = { ...settings, ROLES: 'mx', OPERATOR_PORT: '0' }
  t.equal(startupSummary(configOf(mx), 'uws').httpEngine, null)
  t.equal(own.store, 'redis in /srv/mail')
  t.same(Object.keys(own.listeners), ['http', 'submission', 'submission with TLS'])
  t.end()
})

t.test('log: a line for start, refusal, end of a recipient and stop, without an address', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-told-'))
  const [httpPort, operatorPort] = [await freePort(), await freePort()]
  const ports = { HTTP_PORT: String(httpPort), OPERATOR_PORT: String(operatorPort), MX_PORT: '0', EDGE_RATE: '0' }
  const env = { PATH: process.env.PATH, ...ports, SUBMISSION_PORT: '0', SUBMISSION_TLS_PORT: '0' }
  const child = spawnNode([MAIN, 'start'], { env, cwd: folder })
  let said = ''
  for (const output of [child.stdout, child.stderr]) output.on('data', (chunk) => (said += chunk))
  const lines = () =>
    said.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line) as Record<string, unknown>] : []))
  const told = (msg: string) => lines().filter((line) => line.msg === msg)
  const closed = once(child, 'close')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await closed
    rmSync(folder, { recursive: true, force: true })
  })
  await until(() => told('Started').length === 1 || child.exitCode !== null, WAIT_MS_MAX)
  t.match(told('Started')[0], { level: 'info', listeners: { http: `127.0.0.1:${httpPort}` } })
  const firstRun = JSON.parse(readFileSync(join(folder, 'data', 'first-run.json'), 'utf8'))
  const call = (path: string, body?: object) =>
    fetch(`http://127.0.0.1:${httpPort}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${firstRun.testServer.token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const to = ['ann@simulator.test', 'bounce@simulator.test', 'deferred@simulator.test']
  const sent = await call('/v1/email', { from: 'shop@simulator.test', to, subject: 'Hello', text: 'x' })
  const { messageId } = (await sent.json()) as { messageId: string }
  const wrong = await call('/v1/email', { from: 'nobody@elsewhere.example', to, subject: 'Hello', text: 'x' })
  const unknown = await call(`/v1/messages/${messageId.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))}`)
  await until(() => told('Recipient ended').length >= 3, WAIT_MS_MAX)
  const stream = await call('/v1/streams', { kind: 'broadcast', name: 'News' })
  const news = {
    from: 'shop@simulator.test',
    subject: 'News',
    text: 'x',
    messages: to.slice(0, 2).map((one) => ({ to: one })),
  }
  const { streamId } = (await stream.json()) as { streamId: string }
  const broadcast = await call('/v1/broadcasts', { ...news, streamId })
  const { broadcastId } = (await broadcast.json()) as { broadcastId: string }
  await until(() => told('Recipient ended').length >= 5, WAIT_MS_MAX)
  t.match(told('Broadcast ended'), [{ broadcastId, result: 'completed', released: 2, failed: 0 }])
  const page = await fetch(`http://127.0.0.1:${operatorPort}/metrics`)
  t.match(await page.text(), /^sendwright_broadcast_recipients_total\{result="released"\} 2$/m)
  child.kill('SIGTERM')
  t.same(await closed, [0, null])
  const mailed = told('Recipient ended').filter((line) => line.messageId === messageId)
  const ends = mailed.sort((one, other) => Number(one.recipientIndex) - Number(other.recipientIndex))
  t.match(ends, [
    { messageId, recipientIndex: 0, site: 'simulate', result: 'delivered', code: 250, class: null, attempt: 1 },
    { messageId, recipientIndex: 1, result: 'bounced', code: 550, class: 'InvalidRecipient', attempt: 1 },
    { messageId, recipientIndex: 2, result: 'delivered', code: 250, attempt: 3 },
  ])
  t.equal(ends.length, 3, 'once each, and not for an attempt that was put off')
  t.ok(ends.every(({ ms }) => Number.isInteger(ms) && (ms as number) >= 0))
  const refusals = told('Request refused')
  t.match(refusals, [
    { requestId: wrong.headers.get('request-id'), method: 'POST', route: '/v1/email', status: wrong.status },
    { requestId: unknown.headers.get('request-id'), route: '/v1/messages/{id}', status: 404, code: 'not_found' },
  ])
  t.equal(refusals.length, 2)
  t.same([told('Stopping').length, told('Stopped').length], [1, 1])
  t.notMatch(
    lines()
      .map((line) => JSON.stringify(line))
      .join('\n'),
    /simulator\.test|elsewhere\.example|ann|shop/,
  )
})
