/** The directory of the store goes away, or its files do, while the service runs: nothing acknowledged is lost. */
import { cpSync, readdirSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readMark } from '../../cluster/embedded/store-mark.ts'
import { until } from '../support/machine/until.ts'
import { hears, readiness, Scene, type Sending, type Started } from '../support/mistakes/scene.ts'

const WAIT_MS = 60_000
/** A look every two seconds, and the look itself. */
const STILL_ACKNOWLEDGED_MS = 3_000

/** The service under load; the mistake; everything is there, and mail is taken again. */
async function survives(
  t: Test,
  mistake: (scene: Scene) => unknown,
  sentence: RegExp,
  start = (scene: Scene): Promise<Started> => scene.start(),
): Promise<{ scene: Scene; service: Started }> {
  const scene = await Scene.make(t)
  const service = await start(scene)
  const load = await scene.load(service)
  await load.passes(200)
  await mistake(scene)
  await hears(service, sentence)
  await hears(service, /keeps what it takes again/)
  await load.passes(100)
  await load.end()
  t.match(await scene.lost(), { lost: 0 })
  await until(async () => (await readiness(service.operatorPort)) === 200, WAIT_MS)
  t.equal(scene.redisProcesses().length, 1, 'one redis')
  t.equal(await service.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), [])
  return { scene, service }
}

/** And after another start everything is still there. */
async function isThere(t: Test, scene: Scene): Promise<void> {
  const again = await scene.start()
  const { acknowledged, lost } = await scene.lost()
  t.ok(acknowledged > 300)
  t.equal(lost, 0, 'after another start too')
  await again.kill('SIGTERM')
}

t.test('mistakes: rm -rf of the data directory; everything is written into a new one', async (t) => {
  const remove = ({ dataDir }: Scene) => rmSync(dataDir, { recursive: true })
  const { scene } = await survives(
    t,
    remove,
    /data was deleted while Redis runs: all that Redis holds is written into it/,
  )
  t.same(
    ['installation', 'secret-key'].filter((name) => !readdirSync(scene.dataDir).includes(name)),
    [],
  )
  await isThere(t, scene)
})

t.test(
  'mistakes: rm -rf of the data directory of a cluster; the process that runs Redis writes all of it anew',
  async (t) => {
    const remove = ({ dataDir }: Scene) => rmSync(dataDir, { recursive: true })
    const start = (scene: Scene) => scene.cluster(['redis=1', 'all=1'])
    const { scene } = await survives(
      t,
      remove,
      /redis .*data was deleted while Redis runs: all that Redis holds/,
      start,
    )
    await isThere(t, scene)
  },
)

t.test('mistakes: rm -rf of appendonlydir; Redis writes anew', async (t) => {
  const remove = ({ dataDir }: Scene) => rmSync(join(dataDir, 'appendonlydir'), { recursive: true })
  const { scene } = await survives(t, remove, /appendonlydir was removed or replaced while Redis runs: Redis writes/)
  await isThere(t, scene)
})

t.test('mistakes: a file is cut while it is written; Redis writes anew', async (t) => {
  const cut = ({ dataDir }: Scene) => truncateSync(join(dataDir, 'appendonlydir', 'appendonly.aof.1.incr.aof'), 100)
  const { scene } = await survives(t, cut, /cut (or changed )?while Redis runs/)
  await isThere(t, scene)
})

t.test('mistakes: a file that a rewrite began is cut, and has a hole then; Redis writes anew', async (t) => {
  const cut = async (scene: Scene) => {
    const redis = scene.store()
    await redis.bgrewriteaof()
    const file = join(scene.dataDir, 'appendonlydir', 'appendonly.aof.2.incr.aof')
    await until(() => statSync(file, { throwIfNoEntry: false })?.size, WAIT_MS)
    // A look must have seen it: what is cut before is less than what is written until the next one.
    const seenAt = new Date().toISOString()
    await until(() => (readMark(scene.dataDir)?.at ?? '') > seenAt, WAIT_MS)
    redis.disconnect()
    truncateSync(file, 10)
  }
  const { scene } = await survives(t, cut, /incr\.aof was cut or changed while Redis runs/)
  await isThere(t, scene)
})

t.test('mistakes: the data directory is moved; refused, and taken again once it is back', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const load = await scene.load(service)
  await load.passes(200)
  const elsewhere = join(scene.top, 'elsewhere')
  renameSync(scene.dataDir, elsewhere)
  await isRefused(t, load)
  await hears(service, new RegExp(`was moved away.* Its files live on in ${elsewhere}: bring it back`))
  t.equal(await readiness(service.operatorPort), 503)
  renameSync(elsewhere, scene.dataDir)
  await hears(service, /keeps what it takes again/)
  await load.passes(100)
  await load.end()
  t.match(await scene.lost(), { lost: 0 })
  await service.kill('SIGTERM')
  await isThere(t, scene)
})

t.test('mistakes: a backup is laid over the running directory; refused by a sentence, nothing is lost', async (t) => {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const load = await scene.load(service)
  await load.passes(50)
  const backup = join(scene.top, 'backup')
  cpSync(join(scene.dataDir, 'appendonlydir'), backup, { recursive: true })
  await load.passes(300)
  rmSync(join(scene.dataDir, 'appendonlydir'), { recursive: true })
  cpSync(backup, join(scene.dataDir, 'appendonlydir'), { recursive: true })
  await hears(service, /appendonlydir was removed or replaced while Redis runs/)
  await hears(service, /keeps what it takes again/)
  await load.end()
  t.match(await scene.lost(), { lost: 0 })
  t.equal(await service.kill('SIGTERM'), 0)
  await isThere(t, scene)
})

/** From the look on nothing is acknowledged any more. */
async function isRefused(t: Test, load: Sending): Promise<void> {
  const sinceMs = performance.now()
  await until(() => performance.now() - Math.max(sinceMs, load.lastAtMs) > STILL_ACKNOWLEDGED_MS, WAIT_MS)
  t.ok(load.lastAtMs - sinceMs < STILL_ACKNOWLEDGED_MS, `nothing is acknowledged after ${load.lastAtMs - sinceMs} ms`)
}
