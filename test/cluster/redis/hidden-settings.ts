/**
 * hidden-settings - a store of others that does not allow CONFIG: its possible uses, and the sentence of each refusal.
 * What needs WAITAOF is skipped on a Redis that has none.
 */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { type Durability, findRedisBinary } from '../../../cluster/embedded/binary.ts'
import { connectRedisStore } from '../../../cluster/redis/store.ts'
import { watchStore } from '../../../src/store/store-watch.ts'
import { until } from '../../support/machine/until.ts'

const WAIT_MS = 30_000
const { command, version } = await findRedisBinary()
const [major = 0, minor = 0] = version.split('.').map(Number)
const isValkey = (await promisify(execFile)(command, ['--version'])).stdout.startsWith('Valkey')
const isNew = major > 7 || (major === 7 && minor >= 2)
const skip = isNew && !isValkey ? false : `WAITAOF proves nothing on ${isValkey ? 'Valkey' : 'Redis'} ${version}`

/** A Redis whose CONFIG has another name, as managed services have none. */
async function openHidden(t: Test, settings: Readonly<Record<string, string>> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-hidden-'))
  const lines = {
    dir,
    port: '0',
    unixsocket: join(dir, 'redis.sock'),
    save: '""',
    appendonly: 'yes',
    appendfsync: 'always',
    maxmemory: '100mb',
    'maxmemory-policy': 'noeviction',
    'rename-command': 'CONFIG SECRET-CONFIG',
    ...settings,
  }
  const path = join(dir, 'redis.conf')
  writeFileSync(
    path,
    Object.entries(lines)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  )
  const child = spawn(command, [path], { stdio: 'ignore' })
  const client = new Redis({ path: lines.unixsocket, retryStrategy: () => 50 })
  client.on('error', () => undefined)
  t.teardown(async () => {
    client.disconnect()
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    rmSync(dir, { recursive: true, force: true })
  })
  await until(() => client.status === 'ready', WAIT_MS)
  return { client, address: lines.unixsocket }
}

async function refusalOf(address: string, durability: Durability): Promise<string | null> {
  const store = await connectRedisStore({ address, durability }).catch((error: Error) => error)
  if (store instanceof Error) return store.message
  store.close()
  return null
}

t.test('hidden settings: DURABILITY=memory needs noeviction alone', async (t) => {
  const well = await openHidden(t, { appendonly: 'no' })
  t.equal(await refusalOf(well.address, 'memory'), null)
  const evicting = await openHidden(t, { 'maxmemory-policy': 'allkeys-lru' })
  for (const durability of ['memory', 'fsync'] as const)
    t.match(
      await refusalOf(evicting.address, durability),
      /^Redis does not allow CONFIG, and its maxmemory-policy is allkeys-lru: set it to noeviction/,
    )
})

t.test('hidden settings: a Redis without WAITAOF, or Valkey', { skip: !skip }, async (t) => {
  const { address } = await openHidden(t)
  const lack = isValkey ? 'Valkey reports writes as synced before they are' : 'it has no WAITAOF, which Redis 7.2'
  t.match(await refusalOf(address, 'fsync'), new RegExp(`DURABILITY=fsync: ${lack}.*DURABILITY=memory is possible`))
})

t.test('hidden settings: WAITAOF proves what is synced', { skip }, async (t) => {
  const well = await openHidden(t)
  for (const durability of ['fsync', 'replica', 'memory'] as const)
    t.equal(await refusalOf(well.address, durability), null, durability)
  const lazy = await openHidden(t, { appendfsync: 'everysec' })
  t.match(await refusalOf(lazy.address, 'fsync'), /a write was not on disk when its reply arrived.*=memory is possible/)
  t.equal(await refusalOf(lazy.address, 'memory'), null)
  const without = await openHidden(t, { appendonly: 'no' })
  t.match(await refusalOf(without.address, 'fsync'), /DURABILITY=fsync: its append-only file is off\./)
})

t.test('hidden settings: a change while the service runs is a fault, until it is undone', { skip }, async (t) => {
  const { client, address } = await openHidden(t)
  const faults: boolean[] = []
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const redis = new Redis({ path: address })
  t.teardown(() => redis.disconnect())
  const watch = await watchStore({
    redis: () => redis,
    durability: 'fsync',
    log,
    own: null,
    installationId: null,
    onLost: () => undefined,
    onFault: (isFaulty) => faults.push(isFaulty),
  })
  t.teardown(() => watch.stop())
  t.equal(watch.fault, null)
  await client.call('SECRET-CONFIG', 'SET', 'appendfsync', 'everysec')
  await until(() => watch.fault !== null, WAIT_MS)
  t.match(watch.fault, /a write was not on disk/)
  await client.call('SECRET-CONFIG', 'SET', 'appendfsync', 'always')
  await until(() => watch.fault === null, WAIT_MS)
  t.same(faults, [true, false])
})

t.test('hidden settings: a user without INFO gets one sentence', async (t) => {
  const { client, address } = await openHidden(t)
  await client.call('ACL', 'SETUSER', 'default', '-info')
  const lines: unknown[] = []
  const { warn } = console
  console.warn = (...line: unknown[]) => void lines.push(line)
  t.teardown(() => {
    console.warn = warn
  })
  const startedAtMs = performance.now()
  t.match(await refusalOf(address, 'fsync'), /^Cannot read INFO of Redis: NOPERM /)
  t.ok(performance.now() - startedAtMs < 5_000, 'at once')
  t.same(lines, [])
})
