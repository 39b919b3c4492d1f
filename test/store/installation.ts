/** installation - what a store and a data directory say to each other, over a real Redis. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'
import t from 'tap'
import { checkInstallation, openInstallation, openSecret } from '../../src/store/installation.ts'
import { spawnNode } from '../support/machine/node.ts'
import { ROOT } from '../support/machine/root.ts'
import { startRedis } from '../support/store/redis.ts'

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
const folders: string[] = []
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
t.beforeEach(() => redis.flushall())

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sendwright-installation-'))
  folders.push(folder)
  return folder
}

const place = (dataDir: string, secretCheck = 'check') => ({ dataDir, secretCheck, nowMs: 1_700_000_000_000 })

t.test('both new: one id in store and directory', async (t) => {
  const dataDir = makeFolder()
  const id = await openInstallation(redis, place(dataDir))
  t.equal(await redis.hget('{cl}:conf', 'id'), id)
  t.equal(readFileSync(join(dataDir, 'installation'), 'utf8').trim(), id)
  t.match(await redis.hgetall('{cl}:conf'), { shards: '256', version: '1', created: '1700000000000' })
  t.equal(await openInstallation(redis, place(dataDir)), id, 'and again')
})

t.test('empty directory adopts the id of the store', async (t) => {
  const id = await openInstallation(redis, place(makeFolder()))
  const other = makeFolder()
  t.equal(await openInstallation(redis, place(other)), id)
  t.equal(readFileSync(join(other, 'installation'), 'utf8').trim(), id)
})

t.test('many at once agree on one id', async (t) => {
  const ids = await Promise.all(Array.from({ length: 8 }, () => openInstallation(redis, place(makeFolder()))))
  t.equal(new Set(ids).size, 1)
})

t.test('store without its installation is never made anew', async (t) => {
  const dataDir = makeFolder()
  const id = await openInstallation(redis, place(dataDir))
  await redis.flushall()
  await t.rejects(openInstallation(redis, place(dataDir)), /holds no installation/)
  t.match(await checkInstallation(() => redis, id), /holds no installation/)
  t.equal(await redis.dbsize(), 0, 'and nothing was written')
})

t.test('store of another installation is refused', async (t) => {
  const dataDir = makeFolder()
  const id = await openInstallation(redis, place(dataDir))
  await redis.hset('{cl}:conf', 'id', 'another')
  await t.rejects(openInstallation(redis, place(dataDir)), /holds installation another/)
  t.match(await checkInstallation(() => redis, id), /holds installation another/)
})

t.test('store of another layout or secret is refused', async (t) => {
  const dataDir = makeFolder()
  const id = await openInstallation(redis, place(dataDir))
  await t.rejects(openInstallation(redis, place(dataDir, 'other')), /SECRET_KEY/)
  t.equal(await checkInstallation(() => redis, id), null)
  await redis.hset('{cl}:conf', 'version', '2')
  await t.rejects(openInstallation(redis, place(dataDir)), /version 2/)
  await redis.hset('{cl}:conf', { version: '1', shards: '64' })
  await t.rejects(openInstallation(redis, place(dataDir)), /64 shards/)
})

t.test('secret is made once, for its owner only, and not at all where one is set', (t) => {
  const dataDir = join(makeFolder(), 'data')
  t.equal(openSecret(dataDir, 'set'), 'set')
  t.equal(existsSync(dataDir), false)
  const secret = openSecret(dataDir, null)
  t.ok(secret.length >= 32)
  t.equal(openSecret(dataDir, null), secret)
  t.equal(statSync(join(dataDir, 'secret-key')).mode & 0o777, 0o600)
  t.equal(statSync(dataDir).mode & 0o777, 0o700)
  t.end()
})

t.test('several processes that start at once on one directory take one secret', async (t) => {
  const dataDir = makeFolder()
  const start = join(makeFolder(), 'start')
  // All wait for the same moment, so that none finds the file of another.
  const code = `
    const { existsSync } = await import('node:fs')
    const { openSecret } = await import(${JSON.stringify(join(ROOT, 'build/src/store/installation.js'))})
    console.log('ready')
    while (!existsSync(${JSON.stringify(start)}));
    console.log(openSecret(${JSON.stringify(dataDir)}, null))
  `
  const children = Array.from({ length: 4 }, () => spawnNode(['--input-type=module', '-e', code]))
  const said = children.map((child) => createInterface({ input: child.stdout })[Symbol.asyncIterator]())
  for (const lines of said) t.equal((await lines.next()).value, 'ready')
  writeFileSync(start, '')
  const secrets = await Promise.all(said.map(async (lines) => (await lines.next()).value))
  t.same(new Set(secrets), new Set([readFileSync(join(dataDir, 'secret-key'), 'utf8').trim()]))
  t.same(readdirSync(dataDir), ['secret-key'], 'and leave nothing else')
})
