/**
 * join - somebody becomes a member of an account or is one no more, on the shard of his address: a step of two shards.
 *
 * The account's shard holds who its members are, and decides. The user's shard holds his row with the list of his
 * accounts: an index, from which follow where he may sign in and whether he is forgotten. Nothing is written on both at
 * once, so the list says which of its accounts it is unsure of, and each of them is asked again (`user-look.ts`).
 *
 * Steps, each a commit of one shard; U is the user's, A the account's:
 *
 * | Step | Writes | A process that dies after it leaves | The look then |
 * | --- | --- | --- | --- |
 * | `add-user` (U) | row, address | a user without an account | forgets him |
 * | `begin-join` (U) | account on the list, unsure | an account that does not know him | takes it off |
 * | `use-account-link` (A) | member, link used | a member, who finds his account | is sure of it |
 * | `join-account` (U) | account in front, unsure | the same | is sure of it |
 * | `begin-leave` (U) | unsure; the operator's links for him end | a member, without those links | is sure of it |
 * | `change-member` (A) | no member, sessions ended | an account that knows him no more | takes it off |
 * | `join-account` (U) | account off the list, unsure | the same, or a user without one | forgets him |
 *
 * Guarantees:
 * - A member is on his user's list: it is put there before the account says yes. Where a removal crosses his joining,
 *   and the process of the latter dies, it may be missing until the look, and is unsure then: nobody is forgotten of
 *   whom a step may be under way.
 * - The account does what it is asked within five minutes of the step before (`untilMs`, held against its own clock in
 *   the turn), or not at all. Half an hour after the last step nothing is on its way any more, so what the account says
 *   then stays true until another step, which the count shows. The list follows it: whatever was left half done has
 *   ended in one of the two whole states, a member who is on the list or neither.
 * - Who stands on no list and in no step is forgotten by that look: row, address, sessions. Who becomes a member in
 *   that time stays, with what he had; a step that begins after he is gone is refused.
 * - A list is never cut: who is in as many accounts as may be is refused another one before its link is used.
 * - Where the user's shard is away, somebody is removed without a step before it: that he is out holds. What is left
 *   is asked for again by whoever removed him, and seen by the walk of the next night (`src/service/user-walk.ts`).
 *
 * A removal ends the operator's links for its member first: afterwards one of them could bring him back in between.
 * Where the account then says no, they have ended all the same.
 *
 * Spec member.index, member.accounts, session.factor, link.operator
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { USER_ACCOUNTS_MAX } from '../../../schemas/limits.ts'
import { usedLinksOps } from '../../state/dashboard/link.ts'
import { userFact } from '../../state/dashboard/user.ts'
import { afterStep, STEP_MS, userListOps, userLookDues } from '../../state/dashboard/user-list.ts'
import { type Refused, refuse } from '../order/refusal.ts'
import { userIn } from './user.ts'

export interface BeginJoinBody {
  readonly userId: string
  readonly accountId: string
}

export interface StepBegun {
  readonly kind: 'begun'
  /** Until when the account does what it is asked next, ms. */
  readonly untilMs: number
}

/** Comes before the account is asked, so that no member is unknown to his user. Refuses a user who is gone. */
export const beginJoin: CommandType<BeginJoinBody, StepBegun | Refused> = {
  name: 'begin-join',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId)],
  decide({ userId, accountId }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    const isListed = user.accounts.includes(accountId)
    if (!isListed && user.accounts.length >= USER_ACCOUNTS_MAX)
      return refuse('account_limit', { max: USER_ACCOUNTS_MAX })
    const list = afterStep(user, accountId, {
      accounts: isListed ? user.accounts : [...user.accounts, accountId],
      nowMs,
    })
    return {
      kind: 'done',
      reply: { kind: 'begun', untilMs: nowMs + STEP_MS },
      ops: userListOps(shard, userId, list),
      due: userLookDues({ ...user, ...list }, nowMs),
    }
  },
}

export interface BeginLeaveBody extends BeginJoinBody {
  /** Of his address. */
  readonly hmac: string
}

/** Comes before the account is asked, for who is on its user's list; of anybody else nothing is touched. */
export const beginLeave: CommandType<BeginLeaveBody, StepBegun | Refused> = {
  name: 'begin-leave',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId)],
  decide({ userId, accountId, hmac }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, userId)
    if (user === null || !user.accounts.includes(accountId)) return refuse('not_found')
    const list = afterStep(user, accountId, { accounts: user.accounts, nowMs })
    return {
      kind: 'done',
      reply: { kind: 'begun', untilMs: nowMs + STEP_MS },
      ops: [...userListOps(shard, userId, list), ...usedLinksOps(shard, hmac, nowMs)],
      due: userLookDues({ ...user, ...list }, nowMs),
    }
  },
}

export interface JoinAccountBody {
  readonly userId: string
  readonly accountId: string
  readonly isMember: boolean
  /** The count when it was read that he is no member; where it is another one, nothing happens. */
  readonly joins?: number
}

export interface ListChanged {
  readonly kind: 'joined'
  /** False: another step was taken meanwhile, and the list is as it was. */
  readonly isDone: boolean
}

/** The last joined account stands first. */
export const joinAccount: CommandType<JoinAccountBody, ListChanged | Refused> = {
  name: 'join-account',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId)],
  decide({ userId, accountId, isMember, joins }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    if (joins !== undefined && joins !== user.joins) return { kind: 'done', reply: { kind: 'joined', isDone: false } }
    const others = user.accounts.filter((one) => one !== accountId)
    const list = afterStep(user, accountId, { accounts: isMember ? [accountId, ...others] : others, nowMs })
    return {
      kind: 'done',
      reply: { kind: 'joined', isDone: true },
      ops: userListOps(shard, userId, list),
      due: userLookDues({ ...user, ...list }, nowMs),
    }
  },
}
