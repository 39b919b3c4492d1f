/**
 * join - the index of a user's accounts follows what the accounts decide, and who is out of all of them is forgotten.
 *
 * States: an account comes onto the list before it takes its user in (`begin-join`) and is put in front after it has
 * (`join-account`); it leaves after he is no member there any more. Each step counts, so who leaves for a reason that
 * he has read says how far the count was then: where somebody joins meanwhile, nothing happens.
 *
 * Guarantees: a member is on his user's list, wherever the request that made him one ended. A user without an account
 * loses his factors and his list of sessions at once, and all of his row an hour later where he still has none: a
 * request that makes him a member lasts no such time, and has put the account onto the list before it asked it.
 *
 * Timer: `forget-user:<user>:<HMAC of the address>`.
 *
 * Spec member.index, session.factor
 */

import type { CommandType, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { USER_ACCOUNTS_MAX } from '../../../schemas/limits.ts'
import { loginsKey, userKey, userSessionsKey } from '../../state/dashboard/places.ts'
import { fieldsOfUser, loginFact, NO_FACTORS, userFact } from '../../state/dashboard/user.ts'
import { type Refused, refuse } from '../order/refusal.ts'
import { forgetUserDue, type UserLogin, userIn } from './user.ts'

export interface BeginJoinBody {
  readonly userId: string
  readonly accountId: string
}

export interface JoinBegun {
  readonly kind: 'begun'
  /** The count after it. */
  readonly joins: number
}

/** Comes before the account is asked, so that no member is unknown to his user. Refuses a user who is gone. */
export const beginJoin: CommandType<BeginJoinBody, JoinBegun | Refused> = {
  name: 'begin-join',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId)],
  decide({ userId, accountId }, _states, facts, { shard }) {
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    const joins = user.joins + 1
    // The list is cut to its length once the account has said yes: one that says no pushes nothing off.
    const accounts = user.accounts.includes(accountId) ? user.accounts : [...user.accounts, accountId]
    const args = fieldsOfUser({ accounts, joins })
    return {
      kind: 'done',
      reply: { kind: 'begun', joins },
      ops: [{ key: userKey(shard, userId), write: 'HSET', args }],
    }
  },
}

export interface JoinAccountBody {
  readonly userId: string
  readonly accountId: string
  readonly isMember: boolean
  /** The count when it was read that he is no member; where it is another one, nothing happens. */
  readonly joins?: number
  /** Who leaves: HMAC of his address. */
  readonly hmac?: string
}

export interface ListChanged {
  readonly kind: 'joined'
  /** False: somebody joined meanwhile, and the list is as it was. */
  readonly isDone: boolean
}

/** The last joined account stands first. */
export const joinAccount: CommandType<JoinAccountBody, ListChanged | Refused> = {
  name: 'join-account',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId)],
  decide({ userId, accountId, isMember, joins, hmac }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    if (joins !== undefined && joins !== user.joins) return { kind: 'done', reply: { kind: 'joined', isDone: false } }
    const others = user.accounts.filter((one) => one !== accountId)
    const accounts = isMember ? [accountId, ...others].slice(0, USER_ACCOUNTS_MAX) : others
    const isOut = accounts.length === 0
    const counted = isMember ? { joins: user.joins + 1 } : {}
    const args = fieldsOfUser({ accounts, ...counted, ...(isOut && NO_FACTORS) })
    const ops: Op[] = [{ key: userKey(shard, userId), write: 'HSET', args }]
    if (isOut) ops.push({ key: userSessionsKey(shard, userId), write: 'UNLINK', args: [] })
    const due = isOut && hmac !== undefined ? [forgetUserDue({ userId, hmac }, nowMs)] : []
    return { kind: 'done', reply: { kind: 'joined', isDone: true }, ops, due }
  },
}

/** Removes who still has none: his row, his list of sessions, and that his address is his. */
export const forgetUser: CommandType<TimerBody, null> = {
  name: 'forget-user',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => {
    const { userId, hmac } = parseItem(item)
    return [userFact(shard, userId), loginFact(shard, hmac)]
  },
  decide({ item }, _states, facts, { shard }) {
    const { userId, hmac } = parseItem(item)
    const user = userIn(facts, shard, userId)
    if (user === null || user.accounts.length > 0) return { kind: 'done', reply: null }
    const logins = loginsKey(shard)
    const isHis = facts.field(logins, hmac) === userId
    return {
      kind: 'done',
      reply: null,
      ops: [
        ...(isHis ? [{ key: logins, write: 'HDEL' as const, args: [hmac] }] : []),
        { key: userKey(shard, userId), write: 'UNLINK', args: [] },
        { key: userSessionsKey(shard, userId), write: 'UNLINK', args: [] },
      ],
    }
  },
}

function parseItem(item: string): UserLogin {
  const [, userId = '', hmac = ''] = item.split(':')
  return { userId, hmac }
}
