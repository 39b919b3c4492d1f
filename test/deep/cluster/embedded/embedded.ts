/** embedded - adopted after a crash, never doubled, restarted when it dies, gone after stop. Real processes. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { type Durability, findRedisBinary } from '../../../../cluster/embedded/binary.ts'
import { lockDirectory } from '../../../../cluster/embedded/directory-lock.ts'
import { type EmbeddedRedis, startEmbeddedRedis } from '../../../../cluster/embedded/embedded.ts'
import { livingRedisPid, probeRedis } from '../../../../cluster/embedded/probe.ts'
import { makeLog } from '../../../../src/process/log.ts'
import { spawnNode } from '../../../support/machine/node.ts'
import { until } from '../../../support/machine/until.ts'

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined }
const WAIT_MS = 15_000
const last = { whenLast: async () => true }

/** Ids of the redis processes that work in `directory`, zombies aside. */
function redisIn(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const isRedis = readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('redis')
        return isRedis && readlinkSync(`/proc/${pid}/cwd`) === directory
      } catch {
        return false // The process ended between the listing and the look.
      }
    })
    .map(Number)
}

function freshDirectory(test: Test, parts = ''): string {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'sendwright-embedded-')))
  const directory = join(top, parts)
  mkdirSync(directory, { recursive: true })
  test.teardown(() => {
    for (const pid of redisIn(directory)) process.kill(pid, 'SIGKILL')
    rmSync(top, { recursive: true, force: true, maxRetries: 5 })
  })
  return directory
}

function start(dataDir: string, more: { durability?: Durability; onDown?: () => void; onUp?: () => void } = {}) {
  const { durability = 'fsync', onDown = () => undefined, onUp = () => undefined } = more
  return startEmbeddedRedis({ dataDir, durability, log: QUIET, onDown, onUp })
}

/** Another process that starts the store, prints the result as one JSON line, and stays until it is killed. */
function starter(dataDir: string, env: Record<string, string> = {}): ChildProcess {
  const module = new URL('../../../../cluster/embedded/embedded.js', import.meta.url).href
  const code = `
    import { startEmbeddedRedis } from ${JSON.stringify(module)}
    const say = (facts) => console.log(JSON.stringify(facts))
    const log = { info: (_, text) => process.stderr.write(text + '\\n'), warn() {}, error() {} }
    const options = { dataDir: ${JSON.stringify(dataDir)}, durability: 'fsync', log, onDown() {}, onUp() {} }
    await startEmbeddedRedis(options).then((redis) => say({ adopted: redis.adopted }), (error) => say({ error: error.message }))
  `
  return spawnNode(['--input-type=module', '-e', code], { env: { ...process.env, ...env } })
}

async function firstLine(child: ChildProcess): Promise<{ adopted?: boolean; error?: string }> {
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, 'data')
  return JSON.parse(String(chunk).trim())
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

/** One command on its own connection. */
async function ask(
  redis: Pick<EmbeddedRedis, 'socketPath'>,
  dataDir: string,
  command: string,
  ...args: string[]
): Promise<unknown> {
  const probe = await until(async () => {
    const found = await probeRedis(redis.socketPath, dataDir)
    return found.state === 'ready' ? found : null
  }, WAIT_MS)
  const answer = await probe.client.call(command, ...args)
  probe.client.disconnect()
  return answer
}

t.test('embedded redis: runs with the settings that acknowledged writes need', async (t) => {
  const directory = freshDirectory(t)
  const redis = await start(directory)
  t.equal(redis.adopted, false)
  t.equal(redis.socketPath, join(directory, 'redis.sock'))
  const wanted = {
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    save: '',
    'maxmemory-policy': 'noeviction',
    'lazyfree-lazy-expire': 'yes',
    port: '0',
    unixsocketperm: '700',
    'slowlog-log-slower-than': '-1',
    'crash-log-enabled': 'no',
  }
  for (const [name, value] of Object.entries(wanted)) {
    t.same(await ask(redis, directory, 'CONFIG', 'GET', name), [name, value], name)
  }
  const [, memory] = (await ask(redis, directory, 'CONFIG', 'GET', 'maxmemory')) as string[]
  t.ok(Number(memory) >= 64 * 1024 * 1024, 'maxmemory is set')
  const [pid] = redisIn(directory)
  const group = execFileSync('ps', ['-o', 'pgid=', '-p', String(pid)], { encoding: 'utf8' })
  t.equal(Number(group), pid, 'it leads a process group of its own')
  t.equal(await redis.stop(last), true)
  t.same(redisIn(directory), [], 'no process is left')
  t.equal(existsSync(redis.socketPath), false)
})

