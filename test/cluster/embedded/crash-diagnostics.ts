/**
 * crash-diagnostics - why a Redis ended or does not answer, in a sentence, and fewer and fewer reports of repeated
 * ends. Real processes.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { describeEnd } from '../../../cluster/embedded/crash-diagnostics.ts'
import { startEmbeddedRedis } from '../../../cluster/embedded/embedded.ts'
import { livingRedisPid } from '../../../cluster/embedded/probe.ts'
import { mountSmallDisk, SMALL_DISK_SKIP } from '../../support/machine/small-disk.ts'
import { until } from '../../support/machine/until.ts'

const WAIT_MS = 15_000
const MB = 1024 * 1024

interface Line {
  readonly failures: number
  readonly reason: string
  readonly sentence: string
}

/** A Redis in a directory, and the reports of its ends. */
async function begin(t: Test, top = mkdtempSync(join(tmpdir(), 'sendwright-words-'))) {
  const dataDir = join(realpathSync(top), 'data')
  const lines: Line[] = []
  const quiet = () => undefined
  const log = {
    info: quiet,
    warn: quiet,
    error: (facts: object, sentence: string) => void lines.push({ ...(facts as Omit<Line, 'sentence'>), sentence }),
  }
  let ups = 0
  const redis = await startEmbeddedRedis({
    dataDir,
    durability: 'fsync',
    log,
    onDown: quiet,
    onUp: () => {
      ups += 1
    },
  })
  t.teardown(async () => {
    await redis.stop({ whenLast: async () => true })
    rmSync(dataDir, { recursive: true, force: true })
  })
  const kill = (signal: NodeJS.Signals) => process.kill(livingRedisPid(dataDir) as number, signal)
  return { dataDir, redis, lines, kill, ups: () => ups }
}

t.test('last words: of one that was ended by hand, and of one that was killed', async (t) => {
  const { lines, kill, ups } = await begin(t)
  kill('SIGTERM')
  await until(() => ups() === 1, WAIT_MS)
  t.match(lines, [{ failures: 1, sentence: 'Lost redis', reason: /^Its last words: User requested shutdown/ }])
  kill('SIGKILL')
  await until(() => ups() === 2, WAIT_MS)
  t.match(lines[1], { failures: 2, sentence: 'Redis ends repeatedly', reason: /^It logged nothing before its end/ })
})

t.test('last words: repeated ends are reported less and less often', async (t) => {
  const { lines, kill, ups } = await begin(t)
  for (let round = 1; round <= 4; round += 1) {
    kill('SIGKILL')
    await until(() => ups() === round, WAIT_MS)
  }
  t.same(
    lines.map(({ failures }) => failures),
    [1, 2, 4],
  )
})

t.test('last words: of one that ended a connection and still runs', async (t) => {
  const { dataDir, redis, lines, ups } = await begin(t)
  const pid = livingRedisPid(dataDir)
  const client = new Redis({ path: redis.socketPath })
  t.teardown(() => client.disconnect())
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
  await until(() => lines.length > 0, WAIT_MS)
  t.match(lines, [{ sentence: 'Lost redis', reason: `redis-server ${pid} runs, and has ended its connection` }])
  // A Redis that is no longer followed is left running by the stop, for the next start.
  await until(() => ups() === 1, WAIT_MS)
})

t.test('silence: the report of one that was stopped by a signal says how to continue it', async (t) => {
  const { dataDir, redis, kill } = await begin(t)
  const pid = livingRedisPid(dataDir)
  t.equal(redis.describe(), `redis-server ${pid} runs`)
  kill('SIGSTOP')
  await until(() => redis.describe() !== `redis-server ${pid} runs`, WAIT_MS)
  t.equal(redis.describe(), `redis-server ${pid} is stopped by a signal: kill -CONT ${pid} resumes it`)
  kill('SIGCONT')
})

t.test(
  'last words: a full disk is named, although the Redis could not log it',
  { skip: SMALL_DISK_SKIP },
  async (t) => {
    const disk = mountSmallDisk(4 * MB)
    t.teardown(disk.unmount)
    const { dataDir, redis, lines, ups } = await begin(t, disk.dir)
    const client = new Redis({ path: redis.socketPath, retryStrategy: null })
    client.on('error', () => undefined)
    t.teardown(() => client.disconnect())
    const filler = join(dataDir, 'filler')
    t.throws(() => writeFileSync(filler, Buffer.alloc(4 * MB)), { code: 'ENOSPC' })
    const written = Buffer.alloc(MB / 4)
    await t.rejects(client.set('more', written).then(() => client.set('and-more', written)))
    await until(() => lines.length > 0, WAIT_MS)
    t.match(lines[0]?.reason, /^Its disk is full: \d+ bytes are free under /)
    rmSync(filler)
    await until(() => ups() > 0, WAIT_MS)
  },
)

t.test('last words: of a log that is missing, or has other contents', async (t) => {
  const directory = t.testdir({})
  t.match(describeEnd(directory, null), /^It logged nothing before its end/)
  mkdirSync(join(directory, 'redis.log'))
  t.match(describeEnd(directory, null), /^It logged nothing before its end/)
  t.match(describeEnd(join(directory, 'none'), null), /none cannot be looked at$/)
  const line = (pid: number, text: string, agoMs = 0): string => `${pid}:M ${stampOf(Date.now() - agoMs)} ${text}\n`
  const other = t.testdir({
    'redis.log': [
      line(1, '# Of another one'),
      line(7, '# WARNING Memory overcommit must be enabled!'),
      line(7, '* Ready to accept connections'),
      line(7, '# Said long ago', 600_000),
      line(7, '* Background saving started'),
      line(7, `# Error accepting a client connection: ${'x'.repeat(2000)}`),
      line(7, '# Out Of Memory allocating 100 bytes!'),
      'no line of its own',
    ].join(''),
  })
  const words = describeEnd(other, null)
  t.match(words, /^Its last words: x+ \/ Out Of Memory allocating 100 bytes!$/)
  t.ok(words.length < 700, 'bounded')
  const atStart = t.testdir({
    'redis.log': line(7, '# WARNING Memory overcommit must be enabled!') + line(7, '# Bad file format'),
  })
  t.equal(describeEnd(atStart, null), 'Its last words: Bad file format', 'advice is none')
  const old = t.testdir({ 'redis.log': line(7, '* Ready to accept connections') + line(7, '# Said', 600_000) })
  t.match(describeEnd(old, null), /^It logged nothing before its end/, 'nor is what was said long ago')
})

/** A moment as Redis writes it, in the machine's own time. */
function stampOf(ms: number): string {
  const date = new Date(ms)
  const month = date.toLocaleString('en', { month: 'short' })
  const time = date.toTimeString().slice(0, 8)
  return `${String(date.getDate()).padStart(2, '0')} ${month} ${date.getFullYear()} ${time}.000`
}
