/**
 * join - joining by a link, and leaving: the account decides, and the user's list is updated before and after
 *
 * The account is added to the list before it is asked and removed again if it refuses, so that a crash in between
 * leaves no member whose row is deleted for lack of an account. If other processes order the same in the meantime, the
 * list follows the final answer of the account. Interrupted steps are repaired: `src/actors/dashboard/join.ts`
 * describes their states.
 *
 * Spec member.index
 */

import { homeShard } from '../../cluster/id.ts'
import type {
  BeginJoinBody,
  BeginLeaveBody,
  JoinAccountBody,
  ListChanged,
  StepBegun,
} from '../actors/dashboard/join.ts'
import type { UseAccountLinkBody } from '../actors/dashboard/link.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { membersFact } from '../state/dashboard/member.ts'
import type { User } from '../state/dashboard/user.ts'
import { readUser } from '../views/dashboard/user.ts'
import type { DashboardDeps } from './deps.ts'

/** How often the list is read again if others change it too. */
const LEAVES_MAX = 5

/**
 * Puts an account onto a user's list, before it is asked. Returns the deadline of the order, or the refusal if the user
 * is deleted or in too many accounts, or no process answered.
 */
export async function listAccount(
  deps: DashboardDeps,
  { userId, accountId }: BeginJoinBody,
): Promise<StepBegun | Answer> {
  const order = { name: 'begin-join', body: { userId, accountId } }
  const { reply, answer, refused } = await giveOrder<StepBegun>(deps, homeShard(userId), order)
  // The user without an account was deleted between two reads: opening the link again asks for a name.
  return reply ?? (refused?.code === 'not_found' ? refusalReply('sign_in_failed') : answer)
}

/** Uses the link, after `listAccount`. Returns the refusal if it makes no member. */
export async function useLink(deps: DashboardDeps, body: UseAccountLinkBody): Promise<Answer | null> {
  const { answer } = await giveOrder(deps, homeShard(body.accountId), { name: 'use-account-link', body })
  return answer ?? null
}

/** Undoes `listAccount` if no member was made. Takes the answer and returns it. */
export async function undoJoin(
  deps: DashboardDeps,
  user: User,
  { accountId, answer }: { readonly accountId: string; readonly answer: Answer },
): Promise<Answer> {
  // If the outcome is unknown, the user may be a member, so the list is kept.
  if ('status' in answer) await leave(deps, user, accountId)
  return answer
}

/** Moves the account to the front of the list of its new member. Returns the refusal if it could not. */
export async function endJoin(deps: DashboardDeps, { userId, accountId }: BeginJoinBody): Promise<Answer | null> {
  const body: JoinAccountBody = { userId, accountId, isMember: true }
  const { answer } = await giveOrder<ListChanged>(deps, homeShard(userId), { name: 'join-account', body })
  return answer ?? null
}

/** Makes a user a member of an account by a link, which is used up. Returns the refusal if it does not. */
export async function joinByLink(deps: DashboardDeps, user: User, body: UseAccountLinkBody): Promise<Answer | null> {
  const begun = await listAccount(deps, body)
  if (!('kind' in begun)) return begun
  const unused = await useLink(deps, { ...body, untilMs: begun.untilMs })
  if (unused !== null) return undoJoin(deps, user, { accountId: body.accountId, answer: unused })
  return endJoin(deps, body)
}

/**
 * Marks on a user's list that the user is about to leave an account, and ends the operator's links for the user, before
 * the account is asked. Returns the deadline; null if the account is not on the list, or no process answered.
 */
export async function announceLeave(
  deps: DashboardDeps,
  { userId, address }: Pick<User, 'userId' | 'address'>,
  accountId: string,
): Promise<StepBegun | null> {
  const body: BeginLeaveBody = { userId, accountId, hmac: deps.secrets.loginHmac(address) }
  const { reply } = await giveOrder<StepBegun>(deps, homeShard(userId), { name: 'begin-leave', body })
  return reply ?? null
}

/**
 * Removes an account from a user's list, unless the user is a member there. It is read again if the user has joined in
 * the meantime. Returns the refusal if it could not.
 */
export async function leave(
  deps: DashboardDeps,
  { userId }: Pick<User, 'userId'>,
  accountId: string,
): Promise<Answer | null> {
  const shard = homeShard(accountId)
  for (let turn = 0; turn < LEAVES_MAX; turn += 1) {
    // The count is read first, so that a later join changes the count, and an earlier one the account.
    const user = await readUser(deps.read, userId)
    if (user === 'unavailable') return refusalReply('unavailable')
    if (user === null) return null
    const seen = await deps.read(shard, [membersFact(shard, accountId)])
    if (seen === null) return refusalReply('unavailable')
    if (seen[0].has(userId)) return null
    const { joins } = user
    const body: JoinAccountBody = { userId, accountId, isMember: false, joins }
    const left = await giveOrder<ListChanged>(deps, homeShard(userId), { name: 'join-account', body })
    if (left.refused?.code === 'not_found') return null
    if (left.answer !== undefined) return left.answer
    if (left.reply.isDone) return returnIfMember(deps, { userId, accountId })
  }
  return refusalReply('unavailable')
}

/**
 * A user who joined between the reads of a leave and its order is restored here as well as by their own request, whose
 * process may have died.
 */
async function returnIfMember(deps: DashboardDeps, { userId, accountId }: BeginJoinBody): Promise<Answer | null> {
  const shard = homeShard(accountId)
  const seen = await deps.read(shard, [membersFact(shard, accountId)])
  if (seen === null) return refusalReply('unavailable')
  return seen[0].has(userId) ? endJoin(deps, { userId, accountId }) : null
}
