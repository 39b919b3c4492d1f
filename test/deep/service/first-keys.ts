/**
 * first-keys - keys that settings name: the first start takes them, a later one does not look at them, and nothing
 * shows them.
 */
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { crc32 } from 'node:zlib'
import t from 'tap'
import { makeKey, parseKey, type TokenKind } from '../../../src/http/key.ts'
import { readFirstKeys } from '../../../src/service/first-keys.ts'
import { DOCUMENTS } from '../../support/documents/blocks.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { freePort } from '../../support/machine/port.ts'
import { ROOT } from '../../support/machine/root.ts'
import { until } from '../../support/machine/until.ts'
import { startDelivery } from '../../support/service/delivery.ts'
import { readinessAt } from '../../support/service/host.ts'
import { configOf, startTestService } from '../../support/service/service.ts'

const WAIT_MS = 30_000
const folder = mkdtempSync(join(tmpdir(), 'sendwright-first-keys-'))
t.teardown(() => rmSync(folder, { recursive: true, force: true }))
const keyOf = (kind: TokenKind) => makeKey(kind, 0).token

function fileWith(text: string, mode = 0o600): string {
  const path = join(folder, `${readdirSync(folder).length}`)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

t.test('first keys: the first start takes them, and later ones that differ are ignored [key.first-run]', async (t) => {
  const keys = { test: keyOf('sk_test'), live: keyOf('sk'), account: keyOf('ak'), operator: keyOf('ok') }
  const service = await startTestService({
    FIRST_RUN_TEST_KEY: keys.test,
    FIRST_RUN_LIVE_KEY: keys.live,
    FIRST_RUN_ACCOUNT_KEY_FILE: fileWith(`${keys.account}\n`),
    FIRST_RUN_OPERATOR_KEY_FILE: fileWith(keys.operator, 0o400),
  })
  t.teardown(() => service.stop())
  const { firstRun } = service
  t.equal(firstRun.testServer.token, keys.test)
  t.equal(firstRun.liveServer.token, keys.live)
  t.equal(firstRun.account.token, keys.account)
  t.equal(firstRun.operatorToken, keys.operator)
  t.equal((await service.call('GET /v1/server', { token: keys.test })).json.mode, 'test')
  t.equal((await service.call('GET /v1/account', { token: keys.account })).status, 200)
  t.equal((await service.operate('GET /v1/operator/accounts', { token: keys.operator })).status, 200)
  const other = keyOf('sk_test')
  const config = { ...service.config, firstKeys: { ...service.config.firstKeys, test: { key: other, file: null } } }
  Object.assign(service.config, config)
  await service.restart()
  t.equal((await service.call('GET /v1/server', { token: keys.test })).status, 200)
  t.equal((await service.call('GET /v1/server', { token: other })).status, 401)
})

t.test('first keys: those that cannot be used stop the start, without being shown [key.first-run]', async (t) => {
  const weak = 'sk_test_00abcdef_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
  const good = keyOf('sk')
  const everywhere = { HTTP_HOST: '0.0.0.0' }
  const cases: [Record<string, string>, RegExp][] = [
    [{ FIRST_RUN_TEST_KEY: keyOf('sk') }, /^FIRST_RUN_TEST_KEY is not a key of this kind: .*--kind test$/],
    [{ FIRST_RUN_TEST_KEY: `${keyOf('sk_test').slice(0, -1)}!` }, /^FIRST_RUN_TEST_KEY is not/],
    [{ FIRST_RUN_TEST_KEY: makeKey('sk_test', 7).token }, /^FIRST_RUN_TEST_KEY is not/],
    [{ FIRST_RUN_TEST_KEY: weak + checksumOf(weak) }, /^FIRST_RUN_TEST_KEY is not/],
    [{ FIRST_RUN_LIVE_KEY: good, ...everywhere }, /^FIRST_RUN_LIVE_KEY is allowed only .* FIRST_RUN_LIVE_KEY_FILE$/],
    [{ FIRST_RUN_LIVE_KEY_FILE: fileWith(good, 0o640) }, /^FIRST_RUN_LIVE_KEY_FILE: a file with mode 0600/],
    [{ FIRST_RUN_LIVE_KEY_FILE: folder }, /^FIRST_RUN_LIVE_KEY_FILE: a file with a key/],
    [{ FIRST_RUN_OPERATOR_KEY_FILE: fileWith(good) }, /^FIRST_RUN_OPERATOR_KEY_FILE is not/],
  ]
  for (const [settings, message] of cases) {
    const error = t.throws(() => readFirstKeys(configOf(settings)), { message }, JSON.stringify(Object.keys(settings)))
    for (const value of Object.values(settings)) t.notMatch(String(error), new RegExp(`${value.slice(-20)}$`))
  }
  t.same(readFirstKeys(configOf(everywhere)), {})
  const test = keyOf('sk_test')
  t.same(readFirstKeys(configOf({ FIRST_RUN_TEST_KEY: test, ...everywhere })), { testToken: test })
})

t.test('first keys: a start for tests has them, and hands them to no child [key.first-run]', async (t) => {
  const key = keyOf('sk_test')
  const ports = { http: await freePort(), operator: await freePort(), mx: await freePort(), smtp: await freePort() }
  const settings = {
    DATA_DIR: join(folder, 'data'),
    FIRST_RUN_TEST_KEY: key,
    HTTP_PORT: String(ports.http),
    OPERATOR_PORT: String(ports.operator),
    MX_PORT: String(ports.mx),
    SUBMISSION_PORT: String(ports.smtp),
    SUBMISSION_TLS_PORT: '0',
  }
  const child = spawnNode([join(ROOT, 'build/src/cli/main.js'), 'start', '--test-only'], {
    env: { ...process.env, ...settings },
  })
  let printed = ''
  for (const output of [child.stdout, child.stderr]) output.on('data', (piece) => (printed += piece))
  const exited = once(child, 'exit')
  t.teardown(() => child.kill('SIGKILL'))
  await until(async () => (await readinessAt(ports.operator)) === 200, WAIT_MS)
  const authorization = `Bearer ${key}`
  const answer = await fetch(`http://127.0.0.1:${ports.http}/v1/server`, { headers: { authorization } })
  t.match(await answer.json(), { mode: 'test' })
  const socket = connect(ports.mx, '127.0.0.1')
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException]
  t.equal(error.code, 'ECONNREFUSED', 'it receives no mail')
  if (existsSync('/proc/self/environ')) {
    const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')
    for (const pid of children.filter(Boolean)) t.notMatch(readFileSync(`/proc/${pid}/environ`, 'utf8'), key)
  }
  child.kill('SIGTERM')
  await exited
  t.notMatch(printed, key)
})

