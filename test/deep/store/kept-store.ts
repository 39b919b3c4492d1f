/** The service beside `sendwright store` on one directory, as the units of docs/deploy/ run them. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { endOf, isReady, Scene } from '../../support/mistakes/scene.ts'

t.test('kept store: restarts of the service and of its keeper leave Redis alone', async (t) => {
  const scene = await Scene.make(t)
  const settings = { REDIS_URL: `unix://${scene.socketPath}` }
  let keeper = await scene.keepStore()
  let service = await scene.start({ settings })
  t.ok(existsSync(join(scene.dataDir, 'secret-key')), 'a secret was made without SECRET_KEY')
  t.ok(existsSync(join(scene.dataDir, 'content')), 'large content is in files')
  const redis = scene.redisProcesses()
  t.equal(redis.length, 1)
  const sending = await scene.load(service)
  await sending.passes(20)
  await sending.end()

  t.equal(await service.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), redis, 'a stop of the service')
  service = await scene.start({ settings })
  t.same(scene.redisProcesses(), redis, 'the next start')
  await service.kill('SIGKILL')
  service = await scene.start({ settings })
  t.same(scene.redisProcesses(), redis, 'a killed service')

  t.equal(await keeper.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), redis, 'a stop of the keeper beside a service')
  keeper = await scene.keepStore()
  t.match(keeper.said(), 'Adopted the running redis')
  await keeper.kill('SIGKILL')
  keeper = await scene.keepStore()
  await isReady(service)
  t.match(await scene.lost(), { lost: 0 })
  t.same(scene.redisProcesses(), redis)

  t.equal(await service.kill('SIGTERM'), 0)
  t.equal(await keeper.kill('SIGTERM'), 0)
  t.same(scene.redisProcesses(), [], 'the last one ends Redis')
})

t.test('kept store: a Redis in another directory needs the secret', async (t) => {
  const scene = await Scene.make(t)
  const keeper = await scene.keepStore()
  const settings = { REDIS_URL: `unix://${scene.socketPath}`, DATA_DIR: join(scene.top, 'other') }
  const service = await scene.start({ settings, ready: false })
  t.equal(await endOf(service), 1)
  t.match(service.said(), 'SECRET_KEY is required with REDIS_URL')
  t.equal(await keeper.kill('SIGTERM'), 0)
})
