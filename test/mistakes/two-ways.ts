/** Two ways to start on one directory: `npm start` and `npm run cluster` share one redis-server, or one is refused. */

import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../support/machine/until.ts'
import { Scene } from '../support/mistakes/scene.ts'
import { playTwoWays } from '../support/mistakes/two-ways.ts'
import { makeRandom } from '../support/store/random-ops.ts'

const WAIT_MS = 60_000
const ROUNDS = 4

t.test(
  'mistakes: start and cluster on one directory, in both orders, killed in between: one redis, nothing lost',
  async (t) => {
    const scene = await Scene.make(t)
    const played = await playTwoWays(scene, { rounds: ROUNDS, random: makeRandom(Number(process.env.SEED ?? 7)) })
    t.match(played, { rounds: ROUNDS, mostAtOnce: 1, lost: 0, refused: played.strangers })
    t.ok(played.acknowledged > ROUNDS * 20)
  },
)

t.test('mistakes: start, stop, cluster, stop, start: one secret, in either order', async (t) => {
  const scene = await Scene.make(t)
  for (const way of ['start', 'cluster', 'start'] as const) {
    const started = way === 'start' ? await scene.start() : await scene.cluster(['redis=1', 'all=1'])
    t.equal(await started.kill('SIGTERM'), 0)
    t.same(scene.redisProcesses(), [])
  }
  t.same(
    readdirSync(scene.dataDir).filter((name) => /secret/.test(name)),
    ['secret-key'],
  )
})

t.test(
  'mistakes: a second secret of an earlier release lies beside the first; the one that the store confirms wins',
  async (t) => {
    const scene = await Scene.make(t)
    await (await scene.start()).kill('SIGTERM')
    const path = join(scene.dataDir, 'secret-key')
    const right = readFileSync(path, 'utf8')
    renameSync(path, join(scene.dataDir, 'cluster-secret'))
    writeFileSync(path, `${'wrong'.repeat(8)}\n`)
    await (await scene.cluster(['redis=1', 'all=1'])).kill('SIGTERM')
    t.equal(readFileSync(path, 'utf8'), right)
  },
)

t.test('mistakes: a secret that was deleted is told from a wrong one, and none is made', async (t) => {
  const scene = await Scene.make(t)
  await (await scene.start()).kill('SIGTERM')
  const path = join(scene.dataDir, 'secret-key')
  renameSync(path, join(scene.top, 'kept'))
  const missing = await scene.start({ ready: false })
  t.equal(await missing.exited, 1)
  t.match(missing.said(), /The secret of this store is missing: .*secret-key is not there/)
  t.equal(existsSync(path), false)
  t.same(scene.redisProcesses(), [], 'the redis that it began has ended')
  writeFileSync(path, `${'wrong'.repeat(8)}\n`)
  const wrong = await scene.start({ ready: false })
  t.equal(await wrong.exited, 1)
  t.match(wrong.said(), /The secret in .*secret-key is not the one that this store was made with/)
  t.same(scene.redisProcesses(), [])
  renameSync(join(scene.top, 'kept'), path)
  await (await scene.start()).kill('SIGTERM')
})

t.test('mistakes: a start that fails at a taken port ends the redis that it began', async (t) => {
  const scene = await Scene.make(t)
  const taken = createServer().listen(Number(scene.settings.OPERATOR_PORT), '127.0.0.1')
  await once(taken, 'listening')
  const service = await scene.start({ ready: false })
  t.equal(await service.exited, 1)
  t.match(service.said(), /Cannot run: /)
  await until(() => scene.redisProcesses().length === 0, WAIT_MS)
  taken.close()
  const again = await scene.start()
  await again.kill('SIGTERM')
  rmSync(scene.dataDir, { recursive: true })
})
