/**
 * user-list - the accounts on a user's list, the uncertain ones, and when they are checked.
 *
 * The account decides its members; the list follows (in the steps of `src/actors/dashboard/join.ts`). Each step records
 * its account in `unsure`, and schedules a check of the user (`user-look.ts` there).
 *
 * Item: `<user short>` of the lane `users`, one of a user
 *
 * Spec member.index
 */

import type { Due, Op } from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { MINUTE_MS } from '../calendar.ts'
import { USERS_LANE, userKey, userSessionsKey } from './places.ts'
import { fieldsOfUser, NO_FACTORS, type User } from './user.ts'

/**
 * An account executes a step only within this time after the previous one, so that a process that was frozen in
 * between cannot change anything later.
 */
export const STEP_MS = 5 * MINUTE_MS
/** Delay after the last step of an account until it is asked again. No order about it can be committed that late. */
export const LOOK_AFTER_MS = 30 * MINUTE_MS

export type UserList = Pick<User, 'accounts' | 'unsure' | 'joins'>

/** The list after a step on one of its accounts. */
export function afterStep(before: UserList, accountId: string, to: Pick<User, 'accounts'> & { nowMs: number }) {
  return {
    accounts: to.accounts,
    unsure: { ...before.unsure, [accountId]: to.nowMs },
    joins: before.joins + 1,
  } satisfies UserList
}

/** The writes of a list; a user without an account keeps no second factor and no list of sessions. */
export function userListOps(shard: number, userId: string, list: UserList): Op[] {
  const isOut = list.accounts.length === 0
  const args = fieldsOfUser({ ...list, ...(isOut && NO_FACTORS) })
  const row: Op = { key: userKey(shard, userId), write: 'HSET', args }
  return isOut ? [row, { key: userSessionsKey(shard, userId), write: 'UNLINK', args: [] }] : [row]
}

/** Whether an account may still be executing a step before this one. */
export function isStepUnderWay(sinceMs: number | undefined, nowMs: number): boolean {
  return sinceMs !== undefined && sinceMs + LOOK_AFTER_MS > nowMs
}

/** When a user is checked next; never if the list is certain and not empty. A new user has made no step yet. */
export function userLookDues(
  { userId, createdAtMs, accounts, unsure }: Pick<User, 'userId' | 'createdAtMs' | 'accounts' | 'unsure'>,
  nowMs: number,
): Due[] {
  const since = Object.values(unsure)
  if (since.length === 0 && accounts.length > 0) return []
  const firstMs = since.length === 0 ? createdAtMs : Math.min(...since)
  return [userLookDue(userId, Math.max(nowMs, firstMs + LOOK_AFTER_MS))]
}

/** The item that checks a user. */
export function userLookDue(userId: string, atMs: number): Due {
  return { lane: USERS_LANE, item: shortId(userId), atMs }
}
