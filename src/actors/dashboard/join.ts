/**
 * join - joining and leaving an account, on the shard of the user's address, as one of the steps on two shards.
 *
 * The account's shard has its members, and decides. The user's shard has the user's row with the list of accounts, an
 * index that decides where the user may sign in and whether the user is deleted. The two are never written together,
 * so the list marks uncertain accounts, and each is checked again (`user-look.ts`).
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
 * - A member's account is on the user's list: it is added before the account accepts. If a removal and a join overlap,
 *   and the process of the join dies, it may be missing until the check, and is marked uncertain, because no user is
 *   deleted while a step may be in progress.
 * - The account executes an order within five minutes of the previous step (`untilMs`, compared with its own clock in
 *   the turn), or not at all. Half an hour after the last step none is in progress, so the account's answer is valid
 *   until another step, which changes the count. The list follows the answer, and every interrupted step has ended in
 *   one of two consistent states: the user is a member and on the list, or neither.
 * - That check deletes users without an account or a step: row, address, sessions. A user who becomes a member in that
 *   time is kept with all data; a step that begins after the deletion is refused.
 * - A list is never truncated, because a user with the maximum number of accounts is refused before the link is used.
 * - If the user's shard is unreachable, a member is removed without the previous step, and the removal is valid. The
 *   administrator's next attempt, or the walk of the next night, completes it (`src/service/user-walk.ts`).
 *
 * A removal first ends the operator's links for its member, because one of them could otherwise bring the member back
 * in between. They end even if the account then refuses.
 *
 * Spec member.index, member.accounts, session.factor, link.operator
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { USER_ACCOUNTS_MAX } from '../../../schemas/limits.ts'
import { usedLinksOps } from '../../state/dashboard/link.ts'
import { userFact } from '../../state/dashboard/user.ts'
import { afterStep, STEP_MS, userListOps, userLookDues } from '../../state/dashboard/user-list.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { userIn } from './user.ts'

export interface BeginJoinBody {
  readonly userId: string
  readonly accountId: string
}

export interface StepBegun {
  readonly kind: 'begun'
  /** Until when the account executes the next step, ms. */
  readonly untilMs: number
}

/**
 * Runs before the account is asked, so that a member's account is always on the user's list. Refuses a deleted user.
 */
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
  /** HMAC of the user's address. */
  readonly hmac: string
}

/** The step before the account is asked, for a user with the account on the list; for others it changes nothing. */
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
  /** The count when the user was read as no member; if it differs, nothing happens. */
  readonly joins?: number
}

export interface ListChanged {
  readonly kind: 'joined'
  /** False if another step was taken in the meantime, and the list is unchanged. */
  readonly isDone: boolean
}

/** The account joined last comes first. */
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
