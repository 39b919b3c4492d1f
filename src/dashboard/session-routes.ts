/**
 * session-routes - signing in and out, another account, a confirmation: /dashboard/api/session and below
 *
 * Whatever is wrong with a try is told in the same words, and takes as long. Who is signed in and confirms is counted by
 * his session: what strangers try with his address locks him out of nothing.
 *
 * Spec session.sign-in, session.limits, session.confirm
 */

import { homeShard } from '../../cluster/id.ts'
import type { SessionReply } from '../actors/dashboard/session.ts'
import { cookieHeader } from '../http/dashboard-edge.ts'
import { type Answer, refuse } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { SEEN_EACH_MS, type SessionRow } from '../state/dashboard/session.ts'
import type { User } from '../state/dashboard/user.ts'
import { formatSession } from '../views/dashboard/session.ts'
import { readUser, readUserByLogin } from '../views/dashboard/user.ts'
import type { SessionKey } from '../views/key.ts'
import { type DashboardDeps, type DashboardHandler, sessionOf } from './deps.ts'
import { endSessions, enter } from './enter.ts'
import { isPassword } from './password.ts'
import { noteLimit, noteRefusal, noteSessionLimit } from './noted-tries.ts'
import { refuseConfirmation, refuseTry } from './tries.ts'

/** POST /dashboard/api/session */
export function makeSignIn(deps: DashboardDeps): DashboardHandler<'signIn'> {
  return async ({ body, client, userAgent }) => {
    const tried = await tryPassword(deps, { ...body, client })
    if (!('userId' in tried)) return tried
    return enter(deps, { user: tried, accountId: null, userAgent, isConfirmed: true, sinceMs: null })
  }
}

/** A try with an address and a password. Out: the user whose they are; the refusal. */
export async function tryPassword(
  deps: DashboardDeps,
  { address, password, client }: { readonly address: string; readonly password: string; readonly client: string },
): Promise<User | Answer> {
  const refused = await refuseTry(deps, 'sign-in', { client, address })
  if (refused !== null) {
    noteLimit(deps, address)
    return refused
  }
  const user = await readUserByLogin(deps.read, deps.secrets.loginHmac(address))
  if (user === 'unavailable') return refuse('unavailable')
  const tried = await compare(user, password)
  if (tried === null && user !== null) noteRefusal(deps, user.accounts[0], user.userId)
  return tried ?? refuse('sign_in_failed')
}

/** A try of somebody who is signed in with his own password. Out: the user; the refusal. */
export async function tryOwnPassword(
  deps: DashboardDeps,
  session: SessionKey,
  password: string,
): Promise<User | Answer> {
  const refused = await refuseConfirmation(deps, session)
  if (refused !== null) {
    noteSessionLimit(deps, session)
    return refused
  }
  const { accountId, userId } = session.row
  const user = await readUser(deps.read, userId)
  if (user === 'unavailable' || user === null) return refuse('unavailable')
  const tried = await compare(user, password)
  if (tried === null) noteRefusal(deps, accountId, userId)
  return tried ?? refuse('sign_in_failed')
}

/** The user, where the password is his; null where it is not. In: null for an address that nobody has. */
async function compare(user: User | null, password: string): Promise<User | Answer | null> {
  const isRight = await isPassword(password, user?.password ?? null)
  if (isRight === null) return refuse('unavailable')
  return isRight ? user : null
}

/** GET /dashboard/api/session */
export function makeReadSession(deps: DashboardDeps): DashboardHandler<'readSession'> {
  return async (request) => {
    const { row } = sessionOf(request)
    return answerRow(deps, row)
  }
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
    if (user === 'unavailable') return refuse('unavailable')
    const accountId = request.body.accountId.toLowerCase()
    if (user === null || !user.accounts.includes(accountId)) return refuse('not_found')
    if (accountId === row.accountId) return answerRow(deps, row)
    const { userAgent } = request
    const answer = await enter(deps, { user, accountId, userAgent, isConfirmed: false, sinceMs })
    if (!('status' in answer) || answer.status !== 200) {
      return 'status' in answer && answer.status === 401 ? refuse('not_found') : answer
    }
    // The browser has the other one now: this one would live on for nobody.
    return (await endSessions(deps, userId, [{ ...row, hash }])) ?? answer
  }
}

/** POST /dashboard/api/session/confirm */
export function makeConfirmSession(deps: DashboardDeps): DashboardHandler<'confirmSession'> {
  return async (request) => {
    const session = sessionOf(request)
    const tried = await tryOwnPassword(deps, session, request.body.password)
    return 'userId' in tried ? confirm(deps, session) : tried
  }
}

/** Notes that the user of a session has shown who he is. */
async function confirm(deps: DashboardDeps, { hash, row }: SessionKey): Promise<Answer> {
  const body = { hash, isConfirmed: true }
  const { reply, answer } = await giveOrder<SessionReply>(deps, homeShard(row.accountId), {
    name: 'mark-session',
    body,
  })
  return answer ?? answerRow(deps, reply.session)
}

async function answerRow({ read, nowMs }: DashboardDeps, row: SessionRow): Promise<Answer> {
  const user = await readUser(read, row.userId)
  if (user === 'unavailable' || user === null) return refuse('unavailable')
  const json = await formatSession(read, { row, user, nowMs: nowMs() })
  return json === null ? refuse('unavailable') : { status: 200, json }
}

/** Notes that a session was used, each ten minutes at most; nobody waits for it. */
export function touch(deps: DashboardDeps, { hash, row }: SessionKey): void {
  if (deps.nowMs() - row.seenMs < SEEN_EACH_MS) return
  const order = { name: 'mark-session', body: { hash, isConfirmed: false } }
  giveOrder(deps, homeShard(row.accountId), order).catch(() => undefined)
}
