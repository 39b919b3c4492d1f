/**
 * totp - codes of an authenticator that follow from a secret and the time (RFC 6238, SHA-1, six digits, 30 seconds)
 *
 * Pure, with the time and the last used step as arguments. Each step is valid once (RFC 6238 5.2).
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { encodeBase32 } from '../../mail/base32.ts'

/** Size of a secret, as RFC 4226 4 requires for HMAC-SHA-1. */
export const TOTP_SECRET_BYTES = 20
const STEP_MS = 30_000
const DIGITS = 6
const CODE = /^\d{6}$/
/** The clocks of both sides may differ by a step (RFC 6238 5.2). */
const DRIFT = [0, -1, 1]

/** The number of the time step of an instant. */
export function totpStepAt(nowMs: number): number {
  return Math.floor(nowMs / STEP_MS)
}

/** The code of a step (RFC 4226 5.3). */
export function totpCode(secret: Buffer, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const mac = createHmac('sha1', secret).update(counter).digest()
  const at = (mac.at(-1) as number) & 0xf
  const number = (mac.readUInt32BE(at) & 0x7fffffff) % 10 ** DIGITS
  return String(number).padStart(DIGITS, '0')
}

/** The step of a code; null if it is not of a near unused step. Takes the last used step. */
export function findTotpStep(
  secret: Buffer,
  code: string,
  { nowMs, usedStep }: { readonly nowMs: number; readonly usedStep: number },
): number | null {
  if (!CODE.test(code)) return null
  const tried = Buffer.from(code)
  const steps = DRIFT.map((drift) => totpStepAt(nowMs) + drift)
  // All are compared, so that the time reveals nothing.
  const found = steps.filter((step) => timingSafeEqual(Buffer.from(totpCode(secret, step)), tried))
  return found.find((step) => step > usedStep) ?? null
}

/** The secret as people type it, and the URI for a QR code. Takes the displayed name. */
export function formatTotpSecret(
  secret: Buffer,
  { issuer, name }: { readonly issuer: string; readonly name: string },
): { readonly secret: string; readonly url: string } {
  const text = encodeBase32(secret).toUpperCase()
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(name)}`
  const query = new URLSearchParams({ secret: text, issuer, algorithm: 'SHA1', digits: String(DIGITS), period: '30' })
  // Authenticators take a space in a query as %20 only.
  return { secret: text, url: `otpauth://totp/${label}?${query.toString().replaceAll('+', '%20')}` }
}
