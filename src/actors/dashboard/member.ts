/**
 * member - orders of administrators about the members of their account: roles, removals, invitations.
 *
 * Another role is written into the member's sessions, and a removal ends them, in the same commit: it holds from its
 * answer on, in every process. The last administrator stays.
 *
 * Spec member.role, member.last, invitation.send
 */

import type { CommandType, Context, Facts, Need, Op, Refusal, Signal, States } from '../../../cluster/behaviour.ts'
import { INVITATIONS_MAX } from '../../../schemas/limits.ts'
import type { Level } from '../../../schemas/route.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { linkEndMs, linkOps } from '../../state/dashboard/link.ts'
import {
  invitationEndMs,
  invitationsFact,
  membersFact,
  packInvitation,
  packMember,
  type StoredInvitation,
  type StoredMember,
  unpackInvitation,
  unpackMember,
} from '../../state/dashboard/member.ts'
import { invitationsKey, memberSessionsKey, membersKey } from '../../state/dashboard/places.ts'
import { endedSessionOps, sessionEndMs, sessionFact } from '../../state/dashboard/session.ts'
import { apiKeyKey } from '../../state/keys.ts'
import { type Proof, proves, sessionIn } from '../authorization/proof.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { linkDue } from './link.ts'
import { memberTopic } from './session.ts'

export interface ChangeMemberBody extends Proof {
  readonly userId: string
  /** Null for a removed member. */
  readonly level: Level | null
  /** Deadline in ms (`join.ts`); absent without a previous step. */
  readonly untilMs?: number
}

export interface MemberReply {
  readonly kind: 'member'
  readonly member: StoredMember
}

export const changeMember: CommandType<ChangeMemberBody, MemberReply | Refused> = {
  name: 'change-member',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: ({ accountId, userId }, _states, { shard }) => [
    membersFact(shard, accountId),
    { read: 'hash', key: memberSessionsKey(shard, accountId, userId) },
  ],
  decide(body, states, facts, context) {
    const refused = refusePeople(body, states, { facts, context })
    if (refused !== null) return refused
    const { shard } = context
    const { accountId, userId, level, untilMs = Number.POSITIVE_INFINITY } = body
    if (context.nowMs >= untilMs) return refuse('unavailable')
    const members = facts.hash(membersKey(shard, accountId))
    const packed = members.get(userId)
    if (packed === undefined) return refuse('not_found')
    const before = unpackMember(packed)
    if (before.level === 'a' && level !== 'a' && countAdministrators(members) === 1) return refuse('last_administrator')
    const key = membersKey(shard, accountId)
    const member = { ...before, level: level ?? before.level }
    const op: Op =
      level === null
        ? { key, write: 'HDEL', args: [userId] }
        : { key, write: 'HSET', args: [userId, packMember(member)] }
    const sessions = facts.hash(memberSessionsKey(shard, accountId, userId))
    const writes = sessionWrites(body, sessions, { facts, context })
    if ('kind' in writes) return writes
    return {
      kind: 'done',
      reply: { kind: 'member', member },
      ops: [op, ...writes],
      signals: [...sessions.keys()].map((text): Signal => ({ topic: memberTopic(accountId, userId), text })),
    }
  },
}

/** The writes of a member's change into the member's sessions; expired ones are removed from the list. */
function sessionWrites(
  { accountId, userId, level }: ChangeMemberBody,
  sessions: ReadonlyMap<string, string>,
  turn: { facts: Facts; context: Context },
): Op[] | Need {
  if (sessions.size === 0) return []
  const { shard, nowMs } = turn.context
  const index = memberSessionsKey(shard, accountId, userId)
  if (level === null) {
    const ended = [...sessions.values()].flatMap((hash) => endedSessionOps(shard, hash, nowMs))
    return [...ended, { key: index, write: 'UNLINK', args: [] }]
  }
  const unread = [...sessions.values()].map((hash) => sessionFact(shard, hash)).filter((fact) => !turn.facts.has(fact))
  if (unread.length > 0) return { kind: 'need', facts: unread }
  return [...sessions].flatMap(([sessionId, hash]): Op[] => {
    const row = sessionIn(hash, turn)
    if (row === null || 'kind' in row) return [{ key: index, write: 'HDEL', args: [sessionId] }]
    const key = apiKeyKey(shard, hash)
    // The row may expire during the write, so its expiry is set again.
    return [
      { key, write: 'HSET', args: ['level', level] },
      { key, write: 'PEXPIREAT', args: [String(sessionEndMs(row))] },
    ]
  })
}

export interface InviteBody extends Proof {
  readonly address: string
  readonly level: Level
  /** The user with the address, if any. */
  readonly knownUserId: string | null
  readonly linkId: string
}

export interface InvitationReply {
  readonly kind: 'invitation'
  readonly invitationId: string
  readonly invitation: StoredInvitation
}

