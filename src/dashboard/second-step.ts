/**
 * second-step - from the first factor to the session: a code or a passkey in between, or a passkey alone
 *
 * A user with a second factor who has entered a password or opened a mailed link gets a token instead of a session. It
 * is bound to this browser (by a cookie), works once, and not after a change of the password.
 *
 * Spec session.sign-in, session.factor, session.passkey, session.limits
 */

import { randomBytes } from 'node:crypto'
import { homeShard } from '../../cluster/id.ts'
import type { SecondFactor } from '../../schemas/dashboard/session.ts'
import { SECOND_STEP_MINUTES } from '../../schemas/limits.ts'
import type { Shown, TakeStepBody } from '../actors/dashboard/factor.ts'
import { readStep, stepHeader } from '../http/dashboard-edge.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import type { Step } from '../state/dashboard/challenge.ts'
import { confirmedUntilMs } from '../state/dashboard/session.ts'
import { factorsOf, hasFactor, type User } from '../state/dashboard/user.ts'
import { readUser } from '../views/dashboard/user.ts'
import type { DashboardDeps, DashboardHandler, DashboardRequest } from './deps.ts'
import { type Challenge, type ChallengeKind, makeChallenge, parseChallenge, passwordPrint } from './factor/challenge.ts'
import { readFactorCode } from './factor/factor-code.ts'
import { joinByLink } from './join.ts'
import { noteLimit, noteRefusal } from './login-audit.ts'
import { judgeTry, refuseTry } from './login-rate-limit.ts'
import { hasPasskey, optionsToShow, parseUserId, relyingParty, verifyShown } from './passkey.ts'
import { type Entrant, startSession } from './start-session.ts'

const STEP_S = SECOND_STEP_MINUTES * 60
const BROWSER_BYTES = 32

/** Opens a session after the first factor, or asks for the second. */
export async function enterOrAsk(deps: DashboardDeps, entrant: Omit<Entrant, 'factorMs'>): Promise<Answer> {
  const { user, accountId, cookies } = entrant
  return hasFactor(user)
    ? askFactor(deps, { user, accountId, linkId: null }, cookies)
    : startSession(deps, { ...entrant, factorMs: 0 })
}

/** Asks for the second step. Takes the link that makes a member of the account once the step is completed. */
export function askFactor(
  deps: DashboardDeps,
  { user, ...into }: { readonly user: User } & Pick<Challenge, 'accountId' | 'linkId'>,
  cookies: string,
): Answer {
  const begun = { kind: 'sign-in', userId: user.userId, password: passwordPrint(user), ...into } as const
  const { token, headers } = beginStep(deps, cookies, begun)
  const json: SecondFactor = { secondFactor: factorsOf(user), challenge: token }
  return { status: 200, json, headers }
}

/** Makes the token of a step, and the cookie that names the browser which takes it. */
function beginStep(
  { secrets, edge, nowMs }: DashboardDeps,
  cookies: string,
  begun: Omit<Parameters<typeof makeChallenge>[1], 'holder'>,
) {
  const browser = readStep(edge, cookies) ?? randomBytes(BROWSER_BYTES).toString('base64url')
  const made = makeChallenge(secrets.challengeKey, { ...begun, holder: browser }, nowMs())
  return { ...made, headers: { 'Set-Cookie': stepHeader(edge, browser, STEP_S) } }
}

/** POST /dashboard/api/session/code */
export function makeSignInByCode(deps: DashboardDeps): DashboardHandler<'signInByCode'> {
  return async (request) => {
    const { body, client, cookies } = request
    const begun = await readBegun(deps, request, ['sign-in'])
    if (begun === 'unavailable') return refusalReply('unavailable')
    const refused = await judgeTry(deps, 'sign-in', { client, address: begun?.user.address ?? null, cookies })
    if (refused !== null) {
      if (begun !== null && refused.isOfAddress) noteLimit(deps, begun.user.address)
      return refused.answer
    }
    if (begun === null) return refusalReply('sign_in_failed')
    const shown = readFactorCode(deps.secrets, begun.user, { code: body.code, nowMs: deps.nowMs() })
    return goOn(deps, request, { ...begun, shown })
  }
}

