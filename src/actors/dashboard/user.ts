/**
 * user - users are made and changed, and their sessions are listed, on the shard of their address.
 *
 * A change, and a new session, may name the values they are based on: if these have changed in the meantime, nothing
 * happens. No session begins without a second factor if its user has one. An ended session stays on its user's list
 * until its row has ended, so that no live one is dropped. The device of a new session is listed with it; a change of
 * password ends all devices.
 *
 * Spec session.password, session.list
 */

import type { CommandType, Facts, Op } from '../../../cluster/behaviour.ts'
import { SESSION_DAYS, USER_DEVICES_MAX, USER_SESSIONS_MAX } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { loginsKey, userKey, userSessionsKey } from '../../state/dashboard/places.ts'
import {
  fieldsOfUser,
  hasFactor,
  loginFact,
  type NamedSession,
  namedSessions,
  packSessionPlace,
  USER_FIELDS,
  type User,
  userFact,
  userOfRow,
  userSessionsFact,
} from '../../state/dashboard/user.ts'
import { userLookDues } from '../../state/dashboard/user-list.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { type UserNotice, userNoticeDues } from './user-notice.ts'

export interface AddUserBody {
  /** HMAC of the address. */
  readonly hmac: string
  readonly address: string
  readonly name: string
  readonly password: string | null
}

export interface UserReply {
  readonly kind: 'user'
  readonly userId: string
  /** False: there was one already, and it stays as it is. */
  readonly isNew: boolean
}

export const addUser: CommandType<AddUserBody, UserReply> = {
  name: 'add-user',
  entities: () => [],
  counters: () => [],
  facts: ({ hmac }, _states, { shard }) => [loginFact(shard, hmac)],
  decide({ hmac, address, name, password }, _states, facts, context) {
    const { shard, nowMs } = context
    const known = facts.field(loginsKey(shard), hmac)
    if (known !== null) return { kind: 'done', reply: { kind: 'user', userId: known, isNew: false } }
    const userId = context.newId()
    const list = { accounts: [], unsure: {}, joins: 0 }
    const made = { address, name, password, createdAtMs: nowMs, linkRound: 0, ...list }
    return {
      kind: 'done',
      reply: { kind: 'user', userId, isNew: true },
      ops: [
        { key: loginsKey(shard), write: 'HSET', args: [hmac, userId] },
        { key: userKey(shard, userId), write: 'HSET', args: fieldsOfUser(made) },
      ],
      due: userLookDues({ userId, createdAtMs: nowMs, ...list }, nowMs),
    }
  },
}

export interface ChangeUserBody {
  readonly userId: string
  readonly changes: Partial<Omit<User, 'userId'>>
  /** The values that the change is based on. */
  readonly expects?: Partial<Omit<User, 'userId'>>
  /** Ends all sessions but this one (null: all); absent: none. */
  readonly endsAllBut?: string | null
  /** The notice for a new password; by default, that it was changed. */
  readonly tells?: UserNotice
}

export interface UserChanged {
  readonly kind: 'changed'
  /** Sessions that end with the change: first their rows are ended, then their list entries are removed. */
  readonly ended: readonly NamedSession[]
}

export const changeUser: CommandType<ChangeUserBody, UserChanged | Refused> = {
  name: 'change-user',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId), userSessionsFact(shard, userId)],
  decide({ userId, changes, expects = {}, endsAllBut, tells = 'password' }, _states, facts, { shard, nowMs }) {
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    if (!isAsExpected(user, expects)) return refuse('sign_in_failed')
    const ended =
      endsAllBut === undefined
        ? []
        : sessionsOf(facts, shard, userId).filter(({ sessionId }) => sessionId !== endsAllBut)
    const fields = fieldsOfUser({ ...changes, ...(changes.password !== undefined && { devices: [] }) })
    const ops: Op[] = fields.length === 0 ? [] : [{ key: userKey(shard, userId), write: 'HSET', args: fields }]
    const losesFactors = hasFactor(user) && !hasFactor({ ...user, ...changes })
    const what = tells === 'operator-link' && losesFactors ? 'operator-link-factors' : tells
    const due = changes.password === undefined ? [] : userNoticeDues(what, userId, nowMs)
    return { kind: 'done', reply: { kind: 'changed', ended }, ops, due }
  },
}

export interface IndexSessionBody {
  readonly userId: string
  readonly accountId: string
  readonly hash: string
  readonly userAgent: string
  /** When the session that this one takes the place of began, in ms; null: it is the first. */
  readonly sinceMs: number | null
  /** The password that the user had entered, because a changed one must not open a session. */
  readonly expects: Pick<User, 'password'>
  /** Whether a second factor was shown too. */
  readonly showsFactor: boolean
  /** The device that signs in; absent if unknown. */
  readonly deviceId?: string
}

