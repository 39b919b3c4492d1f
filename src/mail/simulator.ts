/**
 * simulator - the outcome of an attempt on a test server, without any transmission.
 *
 * Every address is delivered, except at `simulator.test`, whose local parts name the outcome; text after a `+` is
 * ignored there, so that a suppressed address has any number of variants. Replies go through the real classifier.
 */

import { makeRefused } from './classify.ts'
import type { Outcome } from './outcome.ts'
import { makeDelivered } from './outcome.ts'

export const SIMULATOR_DOMAIN = 'simulator.test'
/** Milliseconds between the attempts of a simulated deferral. */
export const SIMULATED_RETRY_MS = 1000

const DELIVERED = '250 2.0.0 OK (test)'
const DEFERRED = '451 4.3.0 Temporary failure (test)'
/** Attempts that are deferred before the last one. */
const DEFERRALS = 2
const CODE_PATTERN = /^code-([45]\d\d)(?:-([45]\.\d{1,3}\.\d{1,3}))?$/

/** Replies that refuse for good, by local part. */
const REFUSALS = new Map([
  ['bounce', '550 5.1.1 No such user (test)'],
  ['hardbounce', '550 5.1.1 No such user (test)'],
  ['softbounce', '552 5.2.2 Mailbox full (test)'],
  ['blocked', '550 5.7.1 Blocked: the sending IP is on a block list (test)'],
])

/** The outcome of an attempt, counted from 1. Complaint and unsubscribe addresses are delivered. */
export function simulatedOutcome(input: { address: string; attempt: number }): Outcome {
  const script = findScript(input.address)
  if (script === null) return makeDelivered(250, DELIVERED)
  const isLate = input.attempt > DEFERRALS
  const refusal = REFUSALS.get(script) ?? formatCode(script)
  if (script === 'deferred')
    return isLate ? makeDelivered(250, DELIVERED) : makeRefused({ phase: 'rcpt', response: DEFERRED })
  if (script === 'expired') return makeExpired(isLate)
  if (refusal === null) return makeDelivered(250, DELIVERED)
  const outcome = makeRefused({ phase: 'rcpt', response: refusal })
  return outcome.result === 'deferred' && isLate ? makeDelivered(250, DELIVERED) : outcome
}

/** Whether mail to the address is complained about once it is delivered. */
export function isComplainant(address: string): boolean {
  return findScript(address) === 'complaint'
}

/** Whether who has the address clicks on one-click unsubscribe as soon as its mail is delivered. */
export function isUnsubscriber(address: string): boolean {
  return findScript(address) === 'unsubscribe'
}

/** Behaviour requested by an address, its local part without the part from `+`; null at any other domain. */
function findScript(address: string): string | null {
  const at = address.lastIndexOf('@')
  if (address.slice(at + 1).toLowerCase() !== SIMULATOR_DOMAIN) return null
  return address.slice(0, at).toLowerCase().replace(/\+.*$/, '')
}

function makeExpired(isLate: boolean): Outcome {
  const outcome = makeRefused({ phase: 'rcpt', response: DEFERRED })
  return isLate ? { ...outcome, result: 'bounced', expired: true } : outcome
}

/** `code-550-5.7.26` as a reply line, null for any other local part. */
function formatCode(script: string): string | null {
  const match = CODE_PATTERN.exec(script)
  if (!match) return null
  return match[2] === undefined ? match[1]! : `${match[1]} ${match[2]}`
}
