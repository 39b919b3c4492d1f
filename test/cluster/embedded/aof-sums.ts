/**
 * aof-sums - changed bits of append-only files are found before Redis loads them, in files that grew, were cut or were
 * continued by another process.
 */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type AofFile, readAofFiles } from '../../../cluster/embedded/aof-files.ts'
import { AofSums, compareSums, sumsPath } from '../../../cluster/embedded/aof-sums.ts'
import { startEmbeddedRedis } from '../../../cluster/embedded/embedded.ts'

const NAME = 'appendonly.aof.1.incr.aof'
const FILES: AofFile[] = [{ name: NAME, seq: 1, type: 'i' }]
const BLOCK = 256 * 1024

/** A file of some bytes, and its sums. */
function makeFile(t: Test, bytes: number) {
  const directory = t.testdir({})
  const path = join(directory, 'appendonlydir', NAME)
  mkdirSync(join(directory, 'appendonlydir'))
  writeFileSync(path, textOf(bytes))
  const found = async () => (await compareSums(directory, FILES))[0]
  return { directory, path, found, sums: new AofSums(directory) }
}

/** Bytes in which no two blocks are the same. */
function textOf(bytes: number): Buffer {
  const all = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at += 1) all[at] = (at * 31 + (at >> 8) * 7) & 0xff
  return all
}

function flip(path: string, at: number, bit = 0): void {
  const bytes = readFileSync(path)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << bit)
  writeFileSync(path, bytes)
}

t.test('aof sums: each block has a sum, and each changed bit is found', async (t) => {
  const size = 2 * BLOCK + 1000
  const { path, found, sums } = makeFile(t, size)
  t.equal(await found(), undefined, 'nothing was summed yet')
  await sums.advance({ [NAME]: size, 'appendonly.aof.1.base.rdb': 10 })
  t.match(await found(), { bytes: size, damaged: [], missing: 0 })
  for (const [at, start] of [
    [0, 0],
    [BLOCK - 1, 0],
    [BLOCK, BLOCK],
    [size - 1, 2 * BLOCK],
  ] as const) {
    flip(path, at, at % 8)
    t.match(await found(), { damaged: [{ start }], isLastOnly: start === 2 * BLOCK }, `byte ${at}`)
    flip(path, at, at % 8)
  }
  appendFileSync(path, 'more')
  t.match(await found(), { bytes: size, damaged: [] }, 'later bytes are not covered')
})

t.test('aof sums: small steps, and other processes, come to the same sums', async (t) => {
  const size = 3 * BLOCK
  const { directory, path, found, sums } = makeFile(t, size)
  for (let at = 0; at <= size; at += 100_001) await sums.advance({ [NAME]: at })
  await new AofSums(directory).advance({ [NAME]: size - 5 })
  await Promise.all([size - 4, size - 3, size].map((at) => sums.advance({ [NAME]: at })))
  const lines = readFileSync(join(sumsPath(directory), NAME), 'latin1')
  t.match(await found(), { bytes: size, damaged: [] })
  rmSync(sumsPath(directory), { recursive: true })
  await new AofSums(directory).advance({ [NAME]: size })
  t.equal(readFileSync(join(sumsPath(directory), NAME), 'latin1'), lines)
  flip(path, size - 1)
  appendFileSync(path, 'more')
  await new AofSums(directory).advance({ [NAME]: size + 4 })
  t.match(await found(), { damaged: [{ start: 2 * BLOCK }] }, 'a damaged block is not summed again')
})

t.test('aof sums: a truncated file has bytes missing, and is summed again from there', async (t) => {
  const size = 3 * BLOCK + 10
  const { directory, path, found, sums } = makeFile(t, size)
  await sums.advance({ [NAME]: size })
  truncateSync(path, BLOCK + 10)
  t.match(await found(), { bytes: BLOCK, damaged: [], missing: 2 * BLOCK })
  appendFileSync(path, Buffer.alloc(BLOCK, 'x'))
  const next = new AofSums(directory)
  await next.advance({ [NAME]: BLOCK + 20 })
  t.match(await found(), { bytes: BLOCK + 20, damaged: [], missing: 0 })
  await next.advance({ [NAME]: 2 * BLOCK + 10 })
  t.match(await found(), { bytes: 2 * BLOCK + 10, damaged: [], missing: 0 })
})

t.test('aof sums: sums of files that are no longer named are removed; an incomplete line ends them', async (t) => {
  const { directory, found, sums } = makeFile(t, 2 * BLOCK)
  await sums.advance({ [NAME]: 2 * BLOCK })
  const path = join(sumsPath(directory), NAME)
  const [first] = readFileSync(path, 'latin1').split('\n')
  writeFileSync(path, `${first}\n${'\0'.repeat(26)}`)
  t.match(await found(), { bytes: BLOCK, damaged: [] })
  const later = NAME.replace('1', '2')
  writeFileSync(join(directory, 'appendonlydir', later), 'SET')
  await sums.advance({ [NAME]: 2 * BLOCK, [later]: 3 })
  t.same(readdirSync(sumsPath(directory)).sort(), [NAME, later])
  await sums.advance({ [later]: 3, 'appendonly.aof.3.incr.aof': 0 })
  t.same(readdirSync(sumsPath(directory)), [later])
  sums.forget()
  t.equal(await found(), undefined)
})

