/**
 * Settings of the store that were changed by hand, while it runs, right before a stop, and before a kill: nothing is
 * lost.
 */
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { hears, Scene, type Sending } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000

const CHANGED: readonly [name: string, value: string, sentence: RegExp][] = [
  ['appendonly', 'no', /appendonly must be yes\. What it took .* Repairing it now/],
  ['appendfsync', 'everysec', /appendfsync must be always\. .* Repairing it now/],
  ['maxmemory-policy', 'allkeys-lru', /maxmemory-policy must be noeviction\. .* Repairing it now/],
]

// One service and one load until it is stopped. The store that one case leaves is that of the next.
const scene = await Scene.make(t)
let service = await scene.start()
let load: Sending = await scene.load(service)

async function set(name: string, value: string): Promise<void> {
  const redis = scene.store()
  await redis.config('SET', name, value)
  redis.disconnect()
}

async function settingOf(name: string): Promise<string | undefined> {
  const redis = scene.store()
  const [, value] = (await redis.config('GET', name)) as string[]
  redis.disconnect()
  return value
}

for (const [name, value, sentence] of CHANGED)
  t.test(`mistakes: CONFIG SET ${name} ${value} while it runs is set right, and nothing is lost`, async (t) => {
    await load.passes(50)
    const from = service.said().length
    await set(name, value)
    await hears(service, sentence, from)
    await hears(service, /is durable again/, from)
    t.not(await settingOf(name), value)
    await load.passes(50)
    t.match(await scene.lostOnDisk(), { lost: 0 })
  })

t.test('mistakes: appendonly no right before a stop; Redis writes everything before it ends', async (t) => {
  await set('appendonly', 'no')
  const before = load.acknowledged
  await until(() => load.acknowledged > before + 20, WAIT_MS)
  const ended = load.end()
  t.equal(await service.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), [])
  service = await scene.start()
  await ended
  const { acknowledged, lost } = await scene.lost()
  t.ok(acknowledged >= CHANGED.length * 100)
  t.equal(lost, 0)
})

t.test('mistakes: appendonly no, and the service is killed; the next start writes everything first', async (t) => {
  load = await scene.load(service)
  await load.passes(20)
  await set('appendonly', 'no')
  const before = load.acknowledged
  await until(() => load.acknowledged > before + 20, WAIT_MS)
  const ended = load.end()
  await service.kill('SIGKILL')
  await set('appendonly', 'no')
  service = await scene.start()
  t.match(service.said(), /Writing to disk first what Redis accepted without an append-only file/)
  await ended
  await service.kill('SIGTERM')
  t.match(await scene.lostAlone(), { lost: 0 })
})
