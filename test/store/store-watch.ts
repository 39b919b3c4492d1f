/** store-watch - a store that does not answer is reported even if the request itself hangs, and so is its return. */
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { StoreDirectory } from '../../cluster/embedded/store-directory.ts'
import { watchStore } from '../../src/store/store-watch.ts'
import { until } from '../support/machine/until.ts'
import { startRedis } from '../support/store/redis.ts'

const WAIT_MS = 30_000

t.test('store watch: a silence is reported once, with the evidence from outside', async (t) => {
  const server = await startRedis()
  // A connection that waits for its answers as long as they take.
  const redis = new Redis({ path: server.socketPath })
  redis.on('error', () => undefined)
  t.teardown(async () => {
    redis.disconnect()
    await server.stop()
  })
  const told: string[] = []
  const tell = (facts: object, sentence: string): void => {
    told.push(`${sentence}: ${(facts as { reason?: string }).reason ?? ''}`)
  }
  const watch = await watchStore({
    redis: () => redis,
    durability: 'fsync',
    log: { info: tell, warn: tell, error: tell },
    own: null,
    installationId: null,
    onLost: () => undefined,
  })
  t.teardown(() => watch.stop())
  const [, pid] = /process_id:(\d+)/.exec(await redis.info('server')) ?? []
  process.kill(Number(pid), 'SIGSTOP')
  await until(() => told.length > 0, WAIT_MS)
  t.same(told, [`The store does not answer: redis-server ${pid} is stopped by a signal: kill -CONT ${pid} resumes it`])
  process.kill(Number(pid), 'SIGCONT')
  await until(() => told.length > 1, WAIT_MS)
  t.same(told.slice(1), ['The store answers again: '])
})

t.test('store watch: faults are noticed while the first sums of a large file are made', async (t) => {
  const server = await startRedis()
  const redis = new Redis({ path: server.socketPath })
  const directory = new StoreDirectory({ path: server.dir, processId: () => server.pid, isOwn: true })
  let sums = 0
  directory.confirm = () => {
    sums += 1
    return new Promise(() => undefined)
  }
  const told: string[] = []
  const tell = (_: object, sentence: string): void => void told.push(sentence)
  const watch = await watchStore({
    redis: () => redis,
    durability: 'fsync',
    log: { info: tell, warn: tell, error: tell },
    own: { directory, rescue: async () => undefined, describe: () => '' },
    installationId: null,
    onLost: () => undefined,
  })
  t.teardown(async () => {
    watch.stop()
    redis.disconnect()
    await server.stop()
  })
  t.equal(watch.fault, null)
  t.ok(sums > 0)
  renameSync(join(server.dir, 'appendonlydir'), join(server.dir, 'elsewhere'))
  await until(() => watch.fault !== null, WAIT_MS)
  t.match(watch.fault, /appendonlydir was removed or replaced/)
})
