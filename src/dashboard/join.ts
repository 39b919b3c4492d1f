/**
 * join - somebody becomes a member by a link, or is one no more: the account decides, his own list stands around it
 *
 * The account comes onto the list before it is asked and leaves it again where it says no, so that a crash in between
 * leaves no member whose row goes for want of an account. Where others order the same of him meanwhile, the list
 * follows what the account says at the end. What a process that dies leaves half done ends by itself: its states are
 * told in `src/actors/dashboard/join.ts`.
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
import { type Answer, refuse } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { membersFact } from '../state/dashboard/member.ts'
import type { User } from '../state/dashboard/user.ts'
import { readUser } from '../views/dashboard/user.ts'
import type { DashboardDeps } from './deps.ts'

/** How often the list is read anew where others order of it too. */
const LEAVES_MAX = 5

/**
 * Puts an account onto a user's list, before it is asked. Out: until when it may be; what is answered where he is gone,
 * is in too many, or nobody could.
 */
export async function listAccount(
  deps: DashboardDeps,
  { userId, accountId }: BeginJoinBody,
): Promise<StepBegun | Answer> {
  const order = { name: 'begin-join', body: { userId, accountId } }
  const { reply, answer, refused } = await giveOrder<StepBegun>(deps, homeShard(userId), order)
  // His time without an account was over between two reads: whoever opens the link anew is asked for a name.
  return reply ?? (refused?.code === 'not_found' ? refuse('sign_in_failed') : answer)
}

/** Uses the link, after `listAccount`. Out: what is answered where it makes nobody a member. */
export async function useLink(deps: DashboardDeps, body: UseAccountLinkBody): Promise<Answer | null> {
  const { answer } = await giveOrder(deps, homeShard(body.accountId), { name: 'use-account-link', body })
  return answer ?? null
}

/** Takes back `listAccount` where nobody became a member. In: what is answered. Out: the same. */
export async function undoJoin(
  deps: DashboardDeps,
  user: User,
  { accountId, answer }: { readonly accountId: string; readonly answer: Answer },
): Promise<Answer> {
  // Where nobody can tell he may be a member: the list stays. One that stays for want of an answer names no member.
  if ('status' in answer) await leave(deps, user, accountId)
  return answer
}

/** Puts the account in front of the list of its new member. Out: what is answered where it could not. */
export async function endJoin(deps: DashboardDeps, { userId, accountId }: BeginJoinBody): Promise<Answer | null> {
  const body: JoinAccountBody = { userId, accountId, isMember: true }
  const { answer } = await giveOrder<ListChanged>(deps, homeShard(userId), { name: 'join-account', body })
  return answer ?? null
}

/** Makes a user a member of an account by a link, which is used with it. Out: what is answered where it does not. */
export async function joinByLink(deps: DashboardDeps, user: User, body: UseAccountLinkBody): Promise<Answer | null> {
  const begun = await listAccount(deps, body)
  if (!('kind' in begun)) return begun
  const unused = await useLink(deps, { ...body, untilMs: begun.untilMs })
  if (unused !== null) return undoJoin(deps, user, { accountId: body.accountId, answer: unused })
  return endJoin(deps, body)
}

/**
 * Says on a user's list that he is about to leave an account, and ends the operator's links for him, before the account
 * is asked. Out: until when it may be; null where it is not on his list, or nobody could.
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
 * Takes an account off a user's list, unless he is a member there. What was read of it is read again where somebody has
 * joined meanwhile. Out: what is answered where it could not.
 */
export async function leave(
  deps: DashboardDeps,
  { userId }: Pick<User, 'userId'>,
  accountId: string,
): Promise<Answer | null> {
  const shard = homeShard(accountId)
  for (let turn = 0; turn < LEAVES_MAX; turn += 1) {
    // The count comes first: what joins after it is seen in the count, what joined before it in the account.
    const user = await readUser(deps.read, userId)
    if (user === 'unavailable') return refuse('unavailable')
    if (user === null) return null
    const seen = await deps.read(shard, [membersFact(shard, accountId)])
    if (seen === null) return refuse('unavailable')
    if (seen[0].has(userId)) return null
    const { joins } = user
    const body: JoinAccountBody = { userId, accountId, isMember: false, joins }
    const left = await giveOrder<ListChanged>(deps, homeShard(userId), { name: 'join-account', body })
    if (left.refused?.code === 'not_found') return null
    if (left.answer !== undefined) return left.answer
    if (left.reply.isDone) return returnIfMember(deps, { userId, accountId })
  }
  return refuse('unavailable')
}

/**
 * Who joined between the reads of a leave and its order is put back here as well as by his own request: that may have
 * ended with its process.
 */
async function returnIfMember(deps: DashboardDeps, { userId, accountId }: BeginJoinBody): Promise<Answer | null> {
  const shard = homeShard(accountId)
  const seen = await deps.read(shard, [membersFact(shard, accountId)])
  if (seen === null) return refuse('unavailable')
  return seen[0].has(userId) ? endJoin(deps, { userId, accountId }) : null
}
