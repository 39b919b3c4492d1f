/** pass-time - advances time for the users of the dashboard, in a store without an owner */
import type { Redis } from 'ioredis'
import { USERS_LANE } from '../../../src/state/dashboard/places.ts'

/** Makes all users and all steps on their lists long past, and all looks at them due. */
export async function passTime(redis: Redis): Promise<void> {
  for (const key of await redis.keys('*:user:*')) {
    const unsure = JSON.parse((await redis.hget(key, 'unsure')) ?? '{}') as Record<string, number>
    const past = Object.fromEntries(Object.keys(unsure).map((accountId) => [accountId, 1]))
    await redis.hset(key, 'created', '1', 'unsure', JSON.stringify(past))
  }
  for (const key of await redis.keys(`*:due:${USERS_LANE}`)) {
    for (const item of await redis.zrange(key, 0, -1)) await redis.zadd(key, 1, item)
    await redis.zadd(key.slice(0, key.lastIndexOf(':')), 1, USERS_LANE)
  }
}
