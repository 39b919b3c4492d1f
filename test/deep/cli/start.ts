/** start - signals lead to a stop, and exit codes show how the service ended. Each case is a separate process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { spawnNode } from '../../support/machine/node.ts'
import { freePort } from '../../support/machine/port.ts'
import { until } from '../../support/machine/until.ts'

const MODULE = new URL('../../../src/cli/start.js', import.meta.url).href
const MAIN = fileURLToPath(new URL('../../../src/cli/main.js', import.meta.url))
const WAIT_MS_MAX = 30_000
const NO_SUBMISSION = { SUBMISSION_PORT: '0', SUBMISSION_TLS_PORT: '0' }

/** A process that runs the service `service` (source text) and prints `up` once its signals are handled. */
function run(service: string, { hasTerminal = true } = {}): ChildProcess {
  const code = `
    import { runUntilStopped } from ${JSON.stringify(MODULE)}
    const never = new Promise(() => setInterval(() => {}, 1000))
    const code = await runUntilStopped(async () => { console.log('up'); return ${service} })
    console.log('ended')
    process.exit(code)`
  const args = ['--input-type=module', '-e', code]
  // A process that leads its own session has no controlling terminal.
  return hasTerminal ? spawnNode(args) : spawn(process.execPath, args, { detached: true })
}

async function up(child: ChildProcess): Promise<void> {
  await once(child.stdout as NodeJS.ReadableStream, 'data')
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const) {
  t.test(`start: ${signal} stops the service and exits 0`, async (t) => {
    const child = run(`{ exited: never, stop: async () => console.log('stopped') }`)
    await up(child)
    let said = ''
    child.stdout?.on('data', (chunk) => {
      said += chunk
    })
    child.kill(signal)
    t.same(await once(child, 'close'), [0, null])
    t.equal(said, 'stopped\nended\n')
  })
}

t.test('start: SIGHUP from a service manager does not stop the service', async (t) => {
  const child = run(`{ exited: never, stop: async () => {} }`, { hasTerminal: false })
  await up(child)
  child.kill('SIGHUP')
  await pause(600)
  child.kill('SIGHUP')
  await pause(300)
  t.same([child.exitCode, child.signalCode], [null, null])
  child.kill('SIGTERM')
  t.same(await once(child, 'close'), [0, null])
})

t.test('start: a signal while the service still starts stops it afterwards', async (t) => {
  const slow = `await new Promise((resolve) => process.once('SIGTERM', () => resolve({ exited: never, stop: async () => {} })))`
  const child = run(slow)
  await up(child)
  child.kill('SIGTERM')
  t.same(await once(child, 'close'), [0, null])
})

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`start: ${signal} that comes twice at once counts once`, async (t) => {
    const twice = `['${signal}', '${signal}'].every((signal) => process.emit(signal, signal))`
    const child = run(`${twice} && { exited: never, stop: async () => {} }`)
    await up(child)
    t.same(await once(child, 'close'), [0, null])
  })

  t.test(`start: ${signal} that is repeated ends it with 1`, async (t) => {
    const child = run(`{ exited: never, stop: () => never }`)
    await up(child)
    const closed = once(child, 'close')
    await until(() => !child.kill(signal) || child.exitCode !== null, WAIT_MS_MAX)
    t.same(await closed, [1, null])
  })
}

t.test('start: a service that ends by itself gives its own exit code', async (t) => {
  t.same(await once(run(`{ exited: Promise.resolve(7), stop: async () => {} }`), 'close'), [7, null])
})

t.test('start: wrong settings are all listed and exit 2', async (t) => {
  const env = { ...process.env, HTTP_PORT: 'x', ROLES: 'http', LOG_LEVEL: 'loud' }
  const child = spawnNode([MAIN, 'start'], { env })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  t.same(await once(child, 'close'), [2, null])
  for (const name of ['HTTP_PORT', 'ROLES', 'LOG_LEVEL']) t.match(said, new RegExp(`^ {2}${name}: `, 'm'))
})

