/**
 * request-id - names a request: a uuid that rises with time, so that the record of a request is found by its id alone
 *
 * RFC 9562 5.7: 48 bits of Unix milliseconds, 12 of a count within the millisecond, and 62 that are drawn once for each
 * process. Nobody may do anything by knowing one.
 *
 * Spec request.id
 */

import { randomUUID } from 'node:crypto'

const COUNT_MAX = 0xfff
const TAIL_START = 18
const TAIL = randomUUID().slice(TAIL_START)

let lastMs = 0
let count = 0
let timed = ''

/** A new id, larger than every earlier one of this process, even if the clock goes back. */
export function newRequestId(nowMs: number = Date.now()): string {
  if (nowMs > lastMs) layTime(nowMs)
  else if (count < COUNT_MAX) count += 1
  else layTime(lastMs + 1)
  return `${timed}${count.toString(16).padStart(3, '0')}${TAIL}`
}

function layTime(ms: number): void {
  lastMs = ms
  count = 0
  const digits = Math.floor(ms).toString(16).padStart(12, '0')
  timed = `${digits.slice(0, 8)}-${digits.slice(8)}-7`
}
