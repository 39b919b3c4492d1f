/** directory-lock - one holder at a time, whatever other users hold and however a holder ends. Real processes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { lockDirectory } from '../../../cluster/embedded/directory-lock.ts'
import { spawnNode } from '../../support/machine/node.ts'
import { until } from '../../support/machine/until.ts'

const WAIT_MS = 30_000
const CONTENDERS = 6
const TURNS = 40
const MODULE = new URL('../../../cluster/embedded/directory-lock.js', import.meta.url).href

function freshDirectory(test: Test, parts = ''): string {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'sendwright-lock-')))
  test.teardown(() => rmSync(top, { recursive: true, force: true }))
  mkdirSync(join(top, parts), { recursive: true })
  return join(top, parts)
}

/** Runs a module with `lockDirectory` and the directory. */
function run(directory: string, code: string): ChildProcess {
  const head = `import { lockDirectory } from '${MODULE}'\nconst directory = ${JSON.stringify(directory)}\n`
  return spawnNode(['--input-type=module', '-e', head + code], { env: process.env })
}

async function killed(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

t.test('directory lock: one holder, and the next one after its release', async (t) => {
  const directory = freshDirectory(t)
  for (let turn = 0; turn < 3; turn++) {
    const lock = await lockDirectory(directory)
    t.equal(await lockDirectory(directory), null)
    await lock?.release()
    t.not(lock, null)
  }
  t.same(readdirSync(directory), ['redis.lock.6'], 'one file is left')
  t.ok(statSync(join(directory, 'redis.lock.6')).isFile(), 'and no socket')
})

t.test('directory lock: a socket that another user can create blocks no start', async (t) => {
  const directory = freshDirectory(t)
  const { dev, ino } = statSync(directory)
  const stranger = net.createServer().listen(`\0embedded-redis-${dev}-${ino}`)
  await once(stranger, 'listening')
  const lock = await lockDirectory(directory)
  t.not(lock, null)
  await lock?.release()
  stranger.close()
})

t.test('directory lock: however long its path, and however often it was asked for', async (t) => {
  const directory = freshDirectory(t, 'deep-directory/'.repeat(20))
  const lock = await lockDirectory(directory)
  t.not(lock, null)
  // A holder that accepts nothing, as a redis that inherited it.
  const child = spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', lock?.fd] })
  await lock?.release()
  for (let asked = 0; asked < 10; asked++) t.equal(await lockDirectory(directory), null)
  await killed(child)
  const next = await until(() => lockDirectory(directory), WAIT_MS)
  await next.release()
})

t.test('directory lock: the remains of a killed holder and a killed draft block no start', async (t) => {
  const directory = freshDirectory(t)
  const child = run(directory, 'await lockDirectory(directory); console.log("held"); setInterval(() => {}, 1000)')
  await once(child.stdout as NodeJS.ReadableStream, 'data')
  t.equal(await lockDirectory(directory), null)
  await killed(child)
  writeFileSync(join(directory, 'redis.lock-draft'), '')
  const lock = await until(() => lockDirectory(directory), WAIT_MS)
  t.same(readdirSync(directory), ['redis.lock.2'])
  await lock.release()
})

t.test(
  'directory lock: of many waiters in one process that find the same dead holder, one gets the lock',
  async (t) => {
    const directory = freshDirectory(t)
    for (let turn = 0; turn < 20; turn++) {
      const asked = await Promise.all(Array.from({ length: 20 }, () => lockDirectory(directory)))
      const held = asked.filter((lock) => lock !== null)
      t.ok(held.length <= 1, `${held.length} hold it`)
      for (const lock of held) await lock.release()
    }
  },
)

t.test('directory lock: of many that ask at once and are killed, one holds it at a time', async (t) => {
  const directory = freshDirectory(t)
  // A holder makes a file of its number that must not be there; a killed one leaves it, and its number is over.
  const code = `
    import { readdirSync, rmSync, writeFileSync } from 'node:fs'
    for (;;) {
      const lock = await lockDirectory(directory)
      if (lock === null) continue
      const inside = directory + '/inside'
      try { writeFileSync(inside, String(process.pid), { flag: 'wx' }) } catch { console.log('two'); process.exit(1) }
      await new Promise((resolve) => setImmediate(resolve))
      if (Math.random() < 0.2) {
        rmSync(inside)
        console.log('turn')
        process.kill(process.pid, 'SIGKILL')
      }
      rmSync(inside)
      console.log('turn')
      await lock.release()
    }`
  let turns = 0
  let doubled = 0
  const running = new Set<ChildProcess>()
  const begin = (): void => {
    const child = run(directory, code)
    running.add(child)
    child.stdout?.on('data', (chunk: Buffer) => {
      turns += String(chunk).split('turn').length - 1
      doubled += String(chunk).split('two').length - 1
    })
    child.once('exit', () => {
      running.delete(child)
      if (turns < TURNS && doubled === 0) begin()
    })
  }
  for (let n = 0; n < CONTENDERS; n++) begin()
  await until(() => turns >= TURNS || doubled > 0, WAIT_MS)
  await Promise.all([...running].map(killed))
  t.equal(doubled, 0)
})
