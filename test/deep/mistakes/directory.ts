/** The directory of the store is moved or deleted while the service runs: nothing acknowledged is lost. */
import { readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../../support/machine/until.ts'
import { hears, isReady, readiness, Scene, type Sending, type Started } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
/** A look every two seconds, and the look itself. */
const STILL_ACKNOWLEDGED_MS = 3_000
// The two wait for looks most of the time.
t.jobs = 2

interface World {
  readonly scene: Scene
  readonly service: Started
  readonly load: Sending
}

void t.test(
  'mistakes: the data directory is moved, and mail refused until it is back; then it is deleted, and written again',
  { buffered: true },
  async (t) => {
    const scene = await Scene.make(t)
    const service = await scene.start()
    const load = await scene.load(service)
    await load.passes(100)
    await isMoved(t, { scene, service, load })
    const deletion = /data was deleted while Redis runs: rewriting all data of Redis into it/
    await isDeleted(t, { scene, service, load }, deletion)
    t.same(
      ['installation', 'secret-key'].filter((name) => !readdirSync(scene.dataDir).includes(name)),
      [],
    )
    const again = await scene.start()
    t.match(await scene.lost(), { lost: 0 }, 'after another start too')
    await again.kill('SIGTERM')
  },
)

void t.test(
  'mistakes: rm -rf of the data directory of a cluster; the process that runs Redis writes all of it again',
  { buffered: true },
  async (t) => {
    const scene = await Scene.make(t)
    const service = await scene.cluster(['redis=1', 'all=1'])
    const load = await scene.load(service)
    await load.passes(100)
    const deletion = /redis .*data was deleted while Redis runs: rewriting all data of Redis/
    await isDeleted(t, { scene, service, load }, deletion)
    const again = await scene.start()
    t.match(await scene.lost(), { lost: 0 }, 'after another start too')
    // Once more, and no look sees it before the stop does.
    rmSync(scene.dataDir, { recursive: true })
    t.equal(await again.kill('SIGTERM'), 0)
    t.match(await scene.lostAlone(), { lost: 0 }, 'deleted right before a stop')
  },
)

async function isMoved(t: Test, { scene, service, load }: World): Promise<void> {
  const elsewhere = join(scene.top, 'elsewhere')
  renameSync(scene.dataDir, elsewhere)
  await isRefused(t, load)
  await hears(service, new RegExp(`was moved, .* Its files still exist in ${elsewhere}: move it back`))
  t.equal(await readiness(service.operatorPort), 503)
  renameSync(elsewhere, scene.dataDir)
  await hears(service, /is durable again/)
  await load.passes(50)
  t.match(await scene.lostOnDisk(), { lost: 0 }, 'moved')
}

/** Everything is stored, and mail is accepted again; then it is stopped. */
async function isDeleted(t: Test, { scene, service, load }: World, sentence: RegExp): Promise<void> {
  const from = service.said().length
  rmSync(scene.dataDir, { recursive: true })
  await hears(service, sentence, from)
  await hears(service, /is durable again/, from)
  await load.passes(50)
  await load.end()
  const { acknowledged, lost } = await scene.lost()
  t.ok(acknowledged > 100)
  t.equal(lost, 0, 'deleted')
  await isReady(service)
  t.equal(scene.redisProcesses().length, 1, 'one redis')
  t.equal(await service.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), [])
}

/** From this check on nothing is acknowledged. */
async function isRefused(t: Test, load: Sending): Promise<void> {
  const sinceMs = performance.now()
  await until(() => performance.now() - Math.max(sinceMs, load.lastAtMs) > STILL_ACKNOWLEDGED_MS, WAIT_MS)
  t.ok(load.lastAtMs - sinceMs < STILL_ACKNOWLEDGED_MS, `nothing is acknowledged after ${load.lastAtMs - sinceMs} ms`)
}
