/** store - a real Redis, as it must be and otherwise; clocks that agree and do not. */

import { Redis } from 'ioredis'
import t from 'tap'
import { examineClock, examineStore } from '../../src/health/store.ts'
import { makeStoreCondition } from '../../src/store/condition.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { startRedis } from '../support/store/redis.ts'

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
const of = (durability: 'fsync' | 'memory') =>
  makeStoreCondition(
    oneNode(() => redis),
    durability,
  )
const OURS = { isOwn: true, fault: null, damaged: new Map<string, number>() } as const
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})

t.test('health: the store’s settings and its memory [operator.health]', async (t) => {
  const fsync = await redis.config('GET', 'appendfsync')
  await redis.config('SET', 'maxmemory', '0')
  t.match(await examineStore(of('fsync'), OURS), { name: 'store', status: 'warning', fix: /maxmemory/ })
  await redis.config('SET', 'maxmemory', String(1024 ** 3))
  t.match(await examineStore(of('fsync'), OURS), { status: 'ok', message: /^Redis \d+\.\d+/ })
  const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  await redis.config('SET', 'maxmemory', String(Math.round(used / 0.78)))
  t.match(await examineStore(of('fsync'), OURS), {
    status: 'warning',
    message: /78 % of maxmemory is used; from 85 % on new mail is refused/,
  })
  await redis.config('SET', 'maxmemory', String(Math.round(used / 0.95)))
  t.match(await examineStore(of('fsync'), OURS), {
    status: 'failed',
    message: /new mail is refused/,
    fix: /^Set REDIS_MAXMEMORY to \d+mb/,
  })
  t.match((await examineStore(of('fsync'), { ...OURS, isOwn: false })).fix, /CONFIG SET maxmemory \d+/, "another's")
  t.match(await examineStore(of('fsync'), { ...OURS, fault: 'The directory is gone' }), {
    status: 'failed',
    message: 'Rejecting all requests: The directory is gone',
  })
  await redis.config('SET', 'maxmemory', '0')
  await redis.config('SET', 'appendfsync', 'everysec')
  t.match(await examineStore(of('fsync'), OURS), {
    status: 'failed',
    message: /appendfsync must be always/,
    fix: /redis\.conf/,
  })
  t.not((await examineStore(of('memory'), OURS)).status, 'failed')
  await redis.config('SET', 'appendfsync', (fsync as string[])[1] ?? 'always')
})

t.test('health: clocks that agree, and one that is off [operator.health]', async (t) => {
  const unknown = async () => null
  const look = (isKept: () => Promise<boolean | null>) => examineClock(of('fsync'), Date.now, isKept)
  t.match(await look(unknown), { name: 'clock', status: 'ok', message: /cannot be checked here/ })
  t.match(await look(async () => true), { status: 'ok', message: /synchronized/ })
  t.match(await look(async () => false), { status: 'warning', message: /nothing synchronizes/, fix: /set-ntp true/ })
  for (const off of [-60_000, 60_000])
    t.match(await examineClock(of('fsync'), () => Date.now() + off, unknown), {
      status: 'failed',
      // Less by what the store took to answer.
      message: / [1-6]\d{4} ms/,
      fix: /NTP/,
    })
})
