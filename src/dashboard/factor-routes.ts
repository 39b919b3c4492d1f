/**
 * factor-routes - a user's own second factors: /dashboard/api/me/totp, /me/passkeys, /me/recovery-codes
 *
 * What is set up counts once it was shown to work. Recovery codes come with the first factor and go with the last one;
 * the last one stays while an account of the user's takes one.
 *
 * Spec session.factor, session.passkey, member.settings
 */

import { randomBytes } from 'node:crypto'
import { homeShard } from '../../cluster/id.ts'
import type { PasskeyMade, TotpBegun } from '../../schemas/dashboard/me.ts'
import type { ChangeFactorsBody, FactorChange, FactorsChanged } from '../actors/dashboard/factor.ts'
import { type Answer, refuse } from '../http/respond.ts'
import { giveOrder, type Replied } from '../routes/answer.ts'
import { settingsFact, settingsOfRow } from '../state/dashboard/member.ts'
import { hasFactor, type User } from '../state/dashboard/user.ts'
import { type DashboardDeps, type DashboardHandler, type DashboardRequest, sessionOf } from './deps.ts'
import { type Challenge, type ChallengeKind, makeChallenge, parseChallenge } from './factor/challenge.ts'
import { openTotp, sealTotp } from './factor/factor-code.ts'
import { makeRecoveryCodes, parseRecoveryCode } from './factor/recovery-code.ts'
import { findTotpStep, formatTotpSecret, TOTP_SECRET_BYTES } from './factor/totp.ts'
import { formatPasskey } from './me-routes.ts'
import { note } from './noted-tries.ts'
import { userOf } from './own-user.ts'
import { optionsToMake, relyingParty, verifyMade } from './passkey.ts'
import { noteSession } from './session-routes.ts'

const LAST_ONE = 'An account of yours takes a second factor: this is the last that you have'

/** POST /dashboard/api/me/totp: nothing is stored before a code of it came. */
export function makeBeginTotp(deps: DashboardDeps): DashboardHandler<'beginTotp'> {
  return async (request) => {
    const user = await userOf(deps, request)
    if (!('userId' in user)) return user
    const { userId, address } = user
    const secret = randomBytes(TOTP_SECRET_BYTES)
    const { rpId } = relyingParty(deps)
    const sealed = sealTotp(deps.secrets.sealingKey, userId, secret)
    const begun = { kind: 'add-totp', userId, holder: sessionOf(request).hash, sealed } as const
    const { token } = makeChallenge(deps.secrets.challengeKey, begun, deps.nowMs())
    const shown = formatTotpSecret(secret, { issuer: `Sendwright ${rpId}`, name: address })
    const json: TotpBegun = { ...shown, challenge: token }
    return { status: 200, json }
  }
}

/** POST /dashboard/api/me/totp/confirm */
export function makeConfirmTotp(deps: DashboardDeps): DashboardHandler<'confirmTotp'> {
  return async (request) => {
    const user = await userOf(deps, request)
    if (!('userId' in user)) return user
    const begun = readBegun(deps, request, 'add-totp')
    if (begun === null || begun.sealed === null) return refuse('sign_in_failed')
    const { code } = request.body
    const secret = openTotp(deps.secrets.sealingKey, user.userId, begun.sealed)
    const of = { nowMs: deps.nowMs(), usedStep: 0 }
    const step = secret === null ? null : findTotpStep(secret, code.replaceAll(/\s/g, ''), of)
    if (step === null) return refuse('invalid_request', { issues: [{ path: 'code', message: 'Not its code now' }] })
    const codes = makeRecoveryCodes()
    const change = { kind: 'totp', sealed: begun.sealed, step, codes: hashed(deps, user, codes) } as const
    const { reply, answer } = await changeFactors(deps, request, { user, step: begun, change })
    return answer ?? { status: 200, json: { recoveryCodes: reply.takesCodes ? codes : null } }
  }
}

/** DELETE /dashboard/api/me/totp */
export function makeDeleteTotp(deps: DashboardDeps): DashboardHandler<'deleteTotp'> {
  return (request) => remove(deps, request, { kind: 'remove-totp' })
}

/** POST /dashboard/api/me/passkeys/options */
export function makeBeginPasskeyOfMe(deps: DashboardDeps): DashboardHandler<'beginPasskeyOfMe'> {
  return async (request) => {
    const user = await userOf(deps, request)
    if (!('userId' in user)) return user
    const begun = { kind: 'add-passkey', userId: user.userId, holder: sessionOf(request).hash } as const
    const { token, challenge } = makeChallenge(deps.secrets.challengeKey, begun, deps.nowMs())
    const options = optionsToMake(relyingParty(deps), challenge.id, user)
    return { status: 200, json: { options, challenge: token } }
  }
}

/** POST /dashboard/api/me/passkeys */
export function makeCreatePasskey(deps: DashboardDeps): DashboardHandler<'createPasskey'> {
  return async (request) => {
    const user = await userOf(deps, request)
    if (!('userId' in user)) return user
    const begun = readBegun(deps, request, 'add-passkey')
    if (begun === null) return refuse('sign_in_failed')
    const { credential, name } = request.body
    const made = await verifyMade(relyingParty(deps), { credential, challenge: begun.id })
    if (made === null) return refuse('sign_in_failed')
    const codes = makeRecoveryCodes()
    const change = { kind: 'passkey', passkey: { ...made, name }, codes: hashed(deps, user, codes) } as const
    const { reply, answer } = await changeFactors(deps, request, { user, step: begun, change })
    if (answer !== undefined) return answer
    const passkey = reply.passkeys.find(({ credentialId }) => credentialId === made.credentialId)
    if (passkey === undefined) return refuse('internal_error')
    const json: PasskeyMade = { passkey: formatPasskey(passkey), recoveryCodes: reply.takesCodes ? codes : null }
    return { status: 201, json }
  }
}

