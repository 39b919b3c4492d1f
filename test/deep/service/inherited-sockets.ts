/**
 * inherited-sockets - sockets that a service manager passes: systemd-socket-activate starts the service with them, each
 * listener takes the one of its port, and a socket without a listener is refused at the start
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { readInheritedSockets } from '../../../src/process/listening/inherited-sockets.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'
import { openDialog } from '../../support/peers/smtp-dialog.ts'
import { ENGINES } from '../../support/service/engines.ts'
import { readinessAt } from '../../support/service/host.ts'
import { MAIN, MAIN_ENV } from '../../support/service/program.ts'
import { startRedis } from '../../support/store/redis.ts'

const READY_MS_MAX = 60_000
const hasActivator = spawnSync('systemd-socket-activate', ['--version']).status === 0
const hasNoUws = ENGINES[0]?.name !== 'uws' && 'uWebSockets.js has no module for this version of Node.js'
const skip = hasActivator ? false : 'systemd-socket-activate is not installed'

async function makeSettings(t: Test): Promise<Record<string, string>> {
  const redis = await startRedis()
  const dataDir = mkdtempSync(join(tmpdir(), 'sendwright-sockets-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  t.teardown(() => redis.stop())
  const settings: Record<string, string> = {
    REDIS_URL: `unix://${redis.socketPath}`,
    SECRET_KEY: 'a secret of the tests that is long enough',
    CONTENT_STORE: 'file',
    DATA_DIR: dataDir,
    LOG_LEVEL: 'fatal',
    // An address that this machine has not: only passed sockets can work.
    HTTP_HOST: '192.0.2.1',
    SMTP_HOST: '192.0.2.1',
    OPERATOR_HOST: '192.0.2.1',
  }
  for (const name of PORTS) settings[name] = String(await freePort())
  return settings
}

const PORTS = ['HTTP_PORT', 'OPERATOR_PORT', 'MX_PORT', 'SUBMISSION_PORT', 'SUBMISSION_TLS_PORT']

/** Starts the service under systemd-socket-activate, which waits for a first connection. */
async function activate(t: Test, settings: Readonly<Record<string, string>>, ports: readonly (string | undefined)[]) {
  const listens = ports.flatMap((port) => ['--listen', `127.0.0.1:${port}`])
  // It passes on only what it is given by name.
  const env = Object.entries({ ...MAIN_ENV, ...settings, PATH: process.env.PATH ?? '' })
  const own = env.flatMap(([name, value]) => ['-E', `${name}=${value}`])
  const child = spawn(
    '/usr/bin/env',
    ['-u', 'NODE_OPTIONS', 'systemd-socket-activate', ...own, ...listens, process.execPath, MAIN, 'start'],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  const said = Promise.all([text(child.stdout), text(child.stderr)]).then((both) => both.join(''))
  const ended = once(child, 'close').then(([code]) => code as number)
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  // The first connection starts the service, and is answered by it.
  const first = until(() => openDialog(Number(settings.MX_PORT)).catch(() => null), READY_MS_MAX)
  return { first, said, ended }
}

t.test('every listener takes the socket of its port [listener.port]', { skip }, async (t) => {
  const settings = await makeSettings(t)
  settings.HTTP_ENGINE = 'node'
  const ports = PORTS.map((name) => settings[name])
  const { first } = await activate(t, settings, ports)
  t.match((await first)?.greeting, /^220 /)
  await until(async () => (await readinessAt(Number(settings.OPERATOR_PORT))) === 200, READY_MS_MAX)
  const dialog = await openDialog(Number(settings.SUBMISSION_PORT))
  t.match(dialog.greeting, /^220 /)
  dialog.end()
  const answer = await fetch(`http://127.0.0.1:${settings.HTTP_PORT}/v1/server`)
  t.equal(answer.status, 401)
})

t.test('a socket that no listener uses is refused at the start', { skip }, async (t) => {
  const settings = await makeSettings(t)
  const other = await freePort()
  const own = { ...settings, HTTP_HOST: '127.0.0.1', SMTP_HOST: '127.0.0.1', OPERATOR_HOST: '127.0.0.1' }
  const { said, ended } = await activate(t, own, [settings.MX_PORT, String(other)])
  t.equal(await ended, 1)
  t.match(await said, `Cannot run: LISTEN_FDS: no listener of this process has port ${other}`)
})

t.test('uWebSockets.js takes no socket', { skip: skip || hasNoUws }, async (t) => {
  const settings = await makeSettings(t)
  settings.HTTP_ENGINE = 'uws'
  const { said, ended } = await activate(t, settings, [settings.MX_PORT, settings.HTTP_PORT])
  t.equal(await ended, 1)
  t.match(await said, 'Cannot run: HTTP_PORT: uWebSockets.js cannot use the socket of LISTEN_FDS')
})

t.test('a descriptor that is no listening socket is refused', async (t) => {
  t.throws(() => readInheritedSockets(16), /^LISTEN_FDS: descriptor \d+ is not a listening TCP socket/)
  const none = readInheritedSockets(0)
  t.equal(none.take(25), null)
  t.same(none.left(), [])
})
