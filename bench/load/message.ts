/**
 * message - the message sent to every contestant: a small receipt of 0.9 KB to one of 20,000 addresses
 *
 * Request n goes to address n modulo their number, with key n modulo the number of keys, so one account meets all the
 * addresses and a thousand accounts twenty each, and both know the same number of persons in the end.
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Addresses that the load is spread over. */
export const ADDRESSES = 20_000
/** Where a generator writes the address's number, six digits. */
export const PLACE = '######'

const BODY_BYTES = 900

/** The contestant's data for a load generator. */
export interface Target {
  readonly port: number
  /** API keys, used in turn. */
  readonly keys: readonly string[]
  /** The domain that the message is from. */
  readonly domain: string
}

/** The body with `PLACE` in its recipient (once); its subject has 30 characters, its JSON 900 bytes. */
export function bodyTemplate(domain: string, recipient = `person${PLACE}@mail.example.com`): string {
  const message = {
    from: { email: `billing@${domain}`, name: 'Acme Billing' },
    to: [{ email: recipient, name: 'A. Customer' }],
    subject: 'Your receipt for order 4711-09',
    tag: 'receipt',
    metadata: { orderId: '4711-09', region: 'eu-west' },
    text: 'Thank you for your order. You find what you have bought below.',
    html: '<p>Thank you for your order. You find what you have bought below.</p>',
  }
  const missing = BODY_BYTES - Buffer.byteLength(JSON.stringify(message))
  const words = 'One pair of shoes, size 42, brown. '
  message.html += words.repeat(Math.ceil(missing / words.length)).slice(0, missing)
  return JSON.stringify(message)
}

/** Writes keys and body where wrk's script reads them. Returns their paths. */
export function writeLoadFiles(dir: string, target: Target): { keysPath: string; bodyPath: string } {
  const keysPath = join(dir, 'keys.txt')
  const bodyPath = join(dir, 'body.json')
  writeFileSync(keysPath, `${target.keys.join('\n')}\n`, { mode: 0o600 })
  writeFileSync(bodyPath, bodyTemplate(target.domain))
  return { keysPath, bodyPath }
}

/** The address's number in the form used in a body. */
export function formatPlace(address: number): string {
  return String(address).padStart(PLACE.length, '0')
}
