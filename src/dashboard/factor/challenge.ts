/**
 * challenge - the token between two steps: what was shown so far, of whom, in which browser, until when
 *
 * It says all of itself under a MAC, so nothing is stored for who begins and goes away; that it was used is in the
 * store (`src/state/dashboard/challenge.ts`). Its id is random and is what a passkey signs.
 *
 * Spec session.factor, session.passkey
 */

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { SECOND_STEP_MINUTES } from '../../../schemas/limits.ts'
import { MINUTE_MS } from '../../state/calendar.ts'
import type { Step } from '../../state/dashboard/challenge.ts'
import type { User } from '../../state/dashboard/user.ts'

const ID_BYTES = 32
const TOKEN = /^([\w-]+)\.([\w-]{43})$/
const PRINT_CHARS = 22

export type ChallengeKind = 'sign-in' | 'passkey' | 'confirm' | 'add-totp' | 'add-passkey'

/** What a token says. */
export interface Challenge extends Step {
  readonly kind: ChallengeKind
  /** Null: the passkey says who it is. */
  readonly userId: string | null
  /** What only the browser, or the session, that began has. */
  readonly holder: string
  /** `sign-in`: print of the password that was there. */
  readonly password: string | null
  /** `sign-in`: the account that is gone into; null: the first. */
  readonly accountId: string | null
  /** `sign-in`: the link that makes a member of that account once the step is taken; null: none. */
  readonly linkId: string | null
  /** `add-totp`: the sealed secret. */
  readonly sealed: string | null
}

/** What may be said of a step that begins. */
export type BegunStep = Pick<Challenge, 'kind' | 'userId' | 'holder'> &
  Partial<Pick<Challenge, 'password' | 'accountId' | 'linkId' | 'sealed'>>

/** Makes a token, and says what is in it. */
export function makeChallenge(
  key: Buffer,
  begun: BegunStep,
  nowMs: number,
): { readonly token: string; readonly challenge: Challenge } {
  const challenge: Challenge = {
    password: null,
    accountId: null,
    linkId: null,
    sealed: null,
    ...begun,
    holder: printOf(begun.holder),
    id: randomBytes(ID_BYTES).toString('base64url'),
    endsAtMs: nowMs + SECOND_STEP_MINUTES * MINUTE_MS,
  }
  const text = Buffer.from(JSON.stringify(challenge)).toString('base64url')
  return { token: `${text}.${macOf(text, key).toString('base64url')}`, challenge }
}

/** Reads a token of one of some kinds; null where it was not made here, is somebody else's, or its time is over. */
export function parseChallenge(
  key: Buffer,
  token: string,
  of: { readonly kinds: readonly ChallengeKind[]; readonly holder: string | null; readonly nowMs: number },
): Challenge | null {
  const [, text = '', mac = ''] = TOKEN.exec(token) ?? []
  if (text === '' || of.holder === null || !timingSafeEqual(Buffer.from(mac, 'base64url'), macOf(text, key)))
    return null
  const challenge = JSON.parse(Buffer.from(text, 'base64url').toString()) as Challenge
  const isOurs = of.kinds.includes(challenge.kind) && challenge.holder === printOf(of.holder)
  return isOurs && challenge.endsAtMs > of.nowMs ? challenge : null
}

/** What tells whether a password is still the one that it was. */
export function passwordPrint({ password }: Pick<User, 'password'>): string {
  return printOf(password ?? '')
}

function printOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, PRINT_CHARS)
}

function macOf(text: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