/** Invites, and mails the link. A second invitation of an address takes the place of the first. */
export const invite: CommandType<InviteBody, InvitationReply | Refused> = {
  name: 'invite',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: ({ accountId }, _states, { shard }) => [membersFact(shard, accountId), invitationsFact(shard, accountId)],
  decide(body, states, facts, context) {
    const refused = refusePeople(body, states, { facts, context })
    if (refused !== null) return refused
    const { shard, nowMs } = context
    const { accountId, address, level, knownUserId, linkId } = body
    if (knownUserId !== null && facts.hash(membersKey(shard, accountId)).has(knownUserId))
      return refuse('member_exists', { userId: knownUserId })
    const key = invitationsKey(shard, accountId)
    const known = [...facts.hash(key)].map(([id, text]) => [id, unpackInvitation(text)] as const)
    const gone = known.filter(([, one]) => one.address === address || invitationEndMs(one) <= nowMs).map(([id]) => id)
    if (known.length - gone.length >= INVITATIONS_MAX) return refuse('member_limit', { max: INVITATIONS_MAX })
    const invitationId = context.newId()
    const invitation = { address, level, createdAtMs: nowMs, sentAtMs: nowMs }
    const ops: Op[] = gone.length === 0 ? [] : [{ key, write: 'HDEL', args: gone }]
    ops.push({ key, write: 'HSET', args: [invitationId, packInvitation(invitation)] })
    const sent = invitationLinkOps(shard, { accountId, linkId, invitationId, invitation })
    const reply = { kind: 'invitation', invitationId, invitation } as const
    return { kind: 'done', reply, ops: [...ops, ...sent], due: [linkDue(linkId, nowMs)] }
  },
}

export interface InvitationOrder extends Proof {
  readonly invitationId: string
}

export const sendInvitation: CommandType<InvitationOrder & { readonly linkId: string }, InvitationReply | Refused> = {
  name: 'send-invitation',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: ({ accountId }, _states, { shard }) => [invitationsFact(shard, accountId)],
  decide(body, states, facts, context) {
    const found = findInvitation(body, states, { facts, context })
    if ('kind' in found) return found
    const { shard, nowMs } = context
    const { accountId, invitationId, linkId } = body
    const invitation = { ...found, sentAtMs: nowMs }
    const args = [invitationId, packInvitation(invitation)]
    const op: Op = { key: invitationsKey(shard, accountId), write: 'HSET', args }
    return {
      kind: 'done',
      reply: { kind: 'invitation', invitationId, invitation },
      ops: [op, ...invitationLinkOps(shard, { accountId, linkId, invitationId, invitation })],
      due: [linkDue(linkId, nowMs)],
    }
  },
}

export const withdrawInvitation: CommandType<InvitationOrder, { readonly kind: 'withdrawn' } | Refused> = {
  name: 'withdraw-invitation',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: () => [],
  facts: ({ accountId }, _states, { shard }) => [invitationsFact(shard, accountId)],
  decide(body, states, facts, context) {
    const found = findInvitation(body, states, { facts, context })
    if ('kind' in found) return found
    const key = invitationsKey(context.shard, body.accountId)
    return { kind: 'done', reply: { kind: 'withdrawn' }, ops: [{ key, write: 'HDEL', args: [body.invitationId] }] }
  },
}

function findInvitation(
  body: InvitationOrder,
  states: States,
  turn: { facts: Facts; context: Context },
): StoredInvitation | Refusal<Refused> | Need {
  const refused = refusePeople(body, states, turn)
  if (refused !== null) return refused
  const packed = turn.facts.hash(invitationsKey(turn.context.shard, body.accountId)).get(body.invitationId)
  return packed === undefined ? refuse('not_found') : unpackInvitation(packed)
}

/** The writes of an invitation's link. */
export function invitationLinkOps(
  shard: number,
  of: { accountId: string; linkId: string; invitationId: string; invitation: StoredInvitation },
): Op[] {
  const { accountId, linkId, invitationId, invitation } = of
  const { address, level, sentAtMs } = invitation
  return linkOps(shard, linkId, {
    purpose: 'invitation',
    ownerId: accountId,
    invitationId,
    address,
    level,
    round: 0,
    madeAtMs: sentAtMs,
    endsAtMs: linkEndMs('invitation', sentAtMs),
    operatorHash: null,
  })
}

/** Refuses orders without permission, and about a closed account; null if the order is allowed. */
export function refusePeople(
  order: Proof,
  states: States,
  turn: { facts: Facts; context: Context },
): Refusal<Refused> | Need | null {
  const held = proves(order, [], turn)
  if (typeof held !== 'boolean') return held
  const account = states.get<AccountState | null>(accountRef(order.accountId))
  if (!held || account === null) return refuse('unauthorized')
  return account.status === 'closed' ? refuse('account_not_active') : null
}

function countAdministrators(members: ReadonlyMap<string, string>): number {
  return [...members.values()].filter((packed) => unpackMember(packed).level === 'a').length
}
