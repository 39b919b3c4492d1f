/**
 * challenge - the token between two steps: the verified factor, the user, the browser, the expiry
 *
 * It contains everything under a MAC, so nothing is stored for an abandoned step; its use is recorded in the store
 * (`src/state/dashboard/challenge.ts`). Its id is random and is what a passkey signs.
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

/** Content of a token. */
export interface Challenge extends Step {
  readonly kind: ChallengeKind
  /** Null if the passkey identifies the user. */
  readonly userId: string | null
  /** A value that only the beginning browser, or session, has. */
  readonly holder: string
  /** `sign-in`: print of the password that was there. */
  readonly password: string | null
  /** For `sign-in`, the account to open; null for the first. */
  readonly accountId: string | null
  /** For `sign-in`, the link that makes a member of that account once the step is completed, or null. */
  readonly linkId: string | null
  /** For `add-totp`, the sealed secret. */
  readonly sealed: string | null
}

/** Optional content of a new step. */
export type BegunStep = Pick<Challenge, 'kind' | 'userId' | 'holder'> &
  Partial<Pick<Challenge, 'password' | 'accountId' | 'linkId' | 'sealed'>>

/** Makes a token, and returns its content. */
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
    holder: computePrint(begun.holder),
    id: randomBytes(ID_BYTES).toString('base64url'),
    endsAtMs: nowMs + SECOND_STEP_MINUTES * MINUTE_MS,
  }
  const text = Buffer.from(JSON.stringify(challenge)).toString('base64url')
  return { token: `${text}.${computeMac(text, key).toString('base64url')}`, challenge }
}

/** Reads a token of some kinds; null if it was not made here, belongs to another user, or has expired. */
export function parseChallenge(
  key: Buffer,
  token: string,
  of: { readonly kinds: readonly ChallengeKind[]; readonly holder: string | null; readonly nowMs: number },
): Challenge | null {
  const [, text = '', mac = ''] = TOKEN.exec(token) ?? []
  if (text === '' || of.holder === null || !timingSafeEqual(Buffer.from(mac, 'base64url'), computeMac(text, key)))
    return null
  const challenge = JSON.parse(Buffer.from(text, 'base64url').toString()) as Challenge
  const isOurs = of.kinds.includes(challenge.kind) && challenge.holder === computePrint(of.holder)
  return isOurs && challenge.endsAtMs > of.nowMs ? challenge : null
}

/** A value that changes with the password. */
export function passwordPrint({ password }: Pick<User, 'password'>): string {
  return computePrint(password ?? '')
}

function computePrint(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, PRINT_CHARS)
}

function computeMac(text: string, key: Buffer): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