t.test('embedded redis: stop leaves it running while another process uses it', async (t) => {
  const directory = freshDirectory(t)
  const first = await start(directory)
  const second = await start(directory)
  t.equal(second.adopted, true)
  t.equal(await first.stop({ whenLast: async () => false }), false)
  t.equal(await ask(second, directory, 'PING'), 'PONG')
  t.equal(await second.stop(last), true)
  t.same(redisIn(directory), [])
})

t.test('embedded redis: a stop rewrites a file that has grown, and keeps its data', async (t) => {
  const directory = freshDirectory(t)
  const redis = await start(directory)
  // One key many times: 100 MB of file, a megabyte of data.
  for (let round = 0; round < 100; round += 1)
    await ask(redis, directory, 'SET', 'key', `${round} ${'x'.repeat(1024 * 1024)}`)
  await redis.stop({ ...last, rewrites: true })
  const files = readdirSync(join(directory, 'appendonlydir'))
  const bytes = files.reduce((sum, name) => sum + statSync(join(directory, 'appendonlydir', name)).size, 0)
  t.ok(bytes < 8 * 1024 * 1024, `${bytes} ${files}`)
  const again = await start(directory)
  t.match(await ask(again, directory, 'GET', 'key'), /^99 /)
  await ask(again, directory, 'SET', 'key', 'small')
  await again.stop({ ...last, rewrites: true })
  const third = await start(directory)
  t.equal(await ask(third, directory, 'GET', 'key'), 'small')
  await third.stop(last)
})

t.test('embedded redis: adopted, with its data, after its starter was killed', async (t) => {
  const directory = freshDirectory(t)
  const child = starter(directory)
  t.same(await firstLine(child), { adopted: false })
  const [pid] = redisIn(directory)
  await ask({ socketPath: join(directory, 'redis.sock') }, directory, 'SET', 'written', 'before')
  await killed(child)
  const redis = await start(directory)
  t.equal(redis.adopted, true)
  t.equal(await ask(redis, directory, 'GET', 'written'), 'before')
  t.same(redisIn(directory), [pid], 'the same process')
  await redis.stop(last)
})

t.test('embedded redis: adopting raises the durability and never lowers it', async (t) => {
  const directory = freshDirectory(t)
  const lax = await start(directory, { durability: 'memory' })
  t.same(await ask(lax, directory, 'CONFIG', 'GET', 'appendfsync'), ['appendfsync', 'everysec'])
  const strict = await start(directory)
  t.same(await ask(strict, directory, 'CONFIG', 'GET', 'appendfsync'), ['appendfsync', 'always'])
  const laxAgain = await start(directory, { durability: 'memory' })
  t.same(await ask(strict, directory, 'CONFIG', 'GET', 'appendfsync'), ['appendfsync', 'always'])
  for (const redis of [laxAgain, strict]) await redis.stop({ whenLast: async () => false })
  await lax.stop(last)
})

t.test('embedded redis: three that start at once share one', async (t) => {
  const directory = freshDirectory(t)
  const children = [1, 2, 3].map(() => starter(directory))
  const said = await Promise.all(children.map(firstLine))
  t.same(said.map(({ adopted }) => adopted).sort(), [false, true, true])
  t.equal(redisIn(directory).length, 1)
  await Promise.all(children.map(killed))
})

t.test('embedded redis: the running redis holds the lock after its starter was killed', async (t) => {
  const directory = freshDirectory(t)
  const child = starter(directory)
  await firstLine(child)
  await killed(child)
  t.equal(await lockDirectory(directory), null)
  for (const pid of redisIn(directory)) process.kill(pid, 'SIGKILL')
  const lock = await until(() => lockDirectory(directory), WAIT_MS)
  t.equal(await lockDirectory(directory), null, 'one holder')
  await lock.release()
})

