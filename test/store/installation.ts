/** installation - the mutual checks of a store and a data directory, over a real Redis. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { checkInstallation, openInstallation } from '../../src/store/installation.ts'
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

const place = (dataDir: string, secretCheck = 'check') => ({
  dataDir,
  secretCheck,
  nowMs: 1_700_000_000_000,
  serviceDomain: 'svc.example',
  acceptDomain: false,
})

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

t.test('a store without its installation is never created again', async (t) => {
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
  await redis.hset('{cl}:conf', 'version', '3')
  await t.rejects(openInstallation(redis, place(dataDir)), /version 3/)
  await redis.hset('{cl}:conf', { version: '1', shards: '64' })
  await t.rejects(openInstallation(redis, place(dataDir)), /64 shards/)
})

t.test('another service domain is refused with its consequences, unless it is confirmed', async (t) => {
  const dataDir = makeFolder()
  const id = await openInstallation(redis, place(dataDir))
  t.equal(await redis.hget('{cl}:conf', 'domain'), 'svc.example')
  const other = { ...place(dataDir), serviceDomain: 'other.example' }
  await t.rejects(
    openInstallation(redis, other),
    /SERVICE_DOMAIN is other\.example, but this installation uses svc\.example: .* refused from 24 hours after .* --accept-service-domain/,
  )
  t.equal(await openInstallation(redis, { ...other, acceptDomain: true }), id)
  t.equal(await openInstallation(redis, other), id, 'and from then on')
  await t.rejects(openInstallation(redis, place(dataDir)), /Set SERVICE_DOMAIN=other\.example/)
  await redis.hdel('{cl}:conf', 'domain')
  t.equal(await openInstallation(redis, place(dataDir)), id, 'a store of before it was kept takes what it is told')
})
