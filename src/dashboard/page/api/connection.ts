/**
 * connection - whether the service can be reached, and the retry of what could not be read while it was not
 *
 * Found out by a request without an answer. From then on a page is asked for every few seconds, and with its first
 * answer everything that failed is read again.
 */
import { signal } from '@preact/signals'
import { gates } from './call.ts'

/** Whether requests get no answer. */
export const isLost = signal(false)
/** How many times the connection came back. */
export const returns = signal(0)

const RETRY_MS = 3_000
/** A probe without an answer has failed. */
const PROBE_MS = 10_000

let isProbing = false

/** Notes that a request got no answer, and asks until one does. */
export function noteLost(): void {
  if (isProbing) return
  isProbing = true
  isLost.value = true
  setTimeout(() => void retry(), RETRY_MS)
}

/** Finds out whether the service can be reached, after a feed broke off. */
export async function probe(): Promise<void> {
  if (!isProbing && !(await isReached())) noteLost()
}

async function retry(): Promise<void> {
  if (document.hidden || !(await isReached())) {
    setTimeout(() => void retry(), RETRY_MS)
    return
  }
  isProbing = false
  isLost.value = false
  returns.value += 1
}

/** Any answer of the service itself will do; a proxy without it answers 502 to 504. */
async function isReached(): Promise<boolean> {
  try {
    const { status } = await fetch(gates.probe, { method: 'HEAD', signal: AbortSignal.timeout(PROBE_MS) })
    return status < 500
  } catch {
    return false
  }
}