/** PATCH /dashboard/api/me/passkeys/{passkeyId} */
export function makePatchPasskey(deps: DashboardDeps): DashboardHandler<'patchPasskey'> {
  return async (request) => {
    const user = await userOf(deps, request)
    if (!('userId' in user)) return user
    const passkeyId = passkeyIdOf(request)
    const change = { kind: 'rename', passkeyId, name: request.body.name } as const
    const { reply, answer } = await changeFactors(deps, request, { user, step: null, change })
    const passkey = reply?.passkeys.find((one) => one.passkeyId === passkeyId)
    return answer ?? (passkey === undefined ? refuse('not_found') : { status: 200, json: formatPasskey(passkey) })
  }
}

/** DELETE /dashboard/api/me/passkeys/{passkeyId} */
export function makeDeletePasskey(deps: DashboardDeps): DashboardHandler<'deletePasskey'> {
  return (request) => remove(deps, request, { kind: 'remove-passkey', passkeyId: passkeyIdOf(request) })
}

/** POST /dashboard/api/me/recovery-codes: those before work no more. */
export function makeCreateRecoveryCodes(deps: DashboardDeps): DashboardHandler<'createRecoveryCodes'> {
  return async (request) => {
    const user = await userOf(deps, request)
    if (!('userId' in user)) return user
    const codes = makeRecoveryCodes()
    const change = { kind: 'codes', codes: hashed(deps, user, codes) } as const
    const { answer } = await changeFactors(deps, request, { user, step: null, change })
    return answer ?? { status: 200, json: { recoveryCodes: codes } }
  }
}

function passkeyIdOf({ params }: Pick<DashboardRequest, 'params'>): string {
  return (params.passkeyId ?? '').toLowerCase()
}

/** What is stored of recovery codes. */
function hashed({ secrets }: DashboardDeps, { userId }: User, codes: readonly string[]): string[] {
  return codes.map((code) => secrets.recoveryHmac(userId, parseRecoveryCode(code) ?? ''))
}

/** What this session has begun. */
function readBegun(
  { secrets, nowMs }: DashboardDeps,
  request: DashboardRequest<'confirmTotp' | 'createPasskey'>,
  kind: ChallengeKind,
): Challenge | null {
  const of = { kinds: [kind], holder: sessionOf(request).hash, nowMs: nowMs() }
  return parseChallenge(secrets.challengeKey, request.body.challenge, of)
}

/** Takes a factor away. */
async function remove(
  deps: DashboardDeps,
  request: DashboardRequest,
  change: Extract<FactorChange, { readonly kind: 'remove-totp' | 'remove-passkey' }>,
): Promise<Answer> {
  const user = await userOf(deps, request)
  if (!('userId' in user)) return user
  const left =
    change.kind === 'remove-totp'
      ? { totp: null, passkeys: user.passkeys }
      : { totp: user.totp, passkeys: user.passkeys.filter(({ passkeyId }) => passkeyId !== change.passkeyId) }
  const isTaken = hasFactor(user) && !hasFactor(left) ? await isFactorTaken(deps, user) : false
  if (isTaken === null) return refuse('unavailable')
  if (isTaken) return refuse('second_factor_required', {}, LAST_ONE)
  const { answer } = await changeFactors(deps, request, { user, step: null, change })
  return answer ?? { status: 204 }
}

/** Whether an account of a user takes a second factor; null when the store did not answer. */
async function isFactorTaken({ read }: DashboardDeps, { accounts }: User): Promise<boolean | null> {
  const rows = await Promise.all(
    accounts.map((accountId) => read(homeShard(accountId), [settingsFact(homeShard(accountId), accountId)])),
  )
  if (rows.includes(null)) return null
  return rows.some((row) => row !== null && settingsOfRow(row[0]).requireSecondFactor)
}

/** Changes the factors of a request's user: it is logged, and his session waits for a factor no more. */
async function changeFactors(
  deps: DashboardDeps,
  request: DashboardRequest,
  {
    user,
    step,
    change,
  }: Omit<ChangeFactorsBody, 'userId' | 'step'> & {
    readonly user: User
    readonly step: Challenge | null
  },
): Promise<Replied<FactorsChanged>> {
  const { userId } = user
  const taken = step === null ? null : { id: step.id, endsAtMs: step.endsAtMs }
  const body: ChangeFactorsBody = { userId, step: taken, change }
  const changed = await giveOrder<FactorsChanged>(deps, homeShard(userId), { name: 'change-factors', body })
  if (changed.answer !== undefined) return changed
  const { accountId, hash, row } = sessionOf(request)
  await note(deps, { accountId, userId, act: request.route.name, targets: { ...request.params } })
  if (row.needsFactor) await noteSession(deps, accountId, { hash, isConfirmed: false, hasFactor: true })
  return changed
}
