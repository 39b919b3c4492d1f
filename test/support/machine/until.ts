/** until - waiting for a condition instead of sleeping. */
import { setTimeout as pause } from 'node:timers/promises'

const STEP_MS = 5
/** After half a second. Constant checks would take the processor from the work that is waited for. */
const LONG_STEP_MS = 20
const LONG_MS = 500
/**
 * A condition that holds on a machine with occasional standstills holds within this time. A wait ends as soon as its
 * condition holds.
 */
const PATIENCE_MS = 60_000

/**
 * Waits until `condition` returns something true, and returns it.
 *
 * @param timeoutMs the longest wait if it is more than a minute; a shorter one documents the usual time
 * @throws Error with the condition's text when the time is over; any error of the condition, at once
 */
export async function until<T>(condition: () => T | Promise<T>, timeoutMs: number): Promise<NonNullable<T>> {
  const patienceMs = Math.max(timeoutMs, PATIENCE_MS)
  const startMs = performance.now()
  for (;;) {
    const value = await condition()
    if (value) return value
    const waitedMs = performance.now() - startMs
    if (waitedMs >= patienceMs) throw new Error(`Not true within ${patienceMs} ms: ${condition}`)
    await pause(waitedMs < LONG_MS ? STEP_MS : LONG_STEP_MS)
  }
}
