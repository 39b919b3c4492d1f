/**
 * user - users as they are stored: by their address, by their id
 *
 * Keys: `logins`, `user:<id>`, `sessions:<user>`
 */

import { homeShard } from '../../../cluster/id.ts'
import { loginFact, type User, userFact, userOfRow } from '../../state/dashboard/user.ts'
import { bucketOfHmac } from '../../state/hash-fraction.ts'
import type { Reader } from '../key.ts'

/** The user with an address, by its HMAC; null if there is no such user. */
export async function readUserByLogin(read: Reader, hmac: string): Promise<User | null | 'unavailable'> {
  const shard = bucketOfHmac(hmac)
  const seen = await read(shard, [loginFact(shard, hmac)])
  if (seen === null) return 'unavailable'
  const userId = seen[0][0] ?? null
  return userId === null ? null : readUser(read, userId)
}

/** A user by id; null if there is no such user. */
export async function readUser(read: Reader, userId: string): Promise<User | null | 'unavailable'> {
  const shard = homeShard(userId)
  const seen = await read(shard, [userFact(shard, userId)])
  return seen === null ? 'unavailable' : userOfRow(userId, seen[0])
}
