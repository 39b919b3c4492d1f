/**
 * recovery-code - recovery codes for users who lost authenticator and passkeys: generation and normalization
 *
 * 50 random bits each; only their keyed hash is stored, so that the store holds nothing that works.
 *
 * Spec session.factor
 */

import { randomBytes } from 'node:crypto'
import { RECOVERY_CODES } from '../../../schemas/limits.ts'
import { encodeBase32 } from '../../mail/base32.ts'

const BYTES = 10
const CHARS = 10
const CODE = /^[a-z2-7]{10}$/

/** New codes, as they are shown: `abcde-fgh23`. */
export function makeRecoveryCodes(): string[] {
  return Array.from({ length: RECOVERY_CODES }, () => {
    const text = encodeBase32(randomBytes(BYTES)).slice(0, CHARS)
    return `${text.slice(0, CHARS / 2)}-${text.slice(CHARS / 2)}`
  })
}

/** A code in the form for hashing, however it was typed; null if malformed. */
export function parseRecoveryCode(text: string): string | null {
  const code = text.replaceAll(/[\s-]/g, '').toLowerCase()
  return CODE.test(code) ? code : null
}
