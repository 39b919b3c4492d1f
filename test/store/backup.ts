/** backup - the copy of a store into a folder, of one Redis alone. The whole is in `mistakes/backup.ts`. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { parseManifest, readAofFiles } from '../../cluster/embedded/aof-files.ts'
import { CONF_KEY } from '../../cluster/keyspace.ts'
import { makeCopy } from '../../src/store/backup/copy.ts'
import { removeOldBackups } from '../../src/store/backup/ways.ts'
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
  const made = await makeCopy(
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
  const copying = makeCopy(
    oneNode(() => redis),
    folder,
  )
  await t.rejects(copying, /^This command cannot copy a Redis Cluster/)
  t.notOk(existsSync(join(folder, 'appendonlydir')))
})

/** A folder of backups by the last digit of their times. */
function folderOf(t: Test, ...digits: number[]): string {
  return t.testdir(Object.fromEntries(digits.map((n) => [nameOf(n), { file: 'x' }])))
}

const nameOf = (n: number): string => `sendwright-2026010${n}T000000Z`

t.test('backup: the newest are kept, and the new one whatever its name', async (t) => {
  const folder = folderOf(t, 1, 2, 3, 4)
  const remove = (keep: number, made: string) => removeOldBackups(folder, { keep, made, nowMs: Date.now() })
  t.same(remove(9, nameOf(4)), [], 'fewer than are kept')
  t.same(remove(3, nameOf(4)), [nameOf(1)])
  t.same(remove(2, nameOf(2)), [nameOf(3)], 'the clock was set back')
  t.same(remove(1, nameOf(2)), [nameOf(4)])
  t.same(readdirSync(folder), [nameOf(2)])
})

t.test('backup: files and links do not count as backups and are not removed', async (t) => {
  const folder = folderOf(t, 1, 2)
  writeFileSync(join(folder, nameOf(8)), 'a file')
  symlinkSync(join(folder, 'mine'), join(folder, nameOf(9)))
  mkdirSync(join(folder, 'mine'))
  t.same(removeOldBackups(folder, { keep: 2, made: nameOf(2), nowMs: Date.now() }), [])
  t.equal(readdirSync(folder).length, 5)
})

t.test(
  'backup: the remains of a killed backup are removed after half a day, those of a running one never',
  async (t) => {
    const folder = folderOf(t, 1)
    // Above the largest id of a process.
    const left = `.${nameOf(1)}.9999999.new`
    const running = `.${nameOf(1)}.${process.pid}.new`
    for (const name of [left, running]) mkdirSync(join(folder, name))
    const remove = () => removeOldBackups(folder, { keep: 1, made: nameOf(1), nowMs: Date.now() })
    remove()
    t.equal(readdirSync(folder).length, 3)
    const old = Date.now() / 1000 - 86_400
    for (const name of [left, running]) utimesSync(join(folder, name), old, old)
    remove()
    t.same(readdirSync(folder).sort(), [running, nameOf(1)])
  },
)
