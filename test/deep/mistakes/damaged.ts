/**
 * The files of the store are removed, cut or replaced while the service runs: Redis writes its data again, and nothing
 * acknowledged is lost, neither in memory nor on disk.
 */
import { cpSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readMark } from '../../../cluster/embedded/store-mark.ts'
import { until } from '../../support/machine/until.ts'
import { hears, isReady, Scene, type Sending, type Started } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000
// Two services, each with two of the mistakes: they wait for looks most of the time.
t.jobs = 2

interface World {
  readonly scene: Scene
  readonly service: Started
  readonly load: Sending
}

type Mistake = readonly [name: string, make: (world: World) => unknown, sentence: RegExp]

const incrOf = ({ scene }: World, seq: number): string =>
  join(scene.dataDir, 'appendonlydir', `appendonly.aof.${seq}.incr.aof`)

/**
 * The service under load, one mistake after the other: everything is stored, and mail is accepted again; then a clean
 * stop.
 */
async function survives(t: Test, mistakes: readonly Mistake[], atEnd: (scene: Scene) => void): Promise<void> {
  const scene = await Scene.make(t)
  const service = await scene.start()
  const load = await scene.load(service)
  const world = { scene, service, load }
  for (const [name, make, sentence] of mistakes) {
    await load.passes(100)
    const from = service.said().length
    await make(world)
    await hears(service, sentence, from)
    await hears(service, /is durable again/, from)
    await load.passes(50)
    t.match(await scene.lostOnDisk(), { lost: 0 }, `${name}: nothing is missing on disk`)
    await isReady(service)
  }
  await load.end()
  t.match(await scene.lost(), { lost: 0 })
  t.equal(scene.redisProcesses().length, 1, 'one redis')
  // Once more, and no look sees it before the stop does.
  atEnd(scene)
  t.equal(await service.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), [])
  const { acknowledged, lost } = await scene.lostAlone()
  t.ok(acknowledged > mistakes.length * 100)
  t.equal(lost, 0, 'after another start too')
}

function removeAll({ dataDir }: Scene): void {
  rmSync(join(dataDir, 'appendonlydir'), { recursive: true })
}

function cutAll({ dataDir }: Scene): void {
  const folder = join(dataDir, 'appendonlydir')
  for (const name of readdirSync(folder)) truncateSync(join(folder, name), 10)
}

const REMOVED: Mistake = [
  'rm -rf of appendonlydir',
  ({ scene }) => removeAll(scene),
  /appendonlydir was removed or replaced while Redis runs: Redis is writing/,
]

const CUT: Mistake = [
  'a file is cut while it is written',
  (world) => truncateSync(incrOf(world, 1), 100),
  /cut (or changed )?while Redis runs/,
]

const CUT_AFTER_REWRITE: Mistake = [
  'a file that a rewrite began is cut, and has a hole then',
  async (world) => {
    const { scene } = world
    const redis = scene.store()
    await redis.bgrewriteaof()
    const file = incrOf(world, 3)
    await until(() => statSync(file, { throwIfNoEntry: false })?.size, WAIT_MS)
    // A check must have seen it. Bytes cut earlier are fewer than those written until the next check.
    const seenAt = new Date().toISOString()
    await until(() => (readMark(scene.dataDir)?.at ?? '') > seenAt, WAIT_MS)
    redis.disconnect()
    truncateSync(file, 10)
  },
  /incr\.aof was cut or changed while Redis runs/,
]

const BACKUP_LAID_OVER: Mistake = [
  'a backup is laid over the running directory',
  async ({ scene, load }) => {
    const [folder, backup] = [join(scene.dataDir, 'appendonlydir'), join(scene.top, 'backup')]
    cpSync(folder, backup, { recursive: true })
    await load.passes(100)
    rmSync(folder, { recursive: true })
    cpSync(backup, folder, { recursive: true })
  },
  /appendonlydir was removed or replaced while Redis runs/,
]

void t.test('mistakes: files that are cut while they are written; Redis writes them again', { buffered: true }, (t) =>
  survives(t, [CUT, CUT_AFTER_REWRITE], cutAll),
)

void t.test(
  'mistakes: appendonlydir is removed, or replaced by a backup; Redis writes it again',
  { buffered: true },
  (t) => survives(t, [BACKUP_LAID_OVER, REMOVED], removeAll),
)
