/** ring - loaded from a real Redis, the same for all who start, and kept up to date. */
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import t from 'tap'
import {
  deriveRingKeys,
  RING_NONCE_BYTES,
  sealRing,
  withGeneration,
  withNewestSealing,
} from '../../src/state/ring/ring.ts'
import { openRingDoor } from '../../src/store/ring.ts'
import { until } from '../support/machine/until.ts'
import { startRedis } from '../support/store/redis.ts'

const SECRET = 'a secret of the tests that is long enough'
const server = await startRedis()
const redis = new Redis({ path: server.socketPath })
t.teardown(async () => {
  redis.disconnect()
  await server.stop()
})
t.beforeEach(() => redis.flushall())

async function openDoor(t: { teardown(act: () => void): void }, secret = SECRET) {
  const lost: string[] = []
  const door = await openRingDoor({
    redis: () => redis,
    source: { dataDir: '/nowhere', secretKey: secret, secretKeyPrevious: null },
    secret,
    onLost: (sentence) => lost.push(sentence),
  })
  t.teardown(() => door.stop())
  return { ring: door.ring, lost }
}

t.test('ring: created once, from the secret, and the same for all who start', async (t) => {
  const doors = await Promise.all(Array.from({ length: 8 }, () => openDoor(t)))
  const stored = await redis.hget('{cl}:conf', 'ring')
  t.ok(stored)
  for (const { ring } of doors) t.same(ring.keys, deriveRingKeys(SECRET))
  t.equal(await redis.hget('{cl}:conf', 'ring'), stored)
})

t.test('ring: another secret does not open it', async (t) => {
  await openDoor(t)
  await t.rejects(openDoor(t, `${SECRET}!`), /SECRET_KEY does not open the keys of this store/)
})

t.test('ring: a process learns a changed one within seconds, or ends', async (t) => {
  const { ring, lost } = await openDoor(t)
  const changed = withNewestSealing(withGeneration(ring.keys, randomBytes(64)))
  const seal = (secretKey: string) => sealRing(changed, { secretKey, nonce: randomBytes(RING_NONCE_BYTES) })
  await redis.hset('{cl}:conf', 'ring', seal(SECRET))
  await until(() => ring.keys.current === 1, 10_000)
  t.equal(ring.sealing().generation, 1)
  t.same(lost, [])
  await redis.hset('{cl}:conf', 'ring', seal(`${SECRET}!`))
  await until(() => lost.length > 0, 10_000)
  t.equal(ring.keys.current, 1, 'it keeps the keys that it knew')
})
