/**
 * session - a session begins, is used, is confirmed, ends, on the shard of its account.
 *
 * Only members get a session. If the account requires a second factor and none was used in it, the session only allows
 * setting one up or using one, because a factor set up in another session does not count here. A session ended before
 * it has begun does not begin: ending a user's sessions also ends those in progress.
 *
 * Spec session.life, session.confirm, session.factor
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { SESSION_DAYS } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { actOps } from '../../state/dashboard/act.ts'
import { settingsFact, unpackMember } from '../../state/dashboard/member.ts'
import { memberSessionsKey, membersKey } from '../../state/dashboard/places.ts'
import {
  confirmedUntilMs,
  endedSessionOps,
  SESSION_FIELDS,
  type SessionRow,
  sessionEndMs,
  sessionFact,
  sessionOps,
} from '../../state/dashboard/session.ts'
import { apiKeyKey } from '../../state/keys.ts'
import { sessionIn } from '../authorization/proof.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { settingsIn } from './link.ts'

/** A session of a member. */
export interface MemberSession {
  readonly accountId: string
  readonly userId: string
  readonly sessionId: string
  /** SHA-256 of its token, hex. */
  readonly hash: string
}

export interface OpenSessionBody extends MemberSession {
  /** Whether its user has just entered a password or a factor. */
  readonly isConfirmed: boolean
  /** When it began, in ms: another account makes none longer. */
  readonly sinceMs: number
  /** Until when a factor used in it counts as recent, in ms; 0 if none. */
  readonly factorMs: number
}

export interface SessionReply {
  readonly kind: 'session'
  readonly session: SessionRow
}

export const beginSession: CommandType<OpenSessionBody, SessionReply | Refused> = {
  name: 'open-session',
  entities: () => [],
  counters: () => [],
  facts: ({ accountId, userId, hash }, _states, { shard }) => [
    { read: 'fields', key: membersKey(shard, accountId), fields: [userId] },
    sessionFact(shard, hash),
    settingsFact(shard, accountId),
    { read: 'hash', key: memberSessionsKey(shard, accountId, userId) },
  ],
  decide(body, _states, facts, context) {
    const { shard, nowMs } = context
    const { accountId, userId, sessionId, hash, isConfirmed, sinceMs, factorMs } = body
    const member = facts.field(membersKey(shard, accountId), userId)
    const isTaken = SESSION_FIELDS.some((field) => facts.field(apiKeyKey(shard, hash), field) !== null)
    if (member === null || isTaken) return refuse('unauthorized')
    const { level } = unpackMember(member)
    const confirmedMs = isConfirmed ? confirmedUntilMs(nowMs) : 0
    const needsFactor = settingsIn(facts, shard, accountId).requireSecondFactor && factorMs === 0
    const session = {
      accountId,
      sessionId,
      userId,
      level,
      sinceMs,
      seenMs: nowMs,
      confirmedMs,
      factorMs,
      needsFactor,
    }
    const known = [...facts.hash(memberSessionsKey(shard, accountId, userId)).keys()]
    const act = { accountId, userId, act: 'signIn', targets: { sessionId } }
    return {
      kind: 'done',
      reply: { kind: 'session', session },
      ops: [
        ...sessionOps(shard, hash, session),
        ...listOps(shard, { session, hash, known, nowMs }),
        ...actOps(context, act),
      ],
    }
  },
}

/** The writes that list a session with its member, and remove expired ones from the list. */
function listOps(
  shard: number,
  of: { session: SessionRow; hash: string; known: readonly string[]; nowMs: number },
): Op[] {
  const { session, hash, known, nowMs } = of
  const { accountId, userId, sessionId } = session
  const key = memberSessionsKey(shard, accountId, userId)
  const past = known.filter((one) => msOf(one) + SESSION_DAYS * DAY_MS <= nowMs)
  return [
    { key, write: 'HSET', args: [sessionId, hash] },
    ...(past.length === 0 ? [] : [{ key, write: 'HDEL' as const, args: past }]),
    { key, write: 'PEXPIREAT', args: [String(nowMs + SESSION_DAYS * DAY_MS)] },
  ]
}

export const endSession: CommandType<MemberSession, { readonly kind: 'ended' }> = {
  name: 'end-session',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ accountId, userId, sessionId, hash }, _states, _facts, { shard, nowMs }) {
    const index: Op = { key: memberSessionsKey(shard, accountId, userId), write: 'HDEL', args: [sessionId] }
    const signals = [{ topic: memberTopic(accountId, userId), text: sessionId }]
    return { kind: 'done', reply: { kind: 'ended' }, ops: [...endedSessionOps(shard, hash, nowMs), index], signals }
  },
}

export interface MarkSessionBody {
  readonly hash: string
  /** Whether its user has entered a password or a factor; otherwise it was only used. */
  readonly isConfirmed: boolean
  /** Whether the user has shown, or set up, a second factor. */
  readonly showsFactor?: boolean
}

export const markSession: CommandType<MarkSessionBody, SessionReply | Refused> = {
  name: 'mark-session',
  entities: () => [],
  counters: () => [],
  facts: ({ hash }, _states, { shard }) => [sessionFact(shard, hash)],
  decide({ hash, isConfirmed, showsFactor = false }, _states, facts, context) {
    const { shard, nowMs } = context
    const found = sessionIn(hash, { facts, context })
    if (found === null) return refuse('unauthorized')
    if ('kind' in found) return found
    const { accountId } = found
    const settings = settingsFact(shard, accountId)
    // One that waits for a factor looks again whether its account still takes one.
    if (found.needsFactor && !facts.has(settings)) return { kind: 'need', facts: [settings] }
    const isTaken = found.needsFactor && settingsIn(facts, shard, accountId).requireSecondFactor
    const confirmedMs = isConfirmed ? confirmedUntilMs(nowMs) : found.confirmedMs
    const factorMs = showsFactor ? confirmedUntilMs(nowMs) : found.factorMs
    const needsFactor = isTaken && factorMs === 0
    const session = { ...found, seenMs: nowMs, confirmedMs, factorMs, needsFactor }
    const key = apiKeyKey(shard, hash)
    const shown = { confirmed: String(confirmedMs), factor: String(factorMs) }
    const fields = { seen: String(nowMs), ...shown, needsFactor: needsFactor ? '1' : '' }
    const ops: Op[] = [
      { key, write: 'HSET', args: Object.entries(fields).flat() },
      { key, write: 'PEXPIREAT', args: [String(sessionEndMs(session))] },
    ]
    return { kind: 'done', reply: { kind: 'session', session }, ops }
  },
}

/** Topic for ended or changed sessions of a member. */
export function memberTopic(accountId: string, userId: string): string {
  return `member:${accountId}:${userId}`
}