t.test('embedded redis: a frozen one stops the start, and no second one begins', async (t) => {
  const directory = freshDirectory(t)
  const redis = await start(directory)
  const pid = livingRedisPid(directory) as number
  t.same(redisIn(directory), [pid])
  process.kill(pid, 'SIGSTOP')
  await t.rejects(start(directory), { message: new RegExp(`redis-server ${pid} in .* does not answer`) })
  t.same(redisIn(directory), [pid])
  process.kill(pid, 'SIGCONT')
  await redis.stop(last)
})

t.test('embedded redis: a living one whose socket file was removed stops the start', async (t) => {
  const directory = freshDirectory(t)
  // By hand, so without the lock.
  const args = ['--dir', directory, '--port', '0', '--unixsocket', 'redis.sock', '--pidfile', 'redis.pid', '--save', '']
  const other = spawn('redis-server', args, { stdio: 'ignore' })
  await until(() => existsSync(join(directory, 'redis.pid')) && existsSync(join(directory, 'redis.sock')), WAIT_MS)
  rmSync(join(directory, 'redis.sock'))
  await t.rejects(start(directory), { message: new RegExp(`redis-server ${other.pid} in .* does not answer`) })
  t.same(redisIn(directory), [other.pid])
  await killed(other)
})

t.test('embedded redis: a socket that serves another directory stops the start', async (t) => {
  const directory = freshDirectory(t)
  const elsewhere = freshDirectory(t)
  const socket = join(directory, 'redis.sock')
  const other = spawn('redis-server', ['--dir', elsewhere, '--port', '0', '--unixsocket', socket], { stdio: 'ignore' })
  // The file exists before the process listens. Until then it is the remains of a dead one.
  await until(() => takesConnections(socket), WAIT_MS)
  await t.rejects(start(directory), { message: new RegExp(`uses the directory ${elsewhere}`) })
  await killed(other)
})

t.test('embedded redis: killed, it is back with every acknowledged write', async (t) => {
  const directory = freshDirectory(t)
  const heard: string[] = []
  const redis = await start(directory, { onDown: () => heard.push('down'), onUp: () => heard.push('up') })
  for (let round = 1; round <= 3; round++) {
    await ask(redis, directory, 'SET', `round-${round}`, 'kept')
    process.kill(livingRedisPid(directory) as number, 'SIGKILL')
    await until(() => heard.length === round * 2, WAIT_MS)
    t.equal(await ask(redis, directory, 'GET', `round-${round}`), 'kept')
  }
  t.same(heard, ['down', 'up', 'down', 'up', 'down', 'up'])
  t.equal(redisIn(directory).length, 1)
  await redis.stop(last)
  t.same(redisIn(directory), [])
})

t.test('embedded redis: killed while it rewrites its file, it leaves nothing of the unfinished one', async (t) => {
  const directory = freshDirectory(t)
  let isUp = false
  const onUp = (): void => {
    isUp = true
  }
  const redis = await start(directory, { onUp })
  t.teardown(() => redis.stop(last).catch(() => undefined))
  const probe = await probeRedis(redis.socketPath, directory)
  if (probe.state !== 'ready') throw new Error(probe.state)
  const { client } = probe
  client.on('error', () => undefined)
  await client.mset(...Array.from({ length: 400 }, (_, n) => [`key${n}`, 'x'.repeat(500)]).flat())
  await client.config('SET', 'rdb-key-save-delay', '20000')
  await client.bgrewriteaof()
  const begun = () => readdirSync(directory).filter((name) => name.startsWith('temp-'))
  await until(() => (begun().length > 0 ? true : null), WAIT_MS)
  writeFileSync(join(directory, 'temp-notes.txt'), 'somebody else wrote this')
  process.kill(livingRedisPid(directory) as number, 'SIGKILL')
  client.disconnect()
  await until(() => (isUp ? true : null), WAIT_MS)
  t.same(begun(), ['temp-notes.txt'])
})

