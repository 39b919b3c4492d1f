/**
 * go-live - a copy of the checkout is installed for production as the README describes, and started in each way that
 * the documents show
 *
 * npm, TypeScript, Redis and the service are real. Only ports, directories and the path of a certificate differ.
 * Packages are those of the checkout, as hard links, so npm sends no request to the registry.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { blocksOf, DOCUMENTS, startsOf } from '../support/documents/blocks.ts'
import { freePorts } from '../support/machine/port.ts'
import { ROOT } from '../support/machine/root.ts'
import { until } from '../support/machine/until.ts'
import { makeSelfSigned } from '../support/peers/self-signed.ts'

const WAIT_MS = 60_000
const LEFT_OUT = /^(?:node_modules|build.*|data|\.git|\.tap|.*\.log)$/
/** Where the unit has it. */
const INSTALLED_IN = '/opt/sendwright'
const CERTIFICATE = '/etc/ssl/our-ca.pem'
/** Processes of the largest cluster that a document shows, and Redis, and those that listen. */
const PORTS = 16
/**
 * The Redis servers of the cluster that a document shows, on the last of those ports; in the document they are 7001
 * and up.
 */
const NODES = 3

mkdirSync(join(ROOT, 'build'), { recursive: true })
const dir = mkdtempSync(join(ROOT, 'build', 'go-live-'))
const home = join(dir, '.home')
const isLinked = copy()
/** Without the loader of the runner, and without what an npm around it has set. */
const inherited = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => name !== 'NODE_OPTIONS' && !name.toLowerCase().startsWith('npm_')),
)
const cache = spawnSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' }).stdout.trim()
const ENV = {
  ...inherited,
  HOME: home,
  npm_config_cache: cache,
  npm_config_offline: 'true',
  npm_config_update_notifier: 'false',
}

/** Out: whether packages can be linked. */
function copy(): boolean {
  for (const name of readdirSync(ROOT).filter((one) => !LEFT_OUT.test(one)))
    cpSync(join(ROOT, name), join(dir, name), { recursive: true })
  mkdirSync(home)
  if (spawnSync('cp', ['-al', join(ROOT, 'node_modules'), dir]).status !== 0) return false
  // npm writes this one in place.
  const list = 'node_modules/.package-lock.json'
  rmSync(join(dir, list), { force: true })
  copyFileSync(join(ROOT, list), join(dir, list))
  return true
}

const skip = !isLinked && 'packages cannot be linked here'
t.teardown(() => rmSync(dir, { recursive: true, force: true }))

/** Starts a line as a shell would, in its own process group. */
function begin(line: string, env: Readonly<Record<string, string>> = {}) {
  // The runner puts its loader into NODE_OPTIONS of every child, whatever `env` contains; env(1) removes it. In a
  // terminal the shell outlives Ctrl-C.
  const args = ['-u', 'NODE_OPTIONS', 'sh', '-euc', `trap : INT\n${line}`]
  const child = spawn('/usr/bin/env', args, { cwd: dir, env: { ...ENV, ...env }, detached: true })
  child.stdin.end()
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { child, ended: ended.then(([out, err, [code]]) => ({ out, err, code: code as number | null })) }
}

async function settings(name: string): Promise<Record<string, string>> {
  const first = await freePorts(PORTS)
  const names = [
    'HTTP_PORT',
    'OPERATOR_PORT',
    'MX_PORT',
    'SUBMISSION_PORT',
    'SUBMISSION_TLS_PORT',
    'REDIS_PORT',
    'PORT',
  ]
  const ports = names.map((one, at) => [one, String(first + at)])
  ports.push(['NODES_PORT', String(first + PORTS - NODES)])
  return { ...Object.fromEntries(ports), DATA_DIR: join(dir, name), LOG_LEVEL: 'warn' }
}

async function isReady(port: string | number): Promise<boolean> {
  const url = `http://127.0.0.1:${port}/readyz`
  return (await fetch(url, { headers: { connection: 'close' } }).catch(() => null))?.status === 200
}

/** Starts a line, waits until all its processes are ready, and ends it as Ctrl-C does. Returns its output. */
async function startAndEnd(line: string, name: string, whileReady: () => Promise<void> = async () => undefined) {
  const env = await settings(name)
  const nodePort = (n: string): string => String(Number(env.NODES_PORT) + Number(n) - 1)
  const own = line.replace(/\b700(\d)\b/g, (_, n: string) => nodePort(n)).replace(CERTIFICATE, join(dir, 'ca.pem'))
  const { child, ended } = begin(own, env)
  const group = child.pid as number
  t.teardown(() => isAlive(group) && process.kill(-group, 'SIGKILL'))
  const isOver = (): boolean => child.exitCode !== null
  const ports = line.includes('cluster') ? clusterPorts(line, env) : [env.OPERATOR_PORT as string]
  await until(async () => isOver() || (await Promise.all(ports.map(isReady))).every(Boolean), WAIT_MS)
  if (!isOver()) await whileReady()
  if (!isOver()) process.kill(-group, 'SIGINT')
  return { ...(await ended), leftRedis: existsSync(join(dir, name, 'redis.sock')) }
}

