/** Settings of the store that were changed by hand while it runs, and a store that was emptied or replaced. */
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { hears, Scene } from '../support/mistakes/scene.ts'

const WAIT_MS = 60_000

const CHANGED: readonly [name: string, value: string, sentence: RegExp][] = [
  ['appendonly', 'no', /appendonly must be yes\. What it took .* It is set right now/],
  ['appendfsync', 'everysec', /appendfsync must be always\. .* It is set right now/],
  ['maxmemory-policy', 'allkeys-lru', /maxmemory-policy must be noeviction\. .* It is set right now/],
]

for (const [name, value, sentence] of CHANGED)
  t.test(`mistakes: CONFIG SET ${name} ${value} while it runs is set right, and nothing is lost`, async (t) => {
    const scene = await Scene.make(t)
    const service = await scene.start()
    const load = await scene.load(service)
    await load.passes(100)
    const redis = scene.store()
    await redis.config('SET', name, value)
    await hears(service, sentence)
    await hears(service, /keeps what it takes again/)
    t.not(((await redis.config('GET', name)) as string[])[1], value)
    redis.disconnect()
    await load.passes(100)
    await load.end()
    t.equal(await service.kill('SIGTERM'), 0)
    const again = await scene.start()
    const { acknowledged, lost } = await scene.lost()
    t.ok(acknowledged >= 200)
    t.equal(lost, 0)
    await again.kill('SIGTERM')
  })

t.test('mistakes: appendonly no right before a stop; Redis writes everything before it ends', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const load = await scene.load(service)
  await load.passes(50)
  const redis = scene.store()
  await redis.config('SET', 'appendonly', 'no')
  redis.disconnect()
  const before = load.acknowledged
  await until(() => load.acknowledged > before + 50, WAIT_MS)
  const ended = load.end()
  await service.kill('SIGTERM')
  const again = await scene.start()
  await ended
  t.match(await scene.lost(), { lost: 0 })
  await again.kill('SIGTERM')
})

t.test('mistakes: appendonly no, and the service is killed; the next start writes everything first', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const load = await scene.load(service)
  await load.passes(50)
  const redis = scene.store()
  await redis.config('SET', 'appendonly', 'no')
  const before = load.acknowledged
  await until(() => load.acknowledged > before + 50, WAIT_MS)
  const ended = load.end()
  await service.kill('SIGKILL')
  await redis.config('SET', 'appendonly', 'no')
  redis.disconnect()
  const again = await scene.start()
  t.match(again.said(), /What the redis took while it had no append-only file is written to disk before anything else/)
  await ended
  await again.kill('SIGTERM')
  const last = await scene.start()
  t.match(await scene.lost(), { lost: 0 })
  await last.kill('SIGTERM')
})

for (const order of ['FLUSHALL', 'FLUSHDB'] as const)
  t.test(
    `mistakes: ${order} while it runs; the service ends within a look, and its sentence brings all back`,
    async (t) => {
      const scene = await Scene.make(t)
      const service = await scene.start()
      const load = await scene.load(service)
      await load.passes(100)
      const redis = scene.store()
      await redis.call(order)
      const flushedAtMs = performance.now()
      t.equal(await service.exited, 1)
      t.ok(load.lastAtMs - flushedAtMs < 3_000, 'nothing is acknowledged after the look')
      t.match(
        service.said(),
        /The store holds no installation, but .* it was emptied, or this is another store\. After a FLUSH/,
      )
      // As the sentence says.
      await redis.call('SHUTDOWN', 'NOSAVE').catch(() => undefined)
      redis.disconnect()
      await until(() => scene.redisProcesses().length === 0, WAIT_MS)
      const folder = join(scene.dataDir, 'appendonlydir')
      const file = join(folder, readdirSync(folder).find((one) => one.endsWith('.incr.aof')) as string)
      truncateSync(file, readFileSync(file).lastIndexOf(`*1\r\n$${order.length}\r\n${order}`))
      const again = await scene.start()
      await load.end()
      t.match(await scene.lost(), { lost: 0 })
      await again.kill('SIGTERM')
    },
  )

t.test('mistakes: a store of somebody else is refused with what rescues it, before anything is written', async (t) => {
  const scene = await Scene.make(t)
  const first = await scene.start()
  const settings = {
    REDIS_URL: `unix://${scene.socketPath}`,
    DATA_DIR: join(scene.top, 'other'),
    SECRET_KEY: 's'.repeat(32),
  }
  const redis = new Redis({ path: scene.socketPath })
  const conf = await redis.hgetall('{cl}:conf')
  // Stopped, or its own look sets it right before the other one reads it.
  process.kill(first.pid, 'SIGSTOP')
  await redis.config('SET', 'appendonly', 'no')
  const other = await scene.start({ settings, ready: false })
  t.equal(await other.exited, 1)
  process.kill(first.pid, 'SIGCONT')
  t.match(other.said(), /appendonly must be yes\. What it took without its file is in memory alone: do not stop Redis/)
  t.same(await redis.hgetall('{cl}:conf'), conf)
  redis.disconnect()
  await hears(first, /keeps what it takes again/)
  await first.kill('SIGTERM')
})