t.test('start: for tests, mail to other servers waits and that of test servers does not', async (t) => {
  const delivery = await startDelivery({}, { isTestOnly: true })
  t.teardown(() => delivery.stop())
  const mx = await delivery.destination('other.example')
  const id = await delivery.send(['ada@other.example'])
  const { service } = delivery
  const { token } = service.firstRun.testServer
  const body = { from: 'you@simulator.test', to: ['a@simulator.test'], subject: 'x', text: 'x' }
  const { messageId } = (await service.call('POST /v1/email', { token, body })).json
  const path = `GET /v1/messages/${messageId}`
  await until(async () => (await service.call(path, { token })).json.status === 'delivered', WAIT_MS)
  t.match(await delivery.message(id), { status: 'accepted', recipients: [{ attempts: 0 }] })
  t.equal(mx.sessions.length, 0)
})

t.test('first keys: a command makes them, and no document prints one that works [key.first-run]', async (t) => {
  for (const [kind, prefix] of Object.entries({ test: 'sk_test', live: 'sk', account: 'ak', operator: 'ok' })) {
    const child = spawnNode([join(ROOT, 'build/src/cli/main.js'), 'key', 'generate', '--kind', kind])
    const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')])
    t.match(parseKey(printed.trim()), { kind: prefix, shard: 0 })
  }
  for (const document of DOCUMENTS)
    for (const [token] of readFileSync(join(ROOT, document), 'utf8').matchAll(/\b(?:sk|sk_test|ak|ok)_\w{40,}/g))
      t.equal(parseKey(token), null, `${document}: ${token}`)
})

/** The checksum that a text needs to have the form of a key. */
function checksumOf(body: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let value = crc32(body)
  let made = ''
  for (let place = 0; place < 6; place += 1) {
    made = digits[value % 62] + made
    value = Math.floor(value / 62)
  }
  return made
}
