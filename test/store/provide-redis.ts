/**
 * provide-redis - when a missing redis-server is installed, by which program, and what remains. apt-get is a script.
 */
import { type SpawnSyncReturns, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { spawnNode } from '../support/machine/node.ts'

const MODULE = new URL('../../src/store/provide-redis.js', import.meta.url).href
const AGREED = new URL('../../src/cli/console/agreed.js', import.meta.url).href
const REFUSAL = /redis-server is not installed: run `apt-get install redis-server`, or start with --install-redis/
/** As if it were booted with systemd, in its own mount namespace. */
const SERVER = 'mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && exec "$@"'
const canUnshare = spawnSync('unshare', ['--mount', 'true']).status === 0
const hasTerminals = spawnSync('script', ['--version']).status === 0
const isRoot = process.getuid?.() === 0

interface Machine {
  readonly bin: string
  /** The calls of apt-get, service and update-rc.d. */
  calls(): string
}

/** A PATH without redis-server; apt-get makes it appear. In: whether a Redis service runs already. */
function bareMachine(t: Pick<Test, 'teardown'>, isServed = false): Machine {
  const bin = realpathSync(mkdtempSync(join(tmpdir(), 'sendwright-bare-')))
  t.teardown(() => rmSync(bin, { recursive: true, force: true }))
  for (const [name, path] of Object.entries({ env: '/usr/bin/env', sleep: '/bin/sleep' }))
    symlinkSync(path, join(bin, name))
  const calls = join(bin, 'calls')
  const redis = `printf '#!/bin/sh\\necho "Redis server v=7.0.15 sha=0"\\n' >${bin}/redis-server; /bin/chmod 755 ${bin}/redis-server`
  const script = (name: string, then: string): void =>
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} $*" >>${calls}\n${then}\n`, { mode: 0o755 })
  script('apt-get', `case "$*" in *install*) sleep 0.3; ${redis};; esac`)
  script('service', `case "$*" in *status*) exit ${isServed ? 0 : 3};; esac`)
  script('update-rc.d', '')
  return { bin, calls: () => readFileSync(calls, 'utf8').replace(/^apt-get --version\n/gm, '') }
}

interface RunOptions {
  readonly isOrdered?: boolean
  readonly env?: Record<string, string>
  /** The command in front of the program. Its arguments follow. */
  readonly under?: readonly string[]
  readonly redisUrls?: readonly string[]
  readonly dataDir?: string
}

function codeOf({ isOrdered = false, redisUrls = [], dataDir = '/nonexistent' }: RunOptions): string {
  const config = JSON.stringify({ redisUrls, dataDir })
  return `import { provideRedis } from '${MODULE}'
    import { isAgreed } from '${AGREED}'
    const options = { isOrdered: ${isOrdered}, ask: isAgreed }
    await provideRedis(${config}, options).then(() => console.log('done'), (error) => console.log(error.message))`
}

function run({ bin }: Machine, options: RunOptions = {}): SpawnSyncReturns<string> {
  const [command = '', ...args] = [
    ...(options.under ?? []),
    process.execPath,
    '--input-type=module',
    '-e',
    codeOf(options),
  ]
  const env = { PATH: bin, CI: '', ...options.env }
  return spawnSync(command, args, { env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

t.test('provide-redis: the socket of a killed Redis does not prevent an installation', { skip: !isRoot }, (t) => {
  const machine = bareMachine(t)
  const dead = "require('node:net').createServer().listen('redis.sock', () => process.kill(process.pid, 'SIGKILL'))"
  spawnSync(process.execPath, ['-e', dead], { cwd: machine.bin })
  t.match(run(machine, { env: { CI: 'true' }, dataDir: machine.bin }), {
    stdout: 'done\n',
    stderr: /Installed redis-server/,
  })
  t.end()
})

t.test(
  'provide-redis: installed unattended in CI, and the service of the package is stopped',
  { skip: !isRoot },
  (t) => {
    const machine = bareMachine(t)
    const { stdout, stderr } = run(machine, { env: { CI: 'true' } })
    t.equal(stdout, 'done\n')
    t.match(stderr, /Installing redis-server with apt-get \.\.\.\nInstalled redis-server\. .* stopped and disabled/)
    t.equal(
      machine.calls(),
      [
        'service redis-server status',
        'apt-get -q -y update',
        'apt-get -q -y install --no-install-recommends redis-server',
        'service redis-server stop',
        'update-rc.d redis-server disable',
        '',
      ].join('\n'),
    )
    t.end()
  },
)

t.test('provide-redis: a service that ran before continues', { skip: !isRoot }, (t) => {
  const machine = bareMachine(t, true)
  t.equal(run(machine, { isOrdered: true }).stdout, 'done\n')
  t.notMatch(machine.calls(), /stop|disable/)
  t.end()
})

t.test(
  'provide-redis: on a server without a terminal only the option installs it',
  {
    skip: !isRoot || !canUnshare,
  },
  (t) => {
    const under = ['/usr/bin/unshare', '--mount', '/bin/sh', '-c', SERVER.replace(/mount|mkdir/g, '/bin/$&'), 'server']
    const machine = bareMachine(t)
    t.match(run(machine, { under }).stdout, REFUSAL)
    t.equal(machine.calls(), '', 'nothing is installed')
    t.equal(run(machine, { under, isOrdered: true }).stdout, 'done\n')
    t.match(machine.calls(), /install --no-install-recommends redis-server/)
    t.end()
  },
)

t.test('provide-redis: on a terminal it is asked for', { skip: !isRoot || !hasTerminals }, (t) => {
  for (const [answer, said] of [
    ['n', REFUSAL],
    ['y', /done/],
  ] as const) {
    const machine = bareMachine(t)
    const file = join(machine.bin, 'program.mjs')
    writeFileSync(file, codeOf({}))
    const command = `/usr/bin/env PATH=${machine.bin} CI=false ${process.execPath} ${file}`
    const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
      input: `${answer}\n`,
      encoding: 'utf8',
    })
    t.match(stdout, /redis-server is not installed\. Install it with apt-get now\? \[y\/N\]/)
    t.match(stdout, said)
  }
  t.end()
})

t.test('provide-redis: of several concurrent starts one installs it', { skip: !isRoot }, async (t) => {
  const machine = bareMachine(t)
  const children = [0, 1, 2].map(() =>
    spawnNode(['--input-type=module', '-e', codeOf({ isOrdered: true })], { env: { PATH: machine.bin } }),
  )
  await Promise.all(children.map((child) => new Promise((resolve) => child.once('close', resolve))))
  t.equal(machine.calls().match(/ install /g)?.length, 1)
})

t.test('provide-redis: nothing is installed for another Redis, nor if there is one', { skip: !isRoot }, (t) => {
  const machine = bareMachine(t)
  t.equal(run(machine, { isOrdered: true, redisUrls: ['redis://127.0.0.1'] }).stdout, 'done\n')
  t.throws(machine.calls, { code: 'ENOENT' })
  t.equal(run(machine, { isOrdered: true, env: { PATH: process.env.PATH ?? '' } }).stdout, 'done\n')
  t.throws(machine.calls, { code: 'ENOENT' })
  t.end()
})
