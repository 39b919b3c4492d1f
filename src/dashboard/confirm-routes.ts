/**
 * confirm-routes - a signed-in user confirms their identity again: /dashboard/api/session/confirm
 *
 * The limit applies to the user in all sessions, so that tries of strangers with the address lock out nothing.
 *
 * Spec session.confirm, session.limits
 */

import { type Answer, refusalReply } from '../http/respond.ts'
import type { User } from '../state/dashboard/user.ts'
import { readUser } from '../views/dashboard/user.ts'
import type { SessionKey } from '../views/key.ts'
import { type DashboardDeps, type DashboardHandler, type DashboardRequest, sessionOf } from './deps.ts'
import { makeChallenge, parseChallenge } from './factor/challenge.ts'
import { readFactorCode } from './factor/factor-code.ts'
import { noteRefusal, noteSessionLimit } from './login-audit.ts'
import { refuseConfirmation } from './login-rate-limit.ts'
import { readOwnUser } from './own-user.ts'
import { optionsToShow, relyingParty, verifyShown } from './passkey.ts'
import { spendFactor } from './second-step.ts'
import { compare, noteSession } from './session-routes.ts'

/** POST /dashboard/api/session/confirm/options */
export function makeBeginConfirmation(deps: DashboardDeps): DashboardHandler<'beginConfirmation'> {
  return async (request) => {
    const user = await readOwnUser(deps, request)
    if (!('userId' in user)) return user
    if (user.passkeys.length === 0) return refusalReply('not_found')
    const begun = { kind: 'confirm', userId: user.userId, holder: sessionOf(request).hash } as const
    const { token, challenge } = makeChallenge(deps.secrets.challengeKey, begun, deps.nowMs())
    const options = optionsToShow(relyingParty(deps), challenge.id, user)
    return { status: 200, json: { options, challenge: token } }
  }
}

/** POST /dashboard/api/session/confirm */
export function makeConfirmSession(deps: DashboardDeps): DashboardHandler<'confirmSession'> {
  return async (request) => {
    const session = sessionOf(request)
    const { password } = request.body
    const tried =
      password === undefined
        ? await tryFactor(deps, session, request.body)
        : await tryOwnPassword(deps, session, { password, client: request.client })
    if (!('userId' in tried)) return tried
    const showsFactor = password === undefined
    return noteSession(deps, session.accountId, { hash: session.hash, isConfirmed: true, showsFactor })
  }
}

/** A try of a signed-in user with their own password. Returns the user or the refusal. */
export function tryOwnPassword(
  deps: DashboardDeps,
  session: SessionKey,
  { password, client }: { readonly password: string; readonly client: string },
): Promise<User | Answer> {
  return tryOwn(deps, session, (user) => compare(user, password, client))
}

/** The same with the user's code or passkey. */
function tryFactor(
  deps: DashboardDeps,
  session: SessionKey,
  { code, challenge: token = '', credential = {} }: DashboardRequest<'confirmSession'>['body'],
): Promise<User | Answer> {
  const nowMs = deps.nowMs()
  return tryOwn(deps, session, async (user) => {
    if (code !== undefined) {
      const shown = readFactorCode(deps.secrets, user, { code, nowMs })
      return shown === null ? null : ((await spendFactor(deps, { user, shown, step: null })) ?? user)
    }
    const of = { kinds: ['confirm'], holder: session.hash, nowMs } as const
    const challenge = parseChallenge(deps.secrets.challengeKey, token, of)
    if (challenge === null) return null
    const shown = await verifyShown(relyingParty(deps), user, { credential, challenge: challenge.id, isAlone: false })
    return shown === null ? null : ((await spendFactor(deps, { user, shown, step: challenge })) ?? user)
  })
}

/** Counts a try, and checks it with the given function, which returns null for a wrong one. */
async function tryOwn(
  deps: DashboardDeps,
  session: SessionKey,
  look: (user: User) => Promise<User | Answer | null>,
): Promise<User | Answer> {
  const { accountId, userId } = session.row
  const refused = await refuseConfirmation(deps, userId)
  if (refused !== null) {
    if ('status' in refused && refused.status === 429) noteSessionLimit(deps, session)
    return refused
  }
  const user = await readUser(deps.read, userId)
  if (user === 'unavailable' || user === null) return refusalReply('unavailable')
  const tried = await look(user)
  if (tried === null) noteRefusal(deps, accountId, userId)
  return tried ?? refusalReply('sign_in_failed')
}
