/**
 * me-routes - a user's own name, password and sessions: /dashboard/api/me and below
 *
 * Spec session.password, session.list
 */

import { homeShard } from '../../cluster/id.ts'
import type { Me, Passkey } from '../../schemas/dashboard/me.ts'
import type { ChangeUserBody, UserChanged } from '../actors/dashboard/user.ts'
import { refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import type { StoredPasskey, User } from '../state/dashboard/user.ts'
import { readOwnSessions } from '../views/dashboard/own-sessions.ts'
import { formatInstant, formatInstantOrNull } from '../views/instant.ts'
import { tryOwnPassword } from './confirm-routes.ts'
import { type DashboardDeps, type DashboardHandler, sessionOf } from './deps.ts'
import { noteOwn } from './login-audit.ts'
import { readOwnUser } from './own-user.ts'
import { hashPassword } from './password.ts'
import { endOthers, endSessions } from './start-session.ts'

/** GET /dashboard/api/me */
export function makeReadMe(deps: DashboardDeps): DashboardHandler<'readMe'> {
  return async (request) => {
    const user = await readOwnUser(deps, request)
    return 'userId' in user ? { status: 200, json: formatMe(user) } : user
  }
}

/** PATCH /dashboard/api/me */
export function makePatchMe(deps: DashboardDeps): DashboardHandler<'patchMe'> {
  return async (request) => {
    const user = await readOwnUser(deps, request)
    if (!('userId' in user)) return user
    const changes = request.body
    const changed = await orderUserChange(deps, { userId: user.userId, changes })
    if (changed.answer !== undefined) return changed.answer
    await noteOwn(deps, request)
    return { status: 200, json: formatMe({ ...user, ...changes }) }
  }
}

/**
 * POST /dashboard/api/me/password ends the user's other sessions before the change, and those begun in the meantime
 * after it. If one cannot be ended, nothing is changed, or it stays on the list.
 */
export function makeChangePassword(deps: DashboardDeps): DashboardHandler<'changePassword'> {
  return async (request) => {
    const session = sessionOf(request)
    const { current, password } = request.body
    const tried = await tryOwnPassword(deps, session, { password: current, client: request.client })
    if (!('userId' in tried)) return tried
    const hashed = await hashPassword(password, request.client)
    if (hashed === null) return refusalReply('unavailable')
    const { userId } = tried
    const { sessionId } = session.row
    const unended = await endOthers(deps, userId, sessionId)
    if (unended !== null) return unended
    const changed = await orderUserChange(deps, {
      userId,
      changes: { password: hashed, linkRound: tried.linkRound + 1 },
      expects: { password: tried.password },
      endsAllBut: sessionId,
    })
    if (changed.answer !== undefined) return changed.answer
    await noteOwn(deps, request)
    return (await endSessions(deps, userId, changed.reply.ended)) ?? { status: 204 }
  }
}

/** GET /dashboard/api/me/sessions */
export function makeListSessions({ read, nowMs }: DashboardDeps): DashboardHandler<'listSessions'> {
  return async (request) => {
    const { userId, sessionId } = sessionOf(request).row
    const sessions = await readOwnSessions(read, { userId, nowMs: nowMs(), currentId: sessionId })
    if (sessions === null) return refusalReply('unavailable')
    return { status: 200, json: { sessions: sessions.map(({ resource }) => resource) } }
  }
}

/** DELETE /dashboard/api/me/sessions/{sessionId} */
export function makeDeleteSession(deps: DashboardDeps): DashboardHandler<'deleteSession'> {
  return async (request) => {
    const { userId } = sessionOf(request).row
    const sessionId = (request.params.sessionId ?? '').toLowerCase()
    const sessions = await readOwnSessions(deps.read, { userId, nowMs: deps.nowMs(), currentId: null })
    if (sessions === null) return refusalReply('unavailable')
    const found = sessions.find(({ resource }) => resource.sessionId === sessionId)
    if (found === undefined) return refusalReply('not_found')
    const { accountId } = found.resource
    const unended = await endSessions(deps, userId, [{ accountId, sessionId, hash: found.hash }])
    if (unended !== null) return unended
    await noteOwn(deps, request)
    return { status: 204 }
  }
}

/** Changes a user. */
export function orderUserChange(deps: DashboardDeps, body: ChangeUserBody) {
  return giveOrder<UserChanged>(deps, homeShard(body.userId), { name: 'change-user', body })
}

function formatMe(user: User): Me {
  const { userId, address, name, createdAtMs, password, totp, codes, passkeys } = user
  return {
    userId,
    address,
    name,
    createdAt: formatInstant(createdAtMs),
    hasPassword: password !== null,
    totp: totp !== null,
    recoveryCodesLeft: codes.length,
    passkeys: passkeys.map(formatPasskey),
  }
}

/** A passkey as it is listed. */
export function formatPasskey({ passkeyId, name, createdAtMs, usedAtMs }: StoredPasskey): Passkey {
  return { passkeyId, name, createdAt: formatInstant(createdAtMs), lastUsedAt: formatInstantOrNull(usedAtMs) }
}
