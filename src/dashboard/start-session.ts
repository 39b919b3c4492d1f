/**
 * start-session - opens a session in one of the accounts of an authenticated user, and ends surplus ones
 *
 * First the session is added to its user's list, then it is opened on its account's shard, which checks membership. A
 * process that ends in between leaves an entry without a session. Ending a session is the reverse: its row ends first,
 * then its list entry is removed, so every live session is visible to its user.
 *
 * Spec session.life, session.sign-in
 */

import { homeShard } from '../../cluster/id.ts'
import { DEVICE_DAYS, SESSION_DAYS } from '../../schemas/limits.ts'
import type { MemberSession, OpenSessionBody, SessionReply } from '../actors/dashboard/session.ts'
import type { IndexSessionBody, SessionIndexed } from '../actors/dashboard/user.ts'
import { cookieHeader, deviceHeader } from '../http/dashboard-edge.ts'
import { makeKey } from '../http/key.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import type { SessionRow } from '../state/dashboard/session.ts'
import { type NamedSession, namedSessions, type User, userSessionsFact } from '../state/dashboard/user.ts'
import { formatSession } from '../views/dashboard/session.ts'
import type { DashboardDeps } from './deps.ts'
import { formatDevice, newDeviceId } from './factor/device.ts'
import { deviceIn } from './login-rate-limit.ts'

const DAY_S = 86_400
/** Stored length of a browser's user agent. */
const USER_AGENT_CHARS_MAX = 300

/** The user of a new session, and its origin. */
export interface Entrant {
  readonly user: User
  /** The account; null for the first that still lists the user. */
  readonly accountId: string | null
  readonly userAgent: string
  /** Cookies of the request. */
  readonly cookies: string
  /** Whether the user has just entered a proof; a session alone is not one. */
  readonly isConfirmed: boolean
  /** Time until which a second factor counts as just used, in ms; 0 if none was used. */
  readonly factorMs: number
  /** When the session that this one takes the place of began, in ms; null: it is the first. */
  readonly sinceMs: number | null
}

/** Opens a session, and answers it with its cookie. */
export async function startSession(deps: DashboardDeps, { user, accountId, ...shown }: Entrant): Promise<Answer> {
  for (const one of accountId === null ? user.accounts : [accountId]) {
    const opened = await openIn(deps, { user, accountId: one, ...shown })
    if (opened === null) continue
    return 'token' in opened ? answerSession(deps, { ...opened, user }) : opened
  }
  return refusalReply('sign_in_failed')
}

interface Opened {
  readonly token: string
  readonly row: SessionRow
  readonly deviceId: string
}

/** Null if the user is not a member there. */
async function openIn(
  deps: DashboardDeps,
  { user, accountId, userAgent, cookies, isConfirmed, factorMs, sinceMs }: Entrant & { readonly accountId: string },
): Promise<Opened | Answer | null> {
  const { userId, password } = user
  const shard = homeShard(accountId)
  const { token, hash } = makeKey('ss', shard)
  const named = { userId, accountId, hash }
  const shown = { userAgent: userAgent.slice(0, USER_AGENT_CHARS_MAX), expects: { password } }
  const deviceId = deviceIn(deps, cookies, user) ?? newDeviceId()
  const index: IndexSessionBody = { ...named, ...shown, sinceMs, showsFactor: factorMs > 0, deviceId }
  const listed = await giveOrder<SessionIndexed>(deps, homeShard(userId), { name: 'index-session', body: index })
  if (listed.answer !== undefined) return listed.answer
  const { sessionId, sinceMs: beganMs, ended } = listed.reply
  await endSessions(deps, userId, ended)
  const body: OpenSessionBody = { ...named, sessionId, isConfirmed, sinceMs: beganMs, factorMs }
  const opened = await giveOrder<SessionReply>(deps, shard, { name: 'open-session', body })
  if (opened.reply !== undefined) return { token, row: opened.reply.session, deviceId }
  if (opened.refused === null) return opened.answer
  await forget(deps, userId, [sessionId])
  return null
}

/** The session with its cookie and that of its device. */
async function answerSession(
  deps: DashboardDeps,
  { token, row, deviceId, user }: Opened & { readonly user: User },
): Promise<Answer> {
  const json = await formatSession(deps.read, { row, user, nowMs: deps.nowMs() })
  if (json === null) return refusalReply('unavailable')
  const device = formatDevice(deps.secrets.deviceKey, { userId: user.userId, deviceId })
  const cookies = [
    cookieHeader(deps.edge, token, SESSION_DAYS * DAY_S),
    deviceHeader(deps.edge, device, DEVICE_DAYS * DAY_S),
  ]
  return { status: 200, json, cookies }
}

/** Ends all sessions of a user except one (null for all). Returns the refusal if one could not be ended. */
export async function endOthers(deps: DashboardDeps, userId: string, but: string | null): Promise<Answer | null> {
  const shard = homeShard(userId)
  const seen = await deps.read(shard, [userSessionsFact(shard, userId)])
  if (seen === null) return refusalReply('unavailable')
  const others = namedSessions(seen[0]).filter(({ sessionId }) => sessionId !== but)
  return endSessions(deps, userId, others)
}

/**
 * Ends sessions of a user, as many as possible, and removes those from the list. Returns the refusal if one could not
 * be ended.
 */
export async function endSessions(
  deps: DashboardDeps,
  userId: string,
  sessions: readonly Pick<NamedSession, 'accountId' | 'sessionId' | 'hash'>[],
): Promise<Answer | null> {
  const ended: string[] = []
  let refused: Answer | null = null
  for (const { accountId, sessionId, hash } of sessions) {
    const answer = await endRow(deps, { accountId, userId, sessionId, hash })
    if (answer === null) ended.push(sessionId)
    else refused = answer
  }
  await forget(deps, userId, ended)
  return refused
}

async function endRow(deps: DashboardDeps, session: MemberSession): Promise<Answer | null> {
  const { answer } = await giveOrder(deps, homeShard(session.accountId), { name: 'end-session', body: session })
  return answer ?? null
}

/** Removes ended sessions from their user's list. One that stays is not shown. */
async function forget(deps: DashboardDeps, userId: string, sessionIds: readonly string[]): Promise<void> {
  if (sessionIds.length === 0) return
  await giveOrder(deps, homeShard(userId), { name: 'forget-sessions', body: { userId, sessionIds } })
}