export interface SessionIndexed {
  readonly kind: 'indexed'
  readonly sessionId: string
  /** When it began, in ms. */
  readonly sinceMs: number
  /** The oldest ones, if there would be too many: first their rows are ended, then their list entries are removed. */
  readonly ended: readonly NamedSession[]
}

/** Comes before the session itself, so that no session is unknown to its user. */
export const indexSession: CommandType<IndexSessionBody, SessionIndexed | Refused> = {
  name: 'index-session',
  entities: () => [],
  counters: () => [],
  facts: ({ userId }, _states, { shard }) => [userFact(shard, userId), userSessionsFact(shard, userId)],
  decide(body, _states, facts, context) {
    const { userId, accountId, hash, userAgent, sinceMs, expects, showsFactor, deviceId } = body
    const { shard, nowMs } = context
    const user = userIn(facts, shard, userId)
    if (user === null) return refuse('not_found')
    if (!isAsExpected(user, expects) || (hasFactor(user) && !showsFactor)) return refuse('sign_in_failed')
    const known = sessionsOf(facts, shard, userId)
    const past = known.filter(({ createdAtMs }) => createdAtMs + SESSION_DAYS * DAY_MS <= nowMs)
    const live = known.filter((one) => !past.includes(one)).sort((one, other) => one.createdAtMs - other.createdAtMs)
    const ended = live.slice(0, Math.max(0, live.length + 1 - USER_SESSIONS_MAX))
    const sessionId = context.newId()
    const key = userSessionsKey(shard, userId)
    const createdAtMs = sinceMs ?? nowMs
    const place = packSessionPlace({ accountId, hash, createdAtMs, userAgent })
    return {
      kind: 'done',
      reply: { kind: 'indexed', sessionId, sinceMs: createdAtMs, ended },
      ops: [
        { key, write: 'HSET', args: [sessionId, place] },
        ...forgetOps(shard, userId, past),
        ...deviceOps(shard, user, deviceId),
      ],
    }
  },
}

export interface ForgetSessionsBody {
  readonly userId: string
  readonly sessionIds: readonly string[]
}

export const forgetSessions: CommandType<ForgetSessionsBody, { readonly kind: 'forgotten' }> = {
  name: 'forget-sessions',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ userId, sessionIds }, _states, _facts, { shard }) {
    const ops: Op[] = [{ key: userSessionsKey(shard, userId), write: 'HDEL', args: [...sessionIds] }]
    return { kind: 'done', reply: { kind: 'forgotten' }, ops: sessionIds.length === 0 ? [] : ops }
  },
}

/** The user of a turn that has read `userFact`. */
export function userIn(facts: Facts, shard: number, userId: string): User | null {
  const key = userKey(shard, userId)
  return userOfRow(
    userId,
    USER_FIELDS.map((field) => facts.field(key, field)),
  )
}

/** The sessions of a turn that has read `userSessionsFact`. */
export function sessionsOf(facts: Facts, shard: number, userId: string): NamedSession[] {
  return namedSessions(facts.hash(userSessionsKey(shard, userId)))
}

/** Puts the device that signs in first, and drops the one with the oldest sign-in beyond the maximum. */
function deviceOps(shard: number, { userId, devices }: User, deviceId: string | undefined): Op[] {
  if (deviceId === undefined || devices[0] === deviceId) return []
  const listed = [deviceId, ...devices.filter((one) => one !== deviceId)].slice(0, USER_DEVICES_MAX)
  return [{ key: userKey(shard, userId), write: 'HSET', args: fieldsOfUser({ devices: listed }) }]
}

function forgetOps(shard: number, userId: string, ended: readonly NamedSession[]): Op[] {
  if (ended.length === 0) return []
  return [{ key: userSessionsKey(shard, userId), write: 'HDEL', args: ended.map(({ sessionId }) => sessionId) }]
}

function isAsExpected(user: User, expects: Partial<Omit<User, 'userId'>>): boolean {
  const stored = new Map<string, string>(pairsOf(fieldsOfUser(user)))
  return pairsOf(fieldsOfUser(expects)).every(([field, value]) => stored.get(field) === value)
}

function pairsOf(fields: readonly string[]): [string, string][] {
  return fields.flatMap((field, at) => (at % 2 === 0 ? [[field, fields[at + 1] ?? '']] : []))
}
