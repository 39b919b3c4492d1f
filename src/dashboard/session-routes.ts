/**
 * session-routes - signing in and out, another account: /dashboard/api/session and below
 *
 * Every failed try gets the same answer, and takes as long.
 *
 * Spec session.sign-in, session.limits
 */

import { homeShard } from '../../cluster/id.ts'
import type { MarkSessionBody, SessionReply } from '../actors/dashboard/session.ts'
import { cookieHeader } from '../http/dashboard-edge.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { SEEN_EACH_MS, type SessionRow } from '../state/dashboard/session.ts'
import { hasFactor, type User } from '../state/dashboard/user.ts'
import { formatSession } from '../views/dashboard/session.ts'
import { readUser, readUserByLogin } from '../views/dashboard/user.ts'
import type { SessionKey } from '../views/key.ts'
import { type DashboardDeps, type DashboardHandler, sessionOf } from './deps.ts'
import { noteLimit, noteRefusal } from './login-audit.ts'
import { judgeTry } from './login-rate-limit.ts'
import { SHOW_FACTOR } from './own-user.ts'
import { isPassword } from './password.ts'
import { enterOrAsk } from './second-step.ts'
import { endSessions, startSession } from './start-session.ts'

/** POST /dashboard/api/session */
export function makeSignIn(deps: DashboardDeps): DashboardHandler<'signIn'> {
  return async ({ body, client, cookies, userAgent }) => {
    const tried = await tryPassword(deps, { ...body, client, cookies })
    if (!('userId' in tried)) return tried
    return enterOrAsk(deps, { user: tried, accountId: null, userAgent, cookies, isConfirmed: true, sinceMs: null })
  }
}

interface Tried {
  readonly address: string
  readonly password: string
  readonly client: string
  readonly cookies: string
}

/** A try with an address and a password. Returns their user, or the refusal. */
export async function tryPassword(
  deps: DashboardDeps,
  { address, password, client, cookies }: Tried,
): Promise<User | Answer> {
  const refused = await judgeTry(deps, 'sign-in', { client, address, cookies })
  if (refused !== null) {
    if (refused.isOfAddress) noteLimit(deps, address)
    return refused.answer
  }
  const user = await readUserByLogin(deps.read, deps.secrets.loginHmac(address))
  if (user === 'unavailable') return refusalReply('unavailable')
  const tried = await compare(user, password, client)
  if (tried === null && user !== null) noteRefusal(deps, user.accounts[0], user.userId)
  return tried ?? refusalReply('sign_in_failed')
}

/** The user if the password matches, otherwise null. Takes null for an unknown address. */
export async function compare(user: User | null, password: string, client: string): Promise<User | Answer | null> {
  const isRight = await isPassword(password, user?.password ?? null, client)
  if (isRight === null) return refusalReply('unavailable')
  return isRight ? user : null
}

/** GET /dashboard/api/session */
export function makeReadSession(deps: DashboardDeps): DashboardHandler<'readSession'> {
  return async (request) => {
    const { row, hash } = sessionOf(request)
    // The account may no longer require a factor, so the session is checked again.
    return row.needsFactor ? noteSession(deps, row.accountId, { hash, isConfirmed: false }) : answerRow(deps, row)
  }
}

/** Records a change of a session and answers with the session. */
export async function noteSession(deps: DashboardDeps, accountId: string, body: MarkSessionBody): Promise<Answer> {
  const order = { name: 'mark-session', body }
  const { reply, answer } = await giveOrder<SessionReply>(deps, homeShard(accountId), order)
  return answer ?? answerRow(deps, reply.session)
}

/** DELETE /dashboard/api/session */
export function makeSignOut(deps: DashboardDeps): DashboardHandler<'signOut'> {
  return async (request) => {
    const { row, hash } = sessionOf(request)
    const refused = await endSessions(deps, row.userId, [{ ...row, hash }])
    if (refused !== null) return refused
    return { status: 204, headers: { 'Set-Cookie': cookieHeader(deps.edge, null) } }
  }
}

/** POST /dashboard/api/session/account */
export function makeSwitchAccount(deps: DashboardDeps): DashboardHandler<'switchAccount'> {
  return async (request) => {
    const { row, hash } = sessionOf(request)
    const { userId, sinceMs } = row
    const user = await readUser(deps.read, userId)
    if (user === 'unavailable') return refusalReply('unavailable')
    const accountId = request.body.accountId.toLowerCase()
    if (user === null || !user.accounts.includes(accountId)) return refusalReply('not_found')
    if (accountId === row.accountId) return answerRow(deps, row)
    if (hasFactor(user) && row.factorMs === 0) return refusalReply('confirmation_required', {}, SHOW_FACTOR)
    const { userAgent, cookies } = request
    const { factorMs } = row
    const answer = await startSession(deps, {
      user,
      accountId,
      userAgent,
      cookies,
      isConfirmed: false,
      factorMs,
      sinceMs,
    })
    if (!('status' in answer) || answer.status !== 200) {
      return 'status' in answer && answer.status === 401 ? refusalReply('not_found') : answer
    }
    // The browser has the new session now, so the old one ends. If that fails, it stays on the user's list.
    await endSessions(deps, userId, [{ ...row, hash }])
    return answer
  }
}

/** The session of a row. */
export async function answerRow({ read, nowMs }: DashboardDeps, row: SessionRow): Promise<Answer> {
  const user = await readUser(read, row.userId)
  if (user === 'unavailable' || user === null) return refusalReply('unavailable')
  const json = await formatSession(read, { row, user, nowMs: nowMs() })
  return json === null ? refusalReply('unavailable') : { status: 200, json }
}

/** Records the use of a session, at most every ten minutes, without waiting. */
export function touch(deps: DashboardDeps, { hash, row }: SessionKey): void {
  if (deps.nowMs() - row.seenMs < SEEN_EACH_MS) return
  const order = { name: 'mark-session', body: { hash, isConfirmed: false } }
  giveOrder(deps, homeShard(row.accountId), order).catch(() => undefined)
}
