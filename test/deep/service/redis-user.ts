/**
 * redis-user - the Redis user of docs/operate/redis.md is allowed all that two processes need, and nothing that no
 * source names
 */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { freePort } from '../../support/machine/port.ts'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'
import { startTestService } from '../../support/service/service.ts'
import { startRedis } from '../../support/store/redis.ts'

const WAIT_MS = 30_000
const page = readFileSync(join(ROOT, 'docs/operate/redis.md'), 'utf8')
const [, block = ''] = /SETUSER sendwright on '>…' ([^`]*)/.exec(page) ?? []
const rules = block.replace(/[\\']/g, '').trim().split(/\s+/)
/** Named by the client library alone. */
const OF_LIBRARY = ['client|setname', 'ping', 'exec', 'multi']

t.test('a service works as the Redis user of the documents', async (t) => {
  const port = await freePort()
  const redis = await startRedis({ settings: { port: String(port) } })
  t.teardown(() => redis.stop())
  const admin = new Redis({ path: redis.socketPath })
  t.teardown(() => admin.disconnect())
  // An older Redis does not know WAITAOF, which is needed only without CONFIG.
  const known = ((await admin.call('COMMAND', 'LIST')) as string[]).map((name) => name.toLowerCase())
  const own = rules.filter((rule) => !/^\+[a-z]+$/.test(rule) || known.includes(rule.slice(1)))
  t.ok(own.length > 30)
  await admin.call('ACL', 'SETUSER', 'sendwright', 'on', '>secret', ...own)
  const { TOPOLOGY } = process.env
  process.env.TOPOLOGY = 'apart'
  const one = await startTestService({
    REDIS_URL: `redis://sendwright:secret@127.0.0.1:${port}`,
    CONTENT_STORE: 'file',
  })
  if (TOPOLOGY === undefined) delete process.env.TOPOLOGY
  else process.env.TOPOLOGY = TOPOLOGY
  t.teardown(() => one.stop())
  const token = one.firstRun.testServer.token
  const send = (to: string) => ({ from: 'a@simulator.test', to: [to], subject: 'S', text: 'T' })
  const sent = await one.call('POST /v1/email', { token, body: send('ada@simulator.test') })
  t.equal(sent.status, 200)
  t.equal(
    (await one.call('POST /v1/email/batch', { token, body: { messages: [send('b@simulator.test')] } })).status,
    200,
  )
  await one.call('POST /v1/email', { token, body: send('hardbounce@simulator.test') })
  await until(async () => {
    const { json } = await one.call(`GET /v1/messages/${sent.json.messageId}`, { token })
    return json.recipients?.[0]?.status === 'delivered'
  }, WAIT_MS)
  for (const path of ['/v1/server', '/v1/streams', '/v1/stats', '/v1/webhooks', '/v1/domains'])
    await one.call(`GET ${path}`, { token })
  for (const path of ['messages', 'events', 'suppressions'])
    await one.call(`POST /v1/${path}/search`, { token, body: {} })
  const operator = { token: one.firstRun.operatorToken }
  for (const path of ['health', 'queue', 'accounts', 'shards', 'audit'])
    await one.operate(`GET /v1/operator/${path}`, operator)
  await one.operate('GET /metrics')
  await one.restart()
  const denied = (await admin.call('ACL', 'LOG')) as unknown[]
  t.same(denied, [])
  t.notMatch(await admin.info('errorstats'), /NOPERM/)
})

t.test('the user is allowed no command that no source names', async (t) => {
  const folders = ['cluster', 'src/store', 'src/views', 'src/state', 'src/actors', 'src/content', 'src/service']
  const grep = (text: string): boolean => {
    try {
      execFileSync('grep', ['-rqiF', text, '--include=*.ts', ...folders], { cwd: ROOT })
      return true
    } catch {
      return false
    }
  }
  const commands = rules.filter((rule) => rule.startsWith('+')).map((rule) => rule.slice(1))
  const isNamed = (command: string): boolean => {
    const [name = '', part = ''] = command.split('|')
    if (OF_LIBRARY.includes(command)) return true
    const named = part === '' ? [`'${name}'`, `.${name}(`, `\`${name}`] : [`${name}', '${part}'`, `${name}('${part}'`]
    return named.some(grep)
  }
  t.ok(commands.length > 30)
  t.same(
    commands.filter((command) => !isNamed(command)),
    [],
  )
})
