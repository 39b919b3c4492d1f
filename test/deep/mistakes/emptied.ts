/**
 * A store that was emptied while the service runs, and a store of another installation: a sentence, and the steps that
 * restore it.
 */
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { endOf, hears, Scene } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
/** A look every two seconds, and the look itself. */
const STILL_ACKNOWLEDGED_MS = 3_000

const scene = await Scene.make(t)
let service = await scene.start()

for (const order of ['FLUSHALL', 'FLUSHDB'] as const)
  t.test(
    `mistakes: ${order} while it runs; the service ends within a look, and its sentence brings all back`,
    async (t) => {
      const load = await scene.load(service)
      await load.passes(100)
      const redis = scene.store()
      await redis.call(order)
      const flushedAtMs = performance.now()
      t.equal(await endOf(service), 1)
      t.ok(load.lastAtMs - flushedAtMs < STILL_ACKNOWLEDGED_MS, 'nothing is acknowledged after the look')
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
      service = await scene.start()
      await load.end()
      t.match(await scene.lost(), { lost: 0 })
    },
  )

t.test(
  'mistakes: a store of another installation is refused with the remedy, before anything is written',
  async (t) => {
    const settings = {
      REDIS_URL: `unix://${scene.socketPath}`,
      DATA_DIR: join(scene.top, 'other'),
      SECRET_KEY: 's'.repeat(32),
    }
    const redis = scene.store()
    const conf = await redis.hgetall('{cl}:conf')
    const from = service.said().length
    // Stopped, or its own look sets it right before the other one reads it.
    process.kill(service.pid, 'SIGSTOP')
    await redis.config('SET', 'appendonly', 'no')
    const other = await scene.start({ settings, ready: false })
    t.equal(await endOf(other), 1)
    process.kill(service.pid, 'SIGCONT')
    t.match(
      other.said(),
      /appendonly must be yes\. What it took without its file is in memory alone: do not stop Redis/,
    )
    t.same(await redis.hgetall('{cl}:conf'), conf)
    redis.disconnect()
    await hears(service, /is durable again/, from)
    t.equal(await service.kill('SIGTERM'), 0)
    t.match(await scene.lostAlone(), { lost: 0 })
  },
)
