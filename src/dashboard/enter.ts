/**
 * enter - somebody who has shown who he is gets a session in one of his accounts, and ends those he had too many of
 *
 * Steps: the session is put on its user's list, then it is opened on its account's shard, which asks whether he is a
 * member there. A process that ends between both leaves an entry that names no session.
 *
 * Spec session.life, session.sign-in
 */

import { homeShard } from '../../cluster/id.ts'
import { SESSION_DAYS } from '../../schemas/limits.ts'
import type { MemberSession, OpenSessionBody, SessionReply } from '../actors/dashboard/session.ts'
import type { IndexSessionBody, NamedSession, SessionIndexed } from '../actors/dashboard/user.ts'
import { cookieHeader } from '../http/dashboard-edge.ts'
import { makeKey } from '../http/key.ts'
import { type Answer, refuse } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import type { SessionRow } from '../state/dashboard/session.ts'
import type { User } from '../state/dashboard/user.ts'
import { formatSession } from '../views/dashboard/session.ts'
import type { DashboardDeps } from './deps.ts'

const DAY_S = 86_400
/** What is kept of how a browser names itself. */
const USER_AGENT_CHARS_MAX = 300

/** Who comes in, and from where. */
export interface Entrant {
  readonly user: User
  /** The account; null: the first that still has him. */
  readonly accountId: string | null
  readonly userAgent: string
  /** He has just shown who he is; a session alone shows it not. */
  readonly isConfirmed: boolean
}

/** Opens a session, and answers it with its cookie. */
export async function enter(deps: DashboardDeps, { user, accountId, ...shown }: Entrant): Promise<Answer> {
  for (const one of accountId === null ? user.accounts : [accountId]) {
    const opened = await openIn(deps, { user, accountId: one, ...shown })
    if (opened === null) continue
    return 'token' in opened ? answerSession(deps, { ...opened, user }) : opened
  }
  return refuse('sign_in_failed')
}

/** Null: he is no member there. */
async function openIn(
  deps: DashboardDeps,
  { user, accountId, userAgent, isConfirmed }: Entrant & { readonly accountId: string },
): Promise<{ readonly token: string; readonly row: SessionRow } | Answer | null> {
  const { userId } = user
  const shard = homeShard(accountId)
  const { token, hash } = makeKey('ss', shard)
  const index: IndexSessionBody = { userId, accountId, hash, userAgent: userAgent.slice(0, USER_AGENT_CHARS_MAX) }
  const listed = await giveOrder<SessionIndexed>(deps, homeShard(userId), { name: 'index-session', body: index })
  if (listed.answer !== undefined) return listed.answer
  const { sessionId, ended } = listed.reply
  await endSessions(deps, userId, ended)
  const body: OpenSessionBody = { accountId, userId, sessionId, hash, isConfirmed }
  const opened = await giveOrder<SessionReply>(deps, shard, { name: 'open-session', body })
  if (opened.reply !== undefined) return { token, row: opened.reply.session }
  if (opened.refused === null) return opened.answer
  await giveOrder(deps, homeShard(userId), { name: 'forget-sessions', body: { userId, sessionIds: [sessionId] } })
  return null
}

/** The session with its cookie. */
async function answerSession(
  deps: DashboardDeps,
  { token, row, user }: { readonly token: string; readonly row: SessionRow; readonly user: User },
): Promise<Answer> {
  const json = await formatSession(deps.read, { row, user, nowMs: deps.nowMs() })
  if (json === null) return refuse('unavailable')
  return { status: 200, json, headers: { 'Set-Cookie': cookieHeader(deps.edge, token, SESSION_DAYS * DAY_S) } }
}

/** Ends sessions of a user that are off his list already. */
export async function endSessions(
  deps: DashboardDeps,
  userId: string,
  sessions: readonly NamedSession[],
): Promise<Answer | null> {
  for (const { accountId, sessionId, hash } of sessions) {
    const refused = await endOne(deps, { accountId, userId, sessionId, hash })
    if (refused !== null) return refused
  }
  return null
}

/** Ends a session. Out: what is answered where nobody could. */
export async function endOne(deps: DashboardDeps, session: MemberSession): Promise<Answer | null> {
  const { answer } = await giveOrder(deps, homeShard(session.accountId), { name: 'end-session', body: session })
  return answer ?? null
}