t.test('start: in a directory without data it reports a new installation, once', async (t) => {
  const folder = t.testdir()
  const start = async () => {
    const ports = { HTTP_PORT: String(await freePort()), OPERATOR_PORT: '0', MX_PORT: '0', ...NO_SUBMISSION }
    const child = spawnNode([MAIN, 'start'], { env: { PATH: process.env.PATH, ...ports }, cwd: folder })
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += chunk
    })
    const closed = once(child, 'close')
    await until(() => said.includes('"msg":"Started"') || child.exitCode !== null, WAIT_MS_MAX)
    child.kill('SIGTERM')
    t.same(await closed, [0, null], said)
    return said.split('\n').filter((line) => line.includes('No installation found'))
  }
  const [line = '', ...more] = await start()
  t.match(JSON.parse(line), { level: 'info', dataDir: join(folder, 'data') })
  t.same(more, [])
  t.same(await start(), [], 'and not where there is one')
})

t.test('start: too few files that may be open are a sentence with the number wanted', async (t) => {
  const child = spawn('/bin/sh', ['-c', `ulimit -n 128; exec env -u NODE_OPTIONS ${process.execPath} ${MAIN} start`], {
    env: { PATH: process.env.PATH, DATA_DIR: `${t.testdir()}/data` },
  })
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  t.same(await once(child, 'close'), [1, null])
  t.match(said, /^Cannot run: The limit of open files is 128, but 1024 are required: raise it with ulimit -n 1024/)
})

t.test('start: a file that a setting names and that cannot be used exits 2, without a stack', async (t) => {
  const folder = t.testdir({ 'limits.json': '{"default": {"speed": 9}}', 'key.pem': 'none' })
  const cases: [string, string, string][] = [
    ['SITE_LIMITS', `${folder}/none.json`, 'a readable file'],
    ['SITE_LIMITS', `${folder}/limits.json`, 'no limit called speed (default)'],
    ['SERVICE_DKIM', `own:${folder}/key.pem`, 'a private RSA key in PEM of 1024 bits or more'],
  ]
  await Promise.all(
    cases.map(async ([name, value, wanted]) => {
      const child = spawnNode([MAIN, 'start'], { env: { ...process.env, DATA_DIR: `${folder}/data`, [name]: value } })
      let said = ''
      child.stderr.on('data', (chunk) => {
        said += chunk
      })
      t.same(await once(child, 'close'), [2, null])
      t.equal(said, `Wrong settings:\n  ${name}: ${wanted} (is ${JSON.stringify(value.replace(/^own:/, ''))})\n`)
    }),
  )
})

t.test('start: a service that cannot run prints the reason in a sentence and exits with 1', async (t) => {
  const folder = t.testdir({ file: '' })
  const wrong = { DATA_DIR: `${folder}/file/data` }
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const HTTP_PORT = String((other.address() as AddressInfo).port)
  const taken = { DATA_DIR: `${folder}/data`, HTTP_PORT, OPERATOR_PORT: '0', MX_PORT: '0', ...NO_SUBMISSION }
  const cases: [Record<string, string>, RegExp][] = [
    [wrong, /^Cannot run: ENOTDIR: .*file\/data/],
    [taken, /^Cannot run: HTTP_PORT: cannot listen on 127\.0\.0\.1:\d+: in use.*set HTTP_PORT to another port/],
    [{ ...wrong, LOG_LEVEL: 'debug' }, /^ +at /m],
  ]
  await Promise.all(
    cases.map(async ([changes, wanted]) => {
      const env: NodeJS.ProcessEnv = { PATH: process.env.PATH, LOG_LEVEL: 'silent', ...changes }
      const child = spawnNode([MAIN, 'start'], { env })
      let said = ''
      child.stderr.on('data', (chunk) => {
        said += chunk
      })
      t.same(await once(child, 'close'), [1, null])
      t.match(said, wanted)
      if (env.LOG_LEVEL === 'silent') t.equal(said.trimEnd().split('\n').length, 1, said)
    }),
  )
})
