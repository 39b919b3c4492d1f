/** main - the whole service: on a Redis of its own and on another's, started twice, through a relay, and stopped. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import t from 'tap'
import { startService } from '../src/main.ts'
import type { FirstRun } from '../src/service/first-start.ts'
import { freePort } from './support/machine/port.ts'
import { until } from './support/machine/until.ts'
import { startMx } from './support/peers/mx.ts'
import { SMTP_SINK_SKIP, startSmtpSink } from './support/peers/smtp-sink.ts'
import { startZone } from './support/peers/zone.ts'
import { configOf, startTestService } from './support/service/service.ts'

const BODY = { from: 'you@simulator.test', to: ['one@example.com'], subject: 'Hello', text: 'x' }

t.test('on a Redis of its own: first start, second start, and nothing left running', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-main-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const config = configOf({
    DATA_DIR: dataDir,
    HTTP_PORT: String(await freePort()),
    OPERATOR_PORT: '0',
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    LOG_LEVEL: 'silent',
  })
  const printed: string[] = []
  const options = { print: (text: string) => void printed.push(text) }
  const first = await startService(config, options)
  const firstRun = JSON.parse(readFileSync(join(dataDir, 'first-run.json'), 'utf8')) as FirstRun
  t.equal(printed.length, 1)
  const [curl = ''] = /^curl .*$/m.exec(printed[0] ?? '') ?? []
  const { stdout } = await promisify(execFile)('sh', ['-c', curl.replace('curl', 'curl -s')])
  const answer = JSON.parse(stdout)
  t.match(answer, { status: 'accepted', test: true }, 'the printed line works as it stands')
  for (const name of ['first-run.json', 'secret-key']) t.equal(statSync(join(dataDir, name)).mode & 0o777, 0o600, name)
  const pid = Number(readFileSync(join(dataDir, 'redis.pid'), 'utf8'))
  await first.stop()
  await until(() => !existsSync(`/proc/${pid}`), 5000)
  const second = await startService(config, options)
  t.equal(printed.length, 1, 'keys are told once')
  const response = await fetch(`${config.baseUrl}/v1/messages/${answer.messageId}`, {
    headers: { authorization: `Bearer ${firstRun.testServer.token}`, connection: 'close' },
  })
  t.equal(response.status, 200)
  t.match(await response.json(), { messageId: answer.messageId, subject: 'Hello' })
  await second.stop()
})

t.test('a start that fails gives back what it had opened', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-main-'))
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    taken.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const { port } = taken.address() as { port: number }
  const environment = {
    DATA_DIR: dataDir,
    HTTP_PORT: String(await freePort()),
    MX_PORT: '0',
    SUBMISSION_PORT: '0',
    SUBMISSION_TLS_PORT: '0',
    LOG_LEVEL: 'silent',
  }
  await t.rejects(startService(configOf({ ...environment, OPERATOR_PORT: String(port) })), new RegExp(`:${port}`))
  const pid = Number(readFileSync(join(dataDir, 'redis.pid'), { encoding: 'utf8', flag: 'a+' }))
  t.ok(pid === 0 || !existsSync(`/proc/${pid}`), 'its Redis is gone')
  t.notOk(existsSync(join(dataDir, 'first-run.json')))
  const service = await startService(configOf({ ...environment, OPERATOR_PORT: '0' }), { print: () => undefined })
  t.ok(existsSync(join(dataDir, 'first-run.json')), 'and the next start works')
  await service.stop()
})

t.test('second start adopts: keys, messages and counts are as they were', async (t) => {
  const service = await startTestService()
  t.teardown(() => service.stop())
  const { token } = service.firstRun.testServer
  const { json } = await service.call('POST /v1/email', { token, body: BODY })
  await service.restart()
  const again = await service.call('POST /v1/email', { token, body: BODY })
  t.equal(again.status, 200)
  t.ok(again.json.messageId > json.messageId, 'ids go on above the last')
  const server = await service.call('GET /v1/server', { token })
  t.equal(server.json.limits[1].used, 2)
  await until(
    async () => (await service.call(`GET /v1/messages/${json.messageId}`, { token })).json.status === 'delivered',
    10_000,
  )
  const redis = new Redis({ path: service.redis.socketPath })
  t.equal(await redis.hlen('{cl}:workers'), 1, 'the worker before has signed off')
  redis.disconnect()
})

t.test('held mail goes out once there is room', async (t) => {
  let room = 0
  const service = await startTestService({}, { room: () => room })
  t.teardown(() => service.stop())
  const { token } = service.firstRun.testServer
  const sent = await service.call('POST /v1/email', {
    token,
    body: { ...BODY, attachments: [{ name: 'a', content: 'YQ==' }] },
  })
  const read = async () => (await service.call(`GET /v1/messages/${sent.json.messageId}`, { token })).json
  t.equal((await read()).status, 'accepted')
  await service.restart()
  room = 10
  const message = await until(async () => {
    const seen = await read()
    return seen.status === 'delivered' ? seen : null
  }, 15_000)
  t.ok(message.sizeBytes > 0, 'prepared from what is stored')
})

t.test('the store becomes another one: the service ends', async (t) => {
  const service = await startTestService()
  t.teardown(() => service.stop())
  const redis = new Redis({ path: service.redis.socketPath })
  await redis.hset('{cl}:conf', 'id', 'another')
  redis.disconnect()
  await service.redis.restart()
  t.equal(await service.service.exited, 1)
})

for (const [name, start, skip] of [
  ['a scripted server', () => startMx(), false],
  ['smtp-sink', () => startSmtpSink(), SMTP_SINK_SKIP],
] as const) {
  t.test(`live mail through a relay: ${name}`, { skip }, async (t) => {
    const zone = await startZone()
    const relay = await start()
    const service = await startTestService({
      DNS_SERVERS: zone.server,
      RELAY_URL: `smtp://127.0.0.1:${relay.port}`,
    })
    t.teardown(async () => {
      await service.stop()
      await relay.close()
      await zone.close()
    })
    const { account, liveServer } = service.firstRun
    const added = await service.call('POST /v1/domains', { token: account.token, body: { domain: 'acme.example' } })
    const { returnPath, dkim, domainId } = added.json
    zone.set(returnPath.host, { type: 'CNAME', domain: returnPath.value })
    zone.set(dkim.host, { type: 'TXT', data: dkim.value.match(/.{1,255}/g) })
    await service.call(`POST /v1/domains/${domainId}/verify`, { token: account.token })
    const sent = await service.call('POST /v1/email', {
      token: liveServer.token,
      body: { ...BODY, from: 'shop@acme.example', to: ['a@nowhere.example', 'b@nowhere.example'] },
    })
    const message = await until(async () => {
      const { json } = await service.call(`GET /v1/messages/${sent.json.messageId}`, { token: liveServer.token })
      return json.status === 'delivered' ? json : null
    }, 10_000)
    t.equal(message.events.length, 2)
    t.match(message.recipients[0], { code: 250, response: /^250 / })
    t.notOk(
      zone.asked.some((question) => question.startsWith('MX ')),
      'no MX is asked for',
    )
    const connections = async () =>
      Number(/^sendwright_connections (\d+)$/m.exec((await service.operateActors('GET /metrics')).text)?.[1])
    await until(async () => (await connections()) > 0, 10_000)
    if (!('sever' in relay)) return
    t.equal(await connections(), relay.open.now)
    relay.sever()
    await until(async () => (await connections()) === 0, 10_000)
  })
}
