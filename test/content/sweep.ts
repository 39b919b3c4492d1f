/**
 * sweep: unnamed objects are removed, and nothing else, whatever the clock shows; and the home that a process may
 * open.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { newCmdId } from '../../cluster/cmd-id.ts'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { type Contents, makeContents } from '../../src/content/contents.ts'
import { contentFolder, makeFileHome } from '../../src/content/files.ts'
import { openContents } from '../../src/content/open.ts'
import { sweepContents } from '../../src/content/sweep.ts'
import { DAY_MS, HOUR_MS } from '../../src/state/calendar.ts'
import { outgoingName, receivedName } from '../../src/state/object-name.ts'
import { makeHomeMark } from '../../src/store/installation.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { configOf } from '../support/service/service.ts'
import { startRedis } from '../support/store/redis.ts'

const mailKey = randomBytes(32)
const NOW = Date.now()

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-sweep-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

function filesIn(root: string): string[] {
  return (readdirSync(root, { recursive: true, encoding: 'utf8' }) as string[])
    .filter((name) => statSync(join(root, name)).isFile())
    .sort()
}

function storeIn(root: string): Contents {
  const told = () => undefined
  return makeContents({ home: makeFileHome(root, { worker: () => 'me' }), room: null, told, warn: told })
}

async function keep(contents: Contents, names: readonly string[]): Promise<void> {
  for (const name of names)
    await contents.put({ names: [name], mailKey, kind: 'files', source: [Buffer.from(name)], bytesMax: 100 })
}

t.test('sweep: outgoing content stays until its day has passed, and goes then, directory and all', async (t) => {
  const root = folder(t)
  const contents = storeIn(root)
  const contentId = `${newCmdId(NOW, Math.random)}-0`
  const names = [
    outgoingName(3, { contentId, part: 'files', test: false }),
    outgoingName(3, { contentId, part: 'body', test: false }),
    outgoingName(255, { contentId, part: 'body', test: true }),
  ]
  await keep(contents, names)
  const at = (days: number, shards = [3, 255]) =>
    sweepContents({
      contents,
      nowMs: () => NOW + days * DAY_MS,
      shards: () => shards,
      isLiving: () => true,
      namedOf: async () => new Set(),
    })
  t.equal(await at(3), 0)
  t.equal(await at(5), 1, 'attachments')
  t.equal(await at(5), 0)
  t.equal(await at(9, [3]), 0, 'other shards are swept by others')
  t.equal(await at(9), 1, 'a body of a test server')
  t.equal(await at(29), 0)
  t.equal(await at(32), 1)
  t.same(filesIn(root), [])
  t.same(readdirSync(join(root, '003/out')), [], 'and no directory of a day')
})

t.test('sweep: received content goes when it is an hour old and no row names it, and with its 31 days', async (t) => {
  const root = folder(t)
  const contents = storeIn(root)
  const name = (id: string) => receivedName(4, { id, receivedAtMs: NOW })
  await keep(contents, ['named', 'orphan', 'fresh', 'in-doubt'].map(name))
  for (const id of ['named', 'orphan', 'in-doubt'])
    utimesSync(join(root, name(id)), NOW / 1000 - 4000, NOW / 1000 - 4000)
  const asked: string[] = []
  const sweep = (nowMs: number, named: readonly string[] | null) =>
    sweepContents({
      contents,
      nowMs: () => nowMs,
      shards: () => [4],
      isLiving: () => true,
      namedOf: async (shard, names) => {
        t.equal(shard, 4)
        asked.push(...names)
        return named && new Set(named.map(name))
      },
    })
  t.equal(await sweep(NOW, null), 0, 'a store that does not answer names everything')
  t.same(asked.sort(), ['in-doubt', 'named', 'orphan'].map(name).sort(), 'what is fresh is not asked about')
  t.equal(await sweep(NOW, ['named', 'in-doubt']), 1)
  t.same(filesIn(root), ['fresh', 'in-doubt', 'named'].map(name).sort())
  t.equal(await sweep(NOW + 2 * HOUR_MS, ['named']), 2)
  t.equal(await sweep(NOW + 31 * DAY_MS, ['named']), 0)
  t.equal(await sweep(NOW + 33 * DAY_MS, ['named']), 1, 'whatever names it')
  t.same(filesIn(root), [])
})

t.test('sweep: a home that is away is left, and swept the next time', async (t) => {
  const root = folder(t)
  const contents = storeIn(root)
  const acts: string[] = []
  const away = {
    ...contents,
    told: ({ act, result }: { act: string; result: string }) => void acts.push(`${act} ${result}`),
  }
  const home = { ...contents.home, days: () => Promise.reject(new Error('EIO')) }
  const deps = { nowMs: () => NOW, shards: () => [1, 2], isLiving: () => true, namedOf: async () => new Set<string>() }
  t.equal(await sweepContents({ ...deps, contents: { ...away, home } }), 0)
  t.same(acts, ['sweep away'])
})

t.test('open: which home a process has, and that all of an installation have the same', async (t) => {
  const server = await startRedis()
  const redis = new Redis({ path: server.socketPath })
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  const quiet = { info: () => undefined, warn: () => undefined }
  const shared = folder(t)
  const other = folder(t)
  const secret = { SECRET_KEY: 'a secret of the tests that is long enough' }
  const open = async (settings: Record<string, string>) => {
    const config = configOf(settings)
    const contents = await openContents({
      config,
      mark: makeHomeMark(oneNode(() => redis)),
      log: quiet,
      worker: () => 'me',
      told: () => undefined,
    })
    await contents?.close()
    return contents?.kind ?? 'redis'
  }
  const apart = { ...secret, REDIS_URL: 'redis://a' }
  t.equal(await open({ ...apart, DATA_DIR: other }), 'redis', 'without a word it stays where it was')
  t.equal(await open({ ...apart, DATA_DIR: other, CONTENT_STORE: 'redis' }), 'redis')
  t.notOk(existsSync(contentFolder(other)))
  t.equal(await open({ ...apart, DATA_DIR: shared, CONTENT_STORE: 'file' }), 'file')
  const id = await redis.hget(CONF_KEY, 'content')
  t.match(id, /^[0-9a-f-]{36}$/)
  t.equal(await open({ ...apart, DATA_DIR: shared }), 'file', 'who shares the directory has the files')
  t.equal(await open({ DATA_DIR: shared }), 'file')
  await t.rejects(open({ ...apart, DATA_DIR: other }), /is in the DATA_DIR of other processes/)
  await t.rejects(open({ ...apart, DATA_DIR: other, CONTENT_STORE: 'redis' }), /CONTENT_STORE is redis, but/)
  await t.rejects(
    open({ ...apart, DATA_DIR: other, CONTENT_STORE: 'file' }),
    new RegExp(`does not have this installation's content.*write ${id}`),
  )
  await t.rejects(open({ DATA_DIR: shared, DURABILITY: 'replica' }), /files of one machine are in no replica/)
  await redis.hset(CONF_KEY, 'content', 'another')
  await t.rejects(open({ DATA_DIR: shared }), /content of another installation/)
  await redis.hdel(CONF_KEY, 'content')
  const away = {
    CONTENT_STORE: 's3://mail',
    S3_ENDPOINT: 'http://127.0.0.1:1',
    S3_ACCESS_KEY_ID: 'a',
    S3_SECRET_ACCESS_KEY: 'b',
  }
  await t.rejects(
    open({ ...apart, ...away, DATA_DIR: other }),
    /The bucket of CONTENT_STORE cannot be read: .*ECONNREFUSED/,
  )
  t.equal(await open({ DATA_DIR: shared }), 'file', 'a store restored without its mark adopts the home')
  t.equal(await redis.hget(CONF_KEY, 'content'), id)
})
