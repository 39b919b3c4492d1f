/**
 * factor-routes - a user's own second factors: /dashboard/api/me/totp, /me/passkeys, /me/recovery-codes
 *
 * A new factor takes effect once it was used successfully. Recovery codes are created with the first factor and
 * removed with the last one; the last one cannot be removed while an account of the user requires one.
 *
 * Spec session.factor, session.passkey, member.settings
 */

import { randomBytes } from 'node:crypto'
import { homeShard } from '../../cluster/id.ts'
import type { PasskeyMade, TotpBegun } from '../../schemas/dashboard/me.ts'
import type { ChangeFactorsBody, FactorChange, FactorsChanged } from '../actors/dashboard/factor.ts'
import { NOT_SIGNED_IN } from '../http/dashboard-edge.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder, type Replied } from '../routes/answer.ts'
import { settingsFact, settingsOfRow } from '../state/dashboard/member.ts'
import { SESSION_FIELDS, type SessionRow, sessionEndMs, sessionFact, sessionOfRow } from '../state/dashboard/session.ts'
import { hasFactor, type User } from '../state/dashboard/user.ts'
import { type DashboardDeps, type DashboardHandler, type DashboardRequest, sessionOf } from './deps.ts'
import { type Challenge, type ChallengeKind, makeChallenge, parseChallenge } from './factor/challenge.ts'
import { openTotp, sealTotp } from './factor/factor-code.ts'
import { makeRecoveryCodes, parseRecoveryCode } from './factor/recovery-code.ts'
import { findTotpStep, formatTotpSecret, TOTP_SECRET_BYTES } from './factor/totp.ts'
import { noteOwn } from './login-audit.ts'
import { formatPasskey } from './me-routes.ts'
import { readOwnUser, SHOW_FACTOR } from './own-user.ts'
import { optionsToMake, relyingParty, verifyMade } from './passkey.ts'
import { noteSession } from './session-routes.ts'
import { endOthers, endSessions } from './start-session.ts'

const LAST_ONE = 'One of your accounts requires a second factor, and this is your last one'

/** POST /dashboard/api/me/totp, which stores nothing before one of its codes is entered. */
export function makeBeginTotp(deps: DashboardDeps): DashboardHandler<'beginTotp'> {
  return async (request) => {
    const user = await mayChange(deps, request)
    if (!('userId' in user)) return user
    const { userId, address } = user
    const secret = randomBytes(TOTP_SECRET_BYTES)
    const { rpId } = relyingParty(deps)
    const sealed = sealTotp(deps.secrets.ring, userId, secret)
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
    const user = await mayChange(deps, request)
    if (!('userId' in user)) return user
    const begun = readBegun(deps, request, 'add-totp')
    if (begun === null || begun.sealed === null) return refusalReply('sign_in_failed')
    const { code } = request.body
    const secret = openTotp(deps.secrets.ring, user.userId, begun.sealed)
    const of = { nowMs: deps.nowMs(), usedStep: 0 }
    const step = secret === null ? null : findTotpStep(secret, code.replaceAll(/\s/g, ''), of)
    if (secret === null || step === null)
      return refusalReply('invalid_request', { issues: [{ path: 'code', message: 'Not the current code' }] })
    const codes = makeRecoveryCodes()
    // Sealed again, because the installation may have another key since.
    const sealed = sealTotp(deps.secrets.ring, user.userId, secret)
    const change = { kind: 'totp', sealed, step, codes: hashed(deps, user, codes) } as const
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
    const user = await mayChange(deps, request)
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
    const user = await mayChange(deps, request)
    if (!('userId' in user)) return user
    const begun = readBegun(deps, request, 'add-passkey')
    if (begun === null) return refusalReply('sign_in_failed')
    const { credential, name } = request.body
    const made = await verifyMade(relyingParty(deps), { credential, challenge: begun.id })
    if (made === null) return refusalReply('sign_in_failed')
    if ('issue' in made)
      return refusalReply('invalid_request', { issues: [{ path: 'credential', message: made.issue }] })
    const codes = makeRecoveryCodes()
    const change = { kind: 'passkey', passkey: { ...made, name }, codes: hashed(deps, user, codes) } as const
    const { reply, answer } = await changeFactors(deps, request, { user, step: begun, change })
    if (answer !== undefined) return answer
    const passkey = reply.passkeys.find(({ credentialId }) => credentialId === made.credentialId)
    if (passkey === undefined) return refusalReply('internal_error')
    const json: PasskeyMade = { passkey: formatPasskey(passkey), recoveryCodes: reply.takesCodes ? codes : null }
    return { status: 201, json }
  }
}