/** The readiness ports of a cluster's processes, all except Redis, as the Procfile counts them. */
function clusterPorts(line: string, { OPERATOR_PORT, PORT }: Readonly<Record<string, string>>): number[] {
  const [, counts = 'redis=1 http=1 actors=2 mx=1 submission=1'] = /-- (.*)$/.exec(line) ?? []
  const names = counts.split(' ').flatMap((one) => {
    const [name = '', count] = one.split('=')
    return Array.from({ length: Number(count) }, () => name)
  })
  return names.flatMap((name, at) =>
    name === 'redis' || name === 'nodes' ? [] : [name === 'http' ? Number(OPERATOR_PORT) : Number(PORT) + at],
  )
}

function isAlive(group: number): boolean {
  try {
    return process.kill(-group, 0)
  } catch {
    return false
  }
}

t.test('go live: installed for production as the README describes, it runs without the tools', { skip }, async (t) => {
  const [, line = ''] =
    /Install for production in a permanent directory:\s+`([^`]+)`/.exec(readFileSync(join(dir, 'README.md'), 'utf8')) ??
    []
  const installed = await begin(line).ended
  t.equal(installed.code, 0, installed.out + installed.err)
  for (const gone of ['typescript', 'tap', '@biomejs/biome']) t.notOk(existsSync(join(dir, 'node_modules', gone)), gone)
  const [first, second] = blocksOf('README.md')
  t.same([first?.language, first?.code], ['text', 'npm install\nnpm start\n'])
  t.equal(second?.language, 'sh')
  const started = await startAndEnd('npm start', 'data', async () => {
    const sent = await begin(second?.code ?? '').ended
    t.match(sent, { code: 0, err: '', out: /delivered +someone@simulator\.test/ })
  })
  t.match(started, { code: 0, err: '', out: /Authorization: Bearer \$\(node -p/ })
})

t.test('go live: every line with which a document starts the service does', { skip }, async (t) => {
  writeFileSync(join(dir, 'ca.pem'), makeSelfSigned()?.cert ?? '')
  const all = DOCUMENTS.flatMap(blocksOf)
    .filter(({ language }) => language === 'text')
    .flatMap(({ code }) => startsOf(code))
  // `npm start` alone was tried above, and `npm run cluster` is the beginning of a line with the number of each
  // process.
  const lines = all.filter(
    (line) => !all.some((other) => other !== line && other.startsWith(line)) && line !== 'npm start',
  )
  t.ok(lines.length >= 3, lines.join('; '))
  const ran = await Promise.all(lines.map((line, at) => startAndEnd(line, `data-${at}`)))
  for (const [at, one] of ran.entries()) t.match(one, { code: 0, err: '', leftRedis: false }, lines[at] ?? '')
})

t.test(
  'go live: the unit for systemd starts it with the settings next to it, and ends it with a signal to it alone',
  { skip },
  async (t) => {
    const unit = readFileSync(join(dir, 'docs/deploy/sendwright.service'), 'utf8')
    const lineOf = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? ''
    t.same([lineOf('KillMode'), lineOf('EnvironmentFile')], ['mixed', '/etc/sendwright/settings'])
    const given = Object.fromEntries(
      [...readFileSync(join(dir, 'docs/deploy/settings'), 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(
        ([, ...pair]) => pair,
      ),
    )
    const env = { ...given, ...(await settings('data-unit')) }
    const { child, ended } = begin(`exec ${lineOf('ExecStart').replace(INSTALLED_IN, dir)}`, env)
    const group = child.pid as number
    t.teardown(() => isAlive(group) && process.kill(-group, 'SIGKILL'))
    await until(async () => child.exitCode !== null || (await isReady(env.OPERATOR_PORT ?? '')), WAIT_MS)
    process.kill(group, 'SIGTERM')
    t.match(await ended, { code: 0, err: '', out: /curl https:\/\/api\.svc\.example\/v1\/email/ })
    t.notOk(isAlive(group), 'nothing of it is left')
    t.notOk(existsSync(join(dir, 'data-unit', 'redis.sock')), 'its Redis has ended')
  },
)

t.test('go live: npm link puts the command line on the PATH', { skip }, async (t) => {
  const linked = await begin('npm link >&2 && cd / && sendwright --version', {
    npm_config_prefix: join(home, 'prefix'),
    PATH: `${join(home, 'prefix', 'bin')}:${process.env.PATH}`,
  }).ended
  t.match(linked, { code: 0, out: /^\d+\.\d+\.\d+\n$/ }, linked.err)
})

t.test('go live: a line that cannot start is seen', { skip }, async (t) => {
  const { code } = await startAndEnd('MX_PORT=x npm start', 'data-x')
  t.not(code, 0)
})
