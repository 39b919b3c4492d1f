/** backup - the copy of a store into a folder: of one Redis alone; the whole is in `mistakes/backup.ts`. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { parseManifest, readAofFiles } from '../../cluster/embedded/aof-files.ts'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { copyOf } from '../../src/store/backup/copy.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { startRedis } from '../support/store/redis.ts'

async function open(t: Test, options: Readonly<Record<string, string>> = {}) {
  const server = await startRedis({ settings: options })
  const redis = new Redis({ path: server.socketPath })
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-backup-'))
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
    rmSync(folder, { recursive: true })
  })
  return { redis, folder }
}

t.test('backup: the store becomes files from which one starts', async (t) => {
  const { redis, folder } = await open(t)
  await redis.hset(CONF_KEY, 'id', 'the-id')
  const made = await copyOf(
    oneNode(() => redis),
    folder,
  )
  t.match(made, { installation: 'the-id', at: /^20\d\d-.*Z$/ })
  const files = readAofFiles(folder)
  t.same(
    parseManifest(files?.manifest ?? '').map(({ type }) => type),
    ['b', 'i'],
  )
  t.equal(files?.sizes.get('appendonly.aof.1.base.rdb'), made.storeBytes)
})

t.test('backup: a Redis Cluster is refused, and nothing is left of the attempt', async (t) => {
  const { redis, folder } = await open(t, { 'cluster-enabled': 'yes' })
  const copying = copyOf(
    oneNode(() => redis),
    folder,
  )
  await t.rejects(copying, /^This command cannot copy a Redis Cluster/)
  t.notOk(existsSync(join(folder, 'appendonlydir')))
})