/** POST /dashboard/api/session/passkey/options: for a second step, or for any passkey. */
export function makeBeginPasskey(deps: DashboardDeps): DashboardHandler<'beginPasskey'> {
  return async (request) => {
    const party = relyingParty(deps)
    const { challenge: token } = request.body
    if (token === undefined) {
      const begun = beginStep(deps, request.cookies, { kind: 'passkey', userId: null })
      const options = optionsToShow(party, begun.challenge.id, null)
      return { status: 200, json: { options, challenge: begun.token }, headers: begun.headers }
    }
    const begun = await readBegun(deps, { ...request, body: { challenge: token } }, ['sign-in'])
    if (begun === 'unavailable') return refusalReply('unavailable')
    if (begun === null || begun.user.passkeys.length === 0) return refusalReply('sign_in_failed')
    return { status: 200, json: { options: optionsToShow(party, begun.challenge.id, begun.user), challenge: token } }
  }
}

/** POST /dashboard/api/session/passkey: it counts for its client only, so that others cannot lock it out. */
export function makeSignInByPasskey(deps: DashboardDeps): DashboardHandler<'signInByPasskey'> {
  return async (request) => {
    const { body, client, cookies } = request
    const refused = await refuseTry(deps, 'sign-in', { client, address: null, cookies })
    if (refused !== null) return refused
    const { credential } = body
    const begun = await readBegun(deps, request, ['sign-in', 'passkey'], parseUserId(credential))
    if (begun === 'unavailable') return refusalReply('unavailable')
    if (begun === null) return refusalReply('sign_in_failed')
    const { challenge, user } = begun
    // A foreign passkey is not recorded, because anyone who knows the user's id could fill the log.
    if (!hasPasskey(user, credential)) return refusalReply('sign_in_failed')
    const of = { credential, challenge: challenge.id, isAlone: challenge.kind === 'passkey' }
    return goOn(deps, request, { ...begun, shown: await verifyShown(relyingParty(deps), user, of) })
  }
}

interface Begun {
  readonly challenge: Challenge
  readonly user: User
}

/** The pending step of a request; null if this browser has none. `named` is the user in a passkey. */
async function readBegun(
  { read, secrets, edge, nowMs }: DashboardDeps,
  { body, cookies }: { readonly body: { readonly challenge: string }; readonly cookies: string },
  kinds: readonly ChallengeKind[],
  named: string | null = null,
): Promise<Begun | null | 'unavailable'> {
  const of = { kinds, holder: readStep(edge, cookies), nowMs: nowMs() }
  const challenge = parseChallenge(secrets.challengeKey, body.challenge, of)
  const userId = challenge?.userId ?? named
  if (challenge === null || userId === null) return null
  const user = await readUser(read, userId)
  if (user === null || user === 'unavailable') return user
  const isSame = challenge.password === null || challenge.password === passwordPrint(user)
  return isSame ? { challenge, user } : null
}

/** Completes the step with the used factor, and opens the session. A null factor was wrong. */
async function goOn(
  deps: DashboardDeps,
  { userAgent, cookies }: Pick<DashboardRequest, 'userAgent' | 'cookies'>,
  { challenge, user, shown }: Begun & { readonly shown: Shown | null },
): Promise<Answer> {
  const refused =
    shown === null ? refusalReply('sign_in_failed') : await spendFactor(deps, { user, shown, step: challenge })
  if (refused !== null) {
    const isWrong = 'status' in refused && refused.status === 401
    if (isWrong) noteRefusal(deps, challenge.accountId ?? user.accounts[0], user.userId)
    return refused
  }
  const { accountId, linkId } = challenge
  const { userId } = user
  const unjoined = linkId && accountId ? await joinByLink(deps, user, { linkId, accountId, userId }) : null
  if (unjoined !== null) return unjoined
  const accounts = accountId === null ? user.accounts : [...new Set([accountId, ...user.accounts])]
  const factorMs = confirmedUntilMs(deps.nowMs())
  const came = { user: { ...user, accounts }, accountId, userAgent, cookies }
  return startSession(deps, { ...came, isConfirmed: true, factorMs, sinceMs: null })
}

/** Uses a factor, also completing a step if given. Returns the refusal, or null. */
export async function spendFactor(
  deps: DashboardDeps,
  { user, shown, step }: { readonly user: User; readonly shown: Shown; readonly step: Step | null },
): Promise<Answer | null> {
  const { userId, password } = user
  const taken = step === null ? null : { id: step.id, endsAtMs: step.endsAtMs }
  const body: TakeStepBody = { userId, step: taken, expects: { password }, shown }
  const { answer } = await giveOrder(deps, homeShard(userId), { name: 'take-step', body })
  return answer ?? null
}
