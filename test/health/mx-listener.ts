/** mx-listener - told by what the processes that live say to run, and by none that has ended. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { WORKERS_KEY } from '../../cluster/keyspace.ts'
import { examineMxListener } from '../../src/health/mx-listener.ts'
import { readLivingRoles } from '../../src/store/condition.ts'
import { oneNode } from '../../src/store/nodes.ts'
import { startRedis } from '../support/store/redis.ts'

const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})
await redis.hset(
  WORKERS_KEY,
  'one',
  JSON.stringify({ roles: ['http', 'actors'] }),
  'two',
  JSON.stringify({ roles: ['mx'] }),
)

const dataDir = t.testdir()

t.test('health: who takes bounces and complaints, or what mends it [operator.health]', async (t) => {
  const examined = (...living: string[]) =>
    examineMxListener(
      () =>
        readLivingRoles(
          oneNode(() => redis),
          living,
        ),
      dataDir,
    )
  t.match(await examined('one', 'two'), { name: 'mx-listener', status: 'ok', fix: null })
  t.match(await examined('one'), { status: 'warning', message: /^No process takes bounces/, fix: /ROLES=mx/ })
  t.match(await examined('one', 'three'), { status: 'warning' }, 'one that has no record')
})

t.test(
  'health: reports that could not be read are named with their folder [operator.health] [bounce.unread]',
  async (t) => {
    const folder = join(t.testdir(), 'unread-reports')
    mkdirSync(folder)
    for (const name of ['1.eml', '2.eml']) writeFileSync(join(folder, name), '')
    const found = await examineMxListener(async () => new Set(['mx']), join(folder, '..'))
    t.match(found, { status: 'warning', message: /could not be read.*: 2 in the last 7 days/ })
    t.ok(found.fix?.includes(folder))
  },
)