/** PATCH /dashboard/api/me/passkeys/{passkeyId} */
export function makePatchPasskey(deps: DashboardDeps): DashboardHandler<'patchPasskey'> {
  return async (request) => {
    const user = await mayChange(deps, request)
    if (!('userId' in user)) return user
    const passkeyId = passkeyIdOf(request)
    const change = { kind: 'rename', passkeyId, name: request.body.name } as const
    const { reply, answer } = await changeFactors(deps, request, { user, step: null, change })
    const passkey = reply?.passkeys.find((one) => one.passkeyId === passkeyId)
    return answer ?? (passkey === undefined ? refusalReply('not_found') : { status: 200, json: formatPasskey(passkey) })
  }
}

/** DELETE /dashboard/api/me/passkeys/{passkeyId} */
export function makeDeletePasskey(deps: DashboardDeps): DashboardHandler<'deletePasskey'> {
  return (request) => remove(deps, request, { kind: 'remove-passkey', passkeyId: passkeyIdOf(request) })
}

/** POST /dashboard/api/me/recovery-codes, after which the previous codes stop working. */
export function makeCreateRecoveryCodes(deps: DashboardDeps): DashboardHandler<'createRecoveryCodes'> {
  return async (request) => {
    const user = await mayChange(deps, request)
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

/** The stored form of recovery codes. */
function hashed({ secrets }: DashboardDeps, { userId }: User, codes: readonly string[]): string[] {
  return codes.map((code) => secrets.recoveryHmac(userId, parseRecoveryCode(code) ?? ''))
}

/** The step that this session has begun. */
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
  const user = await mayChange(deps, request)
  if (!('userId' in user)) return user
  const isTaken = await isFactorTaken(deps, user)
  if (isTaken === null) return refusalReply('unavailable')
  const { answer, refused } = await changeFactors(deps, request, { user, step: null, change, mayBeLast: !isTaken })
  if (refused?.code === 'second_factor_required') return refusalReply('second_factor_required', {}, LAST_ONE)
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

/**
 * The user of a request about factors. A user with a factor must have just used one, because a password alone is not
 * enough.
 */
async function mayChange(deps: DashboardDeps, request: DashboardRequest): Promise<User | Answer> {
  const user = await readOwnUser(deps, request)
  if (!('userId' in user) || !hasFactor(user)) return user
  const { factorMs } = sessionOf(request).row
  return factorMs > deps.nowMs() ? user : refusalReply('confirmation_required', {}, SHOW_FACTOR)
}

interface Asked extends Pick<ChangeFactorsBody, 'change'> {
  readonly user: User
  readonly step: Challenge | null
  readonly mayBeLast?: boolean
}

/**
 * Changes the factors of a request's user: it is logged, and the session counts as verified. Adding the first one ends
 * the other sessions: before it, and those begun in the meantime after it; one that cannot be ended stays on the list.
 */
async function changeFactors(
  deps: DashboardDeps,
  request: DashboardRequest,
  { user, step, change, mayBeLast = false }: Asked,
): Promise<Replied<FactorsChanged>> {
  const { userId, password } = user
  const { accountId, hash } = sessionOf(request)
  const row = await readNow(deps, request)
  if (!('sessionId' in row)) return { answer: row, refused: null }
  const { sessionId, factorMs } = row
  const isFirst = !hasFactor(user) && (change.kind === 'totp' || change.kind === 'passkey')
  const unended = isFirst ? await endOthers(deps, userId, sessionId) : null
  if (unended !== null) return { answer: unended, refused: null }
  const body: ChangeFactorsBody = {
    userId,
    step: step === null ? null : { id: step.id, endsAtMs: step.endsAtMs },
    change,
    expects: { password },
    sessionId,
    showsFactor: factorMs > deps.nowMs(),
    mayBeLast,
  }
  const changed = await giveOrder<FactorsChanged>(deps, homeShard(userId), { name: 'change-factors', body })
  if (changed.answer !== undefined) return changed
  await endSessions(deps, userId, changed.reply.ended)
  await noteOwn(deps, request)
  if (change.kind === 'totp' || change.kind === 'passkey')
    await noteSession(deps, accountId, { hash, isConfirmed: false, showsFactor: true })
  return changed
}

/** The current row of a request's session: while its body arrived it may have ended, or its confirmation expired. */
async function readNow({ read, nowMs }: DashboardDeps, request: DashboardRequest): Promise<SessionRow | Answer> {
  const { accountId, hash } = sessionOf(request)
  const shard = homeShard(accountId)
  const seen = await read(shard, [sessionFact(shard, hash)])
  if (seen === null) return refusalReply('unavailable')
  const row = sessionOfRow(new Map(SESSION_FIELDS.map((field, at) => [field, seen[0][at] ?? null])))
  if (row === null || sessionEndMs(row) <= nowMs()) return NOT_SIGNED_IN
  return row.confirmedMs > nowMs() ? row : refusalReply('confirmation_required')
}
