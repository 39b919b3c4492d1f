/**
 * factor-code - a code entered as a second factor: six digits of an authenticator, or a recovery code
 *
 * Spec session.factor
 */

import { randomBytes } from 'node:crypto'
import type { Shown } from '../../actors/dashboard/factor.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { User } from '../../state/dashboard/user.ts'
import { totpOwner } from '../../state/ring/sealed-values.ts'
import { NONCE_BYTES, openSecret, type SealingRing, sealSecret } from '../../state/ring/sealing.ts'
import { parseRecoveryCode } from './recovery-code.ts'
import { findTotpStep } from './totp.ts'

const DIGITS = /^\d{6}$/

/** The factor of a user's code; null if it is not usable now. */
export function readFactorCode(
  secrets: Pick<Secrets, 'recoveryHmac' | 'ring'>,
  user: User,
  { code, nowMs }: { readonly code: string; readonly nowMs: number },
): Shown | null {
  const digits = code.replaceAll(/\s/g, '')
  if (!DIGITS.test(digits)) {
    const recovery = parseRecoveryCode(code)
    const hmac = recovery === null ? null : secrets.recoveryHmac(user.userId, recovery)
    return hmac !== null && user.codes.includes(hmac) ? { kind: 'code', hmac } : null
  }
  const secret = user.totp === null ? null : openTotp(secrets.ring, user.userId, user.totp)
  const step = secret === null ? null : findTotpStep(secret, digits, { nowMs, usedStep: user.totpStep })
  return step === null ? null : { kind: 'totp', step }
}

/** Seals the secret of a user's authenticator as base64. It cannot be opened for a different user. */
export function sealTotp(ring: SealingRing, userId: string, secret: Buffer): string {
  const input = { secret, owner: totpOwner(userId), nonce: randomBytes(NONCE_BYTES) }
  return sealSecret(ring, input).toString('base64')
}

/** Opens a sealed secret; null if SECRET_KEY has changed. */
export function openTotp(ring: SealingRing, userId: string, sealed: string): Buffer | null {
  return openSecret(ring, { sealed: Buffer.from(sealed, 'base64'), owner: totpOwner(userId) })
}
