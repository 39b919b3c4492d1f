/**
 * user-walk - visits every user of this process's shards, and orders a check of those whose list differs from the
 * accounts
 *
 * Interrupted joins and removals are checked by themselves (`src/actors/dashboard/join.ts`). The walk finds other
 * differences: users without an account from before these steps existed, an abandoned check, a commit that a store has
 * lost. It reads and orders checks, but decides nothing.
 *
 * Spec member.index
 */

import { homeShard } from '../../cluster/id.ts'
import type { LookAtUsersBody } from '../actors/dashboard/user-look.ts'
import { giveOrder, type OrderDeps } from '../routes/answer.ts'
import { loginsKey, membersKey, userKey } from '../state/dashboard/places.ts'
import type { KeyAnswers, ReadKeys } from '../views/read-keys.ts'

/** Maximum users of one step, read as one page of a shard's addresses. */
const USERS_MAX = 200

export interface UserWalkDeps extends OrderDeps {
  readonly readKeys: ReadKeys
  /** The shards owned by this process. */
  readonly shards: () => readonly number[]
}

/**
 * Walks once. Returns the number of users to check. Users that could not be read or ordered are left for the next walk.
 */
export async function walkUsers(deps: UserWalkDeps): Promise<number> {
  let ordered = 0
  for (const shard of deps.shards()) {
    let cursor = '0'
    do {
      const page = await readPage(deps.readKeys, shard, cursor)
      if (page === null) break
      cursor = page.next
      ordered += await orderLooks(deps, shard, await findApart(deps.readKeys, shard, page.userIds))
    } while (cursor !== '0')
  }
  return ordered
}

/** Some users of a shard, from a cursor on; null when the store did not answer. */
async function readPage(readKeys: ReadKeys, shard: number, cursor: string) {
  const read = { shard, key: loginsKey(shard), args: [cursor, 'COUNT', USERS_MAX] }
  const [page] = (await readKeys('hscan', [read])) ?? []
  if (page === undefined) return null
  const [next, pairs] = page
  return { next, userIds: pairs.filter((_, at) => at % 2 === 1) }
}

/** Those whose list is empty, or has an account that does not know them. */
async function findApart(readKeys: ReadKeys, shard: number, userIds: readonly string[]): Promise<string[]> {
  const args = ['accounts']
  const lists = await readKeys(
    'hget',
    userIds.map((userId) => ({ shard, key: userKey(shard, userId), args })),
  )
  if (lists === null) return []
  const places = userIds.flatMap((userId, at) =>
    accountsOf(lists[at] ?? null).map((accountId) => ({ userId, accountId })),
  )
  const members = await readMembers(readKeys, places)
  if (members === null) return []
  const inOne = new Set(places.map(({ userId }) => userId))
  const unknown = new Set(places.filter((_, at) => members[at] === null).map(({ userId }) => userId))
  return userIds.filter((userId) => !inOne.has(userId) || unknown.has(userId))
}

function accountsOf(packed: string | null): readonly string[] {
  return JSON.parse(packed || '[]') as string[]
}

function readMembers(
  readKeys: ReadKeys,
  places: readonly { readonly userId: string; readonly accountId: string }[],
): Promise<readonly KeyAnswers['hget'][] | null> {
  return readKeys(
    'hget',
    places.map(({ userId, accountId }) => {
      const shard = homeShard(accountId)
      return { shard, key: membersKey(shard, accountId), args: [userId] }
    }),
  )
}

async function orderLooks(deps: UserWalkDeps, shard: number, userIds: readonly string[]): Promise<number> {
  if (userIds.length === 0) return 0
  const body: LookAtUsersBody = { userIds }
  const { answer } = await giveOrder(deps, shard, { name: 'look-at-users', body })
  return answer === undefined ? userIds.length : 0
}