/** A store of some values that ran, was stopped, and has one bit of a file changed. */
async function damagedStore(t: Test, { rewrite, at }: { rewrite: boolean; at: (bytes: Buffer) => number }) {
  const dataDir = t.testdir({})
  const store = await start(dataDir)
  const redis = new Redis({ path: store.socketPath })
  for (let n = 0; n < 50; n += 1) await redis.set(`key${n}`, `address${n}@example.com`)
  if (rewrite) await store.directory.confirm(Date.now())
  if (rewrite) await redis.bgrewriteaof()
  while (/aof_rewrite_in_progress:1/.test(await redis.info('persistence')))
    await new Promise((done) => setTimeout(done, 20))
  if (store.directory.look() === null) await store.directory.confirm(Date.now())
  redis.disconnect()
  await store.stop({ whenLast: async () => true })
  const name = readAofFiles(dataDir)?.named.find(({ type }) => type === (rewrite ? 'b' : 'i'))?.name ?? ''
  const path = join(dataDir, 'appendonlydir', name)
  flip(path, at(readFileSync(path)))
  return dataDir
}

function start(
  dataDir: string,
  errors: object[] = [],
  warnings: object[] = [],
  durability: 'fsync' | 'memory' = 'fsync',
) {
  const silent = () => undefined
  const warn = (object: object) => warnings.push(object)
  const log = { info: silent, warn, error: (object: object) => errors.push(object) }
  return startEmbeddedRedis({ dataDir, durability, log, onDown: silent, onUp: silent })
}

t.test('aof sums: a store with a changed value or key is not started by itself', async (t) => {
  for (const part of ['address7@', 'key12']) {
    const dataDir = await damagedStore(t, { rewrite: false, at: (bytes) => bytes.indexOf(part) + 3 })
    await t.rejects(start(dataDir), /is damaged: bytes 0 to \d+ are not the bytes that Redis wrote\. Restore a backup/)
    rmSync(sumsPath(dataDir), { recursive: true })
    const store = await start(dataDir)
    await store.stop({ whenLast: async () => true })
  }
})

t.test('aof sums: a changed bit of a base file is found by Redis itself', async (t) => {
  const dataDir = await damagedStore(t, { rewrite: true, at: (bytes) => bytes.indexOf('address7') + 3 })
  await t.rejects(start(dataDir), /base\.rdb is damaged: Redis cannot load it.*Restore a backup/)
})

t.test('aof sums: bytes that are missing without a mark are logged', async (t) => {
  const dataDir = t.testdir({})
  const store = await start(dataDir)
  const redis = new Redis({ path: store.socketPath })
  await redis.hset('{s003}:meta', 'seq', '7', 'now', Date.UTC(2026, 10, 28, 6))
  for (let n = 0; n < 50; n += 1) await redis.set(`key${n}`, 'x')
  redis.disconnect()
  await store.stop({ whenLast: async () => true })
  const path = join(dataDir, 'appendonlydir', NAME)
  truncateSync(path, 500)
  rmSync(join(dataDir, 'store-mark'))
  const errors: object[] = []
  const warnings: object[] = []
  const cut = await start(dataDir, errors, warnings)
  t.match(errors, [{ path, missing: Number }])
  t.match(warnings, [{ newestCommitAt: '2026-11-28T06:00:00.000Z', commits: 7, tornShards: [3] }])
  await cut.stop({ whenLast: async () => true })
})

t.test(
  'aof sums: a store that lost its end, and writes other data there before it is looked at, is sound',
  async (t) => {
    const dataDir = t.testdir({})
    const path = join(dataDir, 'appendonlydir', NAME)
    const stop = { whenLast: async () => true }
    const run = async (letter: string) => {
      const store = await start(dataDir, [], [], 'memory')
      const redis = new Redis({ path: store.socketPath })
      for (let n = 0; n < 9; n += 1) await redis.set(`${letter}${n}`, letter.repeat(100_000))
      redis.disconnect()
      if (store.directory.look() === null) await store.directory.confirm(Date.now())
      await store.stop(stop)
    }
    await run('a')
    truncateSync(path, 300_000)
    await run('b')
    const [found] = await compareSums(dataDir, FILES)
    t.match(found, { damaged: [], missing: 0 })
    const store = await start(dataDir, [], [], 'memory')
    await store.stop(stop)
  },
)

t.test('aof sums: a stop does not wait for the first sums of a large file', async (t) => {
  const store = await start(t.testdir({}))
  store.directory.confirm = () => new Promise(() => undefined)
  const isStopped = store.stop({ whenLast: async () => true })
  t.equal(await Promise.race([isStopped, new Promise((done) => setTimeout(done, 30_000, false).unref())]), true)
})
