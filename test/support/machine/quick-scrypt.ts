/**
 * quick-scrypt - passwords that cost next to nothing, for tests with many sign-ins
 *
 * A hash takes a quarter of a second of the processor, on purpose. Only the tests of `dashboard/password.ts` are about
 * this cost. Here `scrypt` of `node:crypto` does a two-thousandth of the work, whatever its parameters. Hashes of the
 * two kinds never match each other.
 */
import crypto, { type BinaryLike, type ScryptOptions } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

/** As the product calls it. */
export type Scrypt = (
  password: BinaryLike,
  salt: BinaryLike,
  bytes: number,
  options: ScryptOptions,
  done: (fault: Error | null, hash: Buffer) => void,
) => void

/** The real one. */
export const scrypt: Scrypt = crypto.scrypt
const QUICK = { N: 16, p: 1 }
/** Tells it to a process that a test starts (`support/service/crash-host.ts`). */
const VARIABLE = 'QUICK_SCRYPT'

/** From now on, in this process and in those that it starts. */
export function quickenScrypt(): void {
  replaceScrypt(quickScrypt)
  process.env[VARIABLE] = '1'
}

/** The real one again. */
export function restoreScrypt(): void {
  replaceScrypt(scrypt)
  delete process.env[VARIABLE]
}

/** Whether who started this process has quickened it. */
export function isQuickened(): boolean {
  return process.env[VARIABLE] === '1'
}

/** Does next to nothing. */
export function quickScrypt(...[password, salt, bytes, options, done]: Parameters<Scrypt>): void {
  scrypt(password, salt, bytes, { ...options, ...QUICK }, done)
}

/** Puts another one in its place, in this process. */
export function replaceScrypt(other: Scrypt): void {
  Object.assign(crypto, { scrypt: other })
  syncBuiltinESMExports()
}
