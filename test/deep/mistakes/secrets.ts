/**
 * The secret of a store: one for every way to start it; the right one of two, a wrong one, none; and a port that is in
 * use.
 */
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { until } from '../../support/machine/until.ts'
import { endOf, Scene } from '../../support/mistakes/scene.ts'

const WAIT_MS = 60_000

// One directory: each case leaves it unchanged.
const scene = await Scene.make(t)
const secretPath = join(scene.dataDir, 'secret-key')

// The other order is in two-ways.ts: there the cluster is first in a new directory.
t.test('mistakes: start, stop, cluster, stop: one secret', async (t) => {
  for (const way of ['start', 'cluster'] as const) {
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
  'mistakes: a second secret of an earlier release next to the first; the one that the store confirms is used',
  async (t) => {
    const right = readFileSync(secretPath, 'utf8')
    renameSync(secretPath, join(scene.dataDir, 'cluster-secret'))
    writeFileSync(secretPath, `${'wrong'.repeat(8)}\n`)
    await (await scene.cluster(['redis=1', 'all=1'])).kill('SIGTERM')
    t.equal(readFileSync(secretPath, 'utf8'), right)
  },
)

t.test('mistakes: a deleted secret is distinguished from a wrong one, and none is created', async (t) => {
  for (const name of readdirSync(scene.dataDir).filter((one) => /secret/.test(one)))
    renameSync(join(scene.dataDir, name), join(scene.top, name))
  const missing = await scene.start({ ready: false })
  t.equal(await endOf(missing), 1)
  t.match(missing.said(), /The secret of this store is missing: restore .*secret-key from a backup/)
  t.equal(existsSync(secretPath), false)
  t.same(scene.redisProcesses(), [], 'the redis that it began has ended')
  writeFileSync(secretPath, `${'wrong'.repeat(8)}\n`)
  const wrong = await scene.start({ ready: false })
  t.equal(await endOf(wrong), 1)
  t.match(wrong.said(), /The secret in .*secret-key does not match this store/)
  t.same(scene.redisProcesses(), [])
  renameSync(join(scene.top, 'secret-key'), secretPath)
})

t.test('mistakes: a start that fails at a taken port ends the redis that it began', async (t) => {
  const taken = createServer().listen(Number(scene.settings.OPERATOR_PORT), '127.0.0.1')
  await once(taken, 'listening')
  const service = await scene.start({ ready: false })
  t.equal(await endOf(service), 1)
  t.match(service.said(), /Cannot run: /)
  await until(() => scene.redisProcesses().length === 0, WAIT_MS)
  taken.close()
  const again = await scene.start()
  await again.kill('SIGTERM')
})