t.test('embedded redis: an adopter restarts it when its starter has gone', async (t) => {
  const directory = freshDirectory(t)
  const child = starter(directory)
  await firstLine(child)
  let ups = 0
  const redis = await start(directory, { onUp: () => ups++ })
  await killed(child)
  process.kill(livingRedisPid(directory) as number, 'SIGKILL')
  await until(() => ups === 1, WAIT_MS)
  t.equal(await ask(redis, directory, 'PING'), 'PONG')
  await redis.stop(last)
  t.same(redisIn(directory), [])
})

t.test('embedded redis: a data directory too deep for a socket path works and is adopted', async (t) => {
  const directory = freshDirectory(t, `${'deep-directory/'.repeat(10)}data`)
  const first = await start(directory)
  t.ok(Buffer.byteLength(first.socketPath) <= 103)
  t.ok(existsSync(join(directory, 'redis.sock')))
  const second = await start(directory)
  t.equal(second.adopted, true)
  await second.stop({ whenLast: async () => false })
  await first.stop(last)
  t.equal(existsSync(first.socketPath), false, 'the short link is removed')
  t.same(redisIn(directory), [])
})

t.test('embedded redis: one that cannot start reports the reason, and frees the lock', async (t) => {
  const directory = freshDirectory(t)
  mkdirSync(join(directory, 'redis.log', 'in-the-way'), { recursive: true })
  await t.rejects(start(directory), { code: 'EISDIR' })
  rmSync(join(directory, 'redis.log'), { recursive: true })
  mkdirSync(join(directory, 'appendonlydir'))
  writeFileSync(join(directory, 'appendonlydir', 'appendonly.aof.manifest'), 'no manifest\n')
  await t.rejects(start(directory), { message: /redis-server did not start: exit 1\n/ })
  const lock = await until(() => lockDirectory(directory), WAIT_MS)
  await lock.release()
})

t.test('embedded redis: a starter killed as soon as its redis exists leaves one that is adopted', async (t) => {
  const directory = freshDirectory(t)
  for (let round = 1; round <= 5; round++) {
    const child = starter(directory)
    await until(() => redisIn(directory).length === 1, WAIT_MS)
    await killed(child)
    const redis = await start(directory)
    t.equal(redis.adopted, true)
    t.equal(redisIn(directory).length, 1)
    await redis.stop(last)
  }
})

t.test('embedded redis: stop does not wait for a redis that cannot be brought back', async (t) => {
  const directory = freshDirectory(t)
  let downs = 0
  const redis = await start(directory, { onDown: () => downs++ })
  // Its log cannot be opened from now on, so every new start fails.
  rmSync(join(directory, 'redis.log'))
  mkdirSync(join(directory, 'redis.log'))
  process.kill(livingRedisPid(directory) as number, 'SIGKILL')
  await until(() => downs === 1, WAIT_MS)
  t.equal(await redis.stop(last), false)
  t.same(redisIn(directory), [])
})

t.test('redis binary: the installed one is found and new enough', async (t) => {
  t.match(await findRedisBinary(), { command: /^(redis|valkey)-server$/, version: /^\d+\.\d+/ })
})

t.test('redis binary: the log names the binary that was started', async (t) => {
  const directory = freshDirectory(t)
  const lines: string[] = []
  const log = makeLog({ level: 'info', isTerminal: false, sink: { write: (line: string) => void lines.push(line) } })
  const redis = await startEmbeddedRedis({
    dataDir: directory,
    durability: 'fsync',
    log,
    onDown: () => undefined,
    onUp: () => undefined,
  })
  await redis.stop(last)
  const facts = { binary: /^(redis|valkey)-server$/, version: /^\d+\.\d+/, socketPath: redis.socketPath }
  t.match(JSON.parse(lines[0] ?? '{}'), { msg: 'Started redis', ...facts })
})

t.test('redis binary: without one and without apt-get the lines to run are named', async (t) => {
  const directory = freshDirectory(t)
  const said = await firstLine(starter(directory, { PATH: '/nonexistent' }))
  for (const system of ['Debian', 'Fedora', 'Alpine', 'macOS']) t.match(said.error, new RegExp(system))
})

function takesConnections(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket, () => resolve(true))
    connection.on('error', () => resolve(false)).on('connect', () => connection.destroy())
  })
}
