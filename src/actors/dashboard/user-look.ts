/**
 * user-look - checks a user's accounts for membership, updates the list, and deletes users without an account.
 *
 * It comes half an hour after the last step on an account (`join.ts`), or by order of the nightly walk over users
 * (`src/service/user-walk.ts`): for users from before these steps existed, and for other inconsistencies. An account
 * with a step that may still be in progress is skipped and checked again later.
 *
 * States of the item: waiting -> claimed, with the accounts to ask -> asked, on their shards -> the list follows their
 * answers. A step in the meantime shows in the count: then nothing is settled and the check starts again. A check that
 * dies in between is repeated; one that ends late or twice changes nothing.
 *
 * Spec member.index
 */

import type { CommandType, Op, OutcomeBody, PrepareBody, TimerBody } from '../../../cluster/behaviour.ts'
import { idOfShort } from '../../../cluster/id.ts'
import { MINUTE_MS } from '../../state/calendar.ts'
import { loginsKey, userKey, userSessionsKey } from '../../state/dashboard/places.ts'
import { loginFact, type User, userFact } from '../../state/dashboard/user.ts'
import { isStepUnderWay, userListOps, userLookDue, userLookDues } from '../../state/dashboard/user-list.ts'
import { userIn } from './user.ts'

/** Delay until an account that did not answer is asked again. */
const AGAIN_MS = MINUTE_MS
/** The timer that deleted users before these checks existed. */
export const FORGET_USER_TIMER = 'forget-user'

/** The question of a check. */
export interface UserLookJob extends Pick<User, 'userId' | 'address' | 'joins'> {
  /** For each account whether the user is a member. */
  readonly accounts: readonly string[]
}

/** The answers of accounts. */
export interface UserFound extends Pick<UserLookJob, 'joins' | 'accounts'> {
  /** HMAC of the address. */
  readonly hmac: string
  /** Accounts that the user is a member of. */
  readonly memberOf: readonly string[]
}

export interface UserLookOutcome {
  /** Null if an account did not answer. */
  readonly found: UserFound | null
}

export const prepareUserLook: CommandType<PrepareBody, UserLookJob | null> = {
  name: 'prepare user look',
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [userFact(shard, idOfShort(item))],
  decide({ item }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, idOfShort(item))
    if (user === null) return { kind: 'done', reply: null }
    const { userId, address, joins, unsure } = user
    const known = [...new Set([...user.accounts, ...Object.keys(unsure)])]
    const accounts = known.filter((one) => !isStepUnderWay(unsure[one], nowMs))
    return { kind: 'done', reply: { userId, address, joins, accounts } }
  },
}

export const userLookOutcome: CommandType<OutcomeBody<UserLookOutcome>, null> = {
  name: 'user look outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item, outcome }, _states, { shard }) => [
    userFact(shard, idOfShort(item)),
    ...(outcome?.found ? [loginFact(shard, outcome.found.hmac)] : []),
  ],
  decide({ item, current, outcome }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, idOfShort(item))
    if (!current || outcome === null || user === null) return { kind: 'done', reply: null }
    const { found } = outcome
    if (found === null || found.joins !== user.joins)
      return { kind: 'done', reply: null, due: [userLookDue(user.userId, nowMs + AGAIN_MS)] }
    const settled = settle(user, found)
    const isIn = settled.accounts.length > 0 || Object.keys(settled.unsure).length > 0
    // A user created a moment ago is about to make the first step.
    if (isIn || isStepUnderWay(user.createdAtMs, nowMs))
      return {
        kind: 'done',
        reply: null,
        ops: userListOps(shard, user.userId, settled),
        due: userLookDues(settled, nowMs),
      }
    const isHis = facts.field(loginsKey(shard), found.hmac) === user.userId
    return { kind: 'done', reply: null, ops: forgetOps(shard, user.userId, isHis ? found.hmac : null) }
  },
}

/** The list by the answers of the accounts; it keeps its order, and the checked ones are certain. */
function settle(user: User, { accounts, memberOf }: UserFound): User {
  const isKept = (one: string) => memberOf.includes(one) || !accounts.includes(one)
  const added = memberOf.filter((one) => !user.accounts.includes(one))
  const unsure = Object.entries(user.unsure).filter(([one]) => !accounts.includes(one))
  return { ...user, accounts: [...user.accounts.filter(isKept), ...added], unsure: Object.fromEntries(unsure) }
}

/** Removes a user: the row, the list of sessions, and the entry of the address. */
function forgetOps(shard: number, userId: string, hmac: string | null): Op[] {
  return [
    ...(hmac === null ? [] : [{ key: loginsKey(shard), write: 'HDEL' as const, args: [hmac] }]),
    { key: userKey(shard, userId), write: 'UNLINK', args: [] },
    { key: userSessionsKey(shard, userId), write: 'UNLINK', args: [] },
  ]
}

export interface LookAtUsersBody {
  readonly userIds: readonly string[]
}

/** Has users looked at now. */
export const lookAtUsers: CommandType<LookAtUsersBody, { readonly kind: 'ordered' }> = {
  name: 'look-at-users',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ userIds }, _states, _facts, { nowMs }) {
    return { kind: 'done', reply: { kind: 'ordered' }, due: userIds.map((userId) => userLookDue(userId, nowMs)) }
  },
}

/** Item: `forget-user:<user>:<HMAC of the address>`. */
export const forgetUser: CommandType<TimerBody, null> = {
  name: 'forget-user',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ item }, _states, _facts, { nowMs }) {
    return { kind: 'done', reply: null, due: [userLookDue(item.split(':')[1] ?? '', nowMs)] }
  },
}
