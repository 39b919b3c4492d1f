/** envelope - addresses and parameters of MAIL and RCPT, as the listener of submission accepts them */

import { domainToASCII } from 'node:url'
import type { SMTPServerAddress } from 'smtp-server'
import { parseAddress } from '../../mail/address.ts'

/** Parameters of MAIL that are offered, and the one that RFC 4954 5 wants wherever AUTH is. */
export const MAIL_PARAMETERS: ReadonlySet<string> = new Set(['SIZE', 'BODY', 'AUTH'])
/** RCPT offers none. */
export const NO_PARAMETERS: ReadonlySet<string> = new Set()

/** An address of the envelope in its canonical form; null if it is not valid. */
export function readRecipient({ address }: SMTPServerAddress): string | null {
  const at = address.lastIndexOf('@')
  const parsed = parseAddress(`${address.slice(0, Math.max(at, 0))}@${domainToASCII(address.slice(at + 1))}`)
  return parsed.ok ? parsed.address : null
}

/** Whether an address came with a parameter that is not among the known ones. */
export function hasOther({ args }: SMTPServerAddress, known: ReadonlySet<string>): boolean {
  return Object.keys(args || {}).some((name) => !known.has(name))
}
