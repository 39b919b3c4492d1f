/**
 * restore-data-dir - the files of a directory that belong to its store, whatever was known of it before it was
 * deleted.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { restoreFiles } from '../../src/store/restore-data-dir.ts'
import { startRedis } from '../support/store/redis.ts'

const SECRET = 'a secret of the tests that is long enough'
const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})

function directory(): { readonly dir: string; read(name: string): string | null } {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-remake-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const read = (name: string): string | null => {
    try {
      return readFileSync(join(dir, name), 'utf8').trim()
    } catch {
      return null
    }
  }
  return { dir, read }
}

t.test('restore-data-dir: for a store without an installation nothing is written', async (t) => {
  const { dir, read } = directory()
  await restoreFiles(dir, { id: null, secret: null }, redis)
  t.same(['installation', 'secret-key', 'content/.id'].map(read), [null, null, null])
})

t.test('restore-data-dir: objects created since the last check are read from the store', async (t) => {
  const { dir, read } = directory()
  await redis.hset(CONF_KEY, 'id', 'the-id', 'content', 'the-folder')
  await restoreFiles(dir, { id: null, secret: SECRET }, redis)
  t.same(['installation', 'secret-key', 'content/.id'].map(read), ['the-id', SECRET, 'the-folder'])
  await restoreFiles(dir, { id: 'the-id', secret: SECRET }, redis)
  t.equal(read('content/.id'), 'the-folder', 'what lies there stays')
})
