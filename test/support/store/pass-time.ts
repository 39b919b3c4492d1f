/** pass-time - time passes for the users of the dashboard, in a store that nobody holds */
import type { Redis } from 'ioredis'
import { USERS_LANE } from '../../../src/state/dashboard/places.ts'

/** Makes all steps on lists of accounts long past, and all looks at users due. */
export async function passTime(redis: Redis): Promise<void> {
  for (const key of await redis.keys('*:user:*')) {
    const unsure = JSON.parse((await redis.hget(key, 'unsure')) ?? '{}') as Record<string, number>
    const past = Object.fromEntries(Object.keys(unsure).map((accountId) => [accountId, 1]))
    await redis.hset(key, 'unsure', JSON.stringify(past))
  }
  for (const key of await redis.keys(`*:due:${USERS_LANE}`)) {
    for (const item of await redis.zrange(key, 0, -1)) await redis.zadd(key, 1, item)
    await redis.zadd(key.slice(0, key.lastIndexOf(':')), 1, USERS_LANE)
  }
}
