/** until - waiting for a condition instead of sleeping. */
import { setTimeout as pause } from 'node:timers/promises'

const STEP_MS = 5
/** After half a second: who looks all the while takes the processor from what is waited for. */
const LONG_STEP_MS = 20
const LONG_MS = 500
/**
 * What is so on a machine that stands still for a while is so within this; a wait that comes to its end waits no
 * longer.
 */
const PATIENCE_MS = 60_000

/**
 * Waits until `condition` returns something true, and returns it.
 * @param timeoutMs how long at most where that is more than a minute; a shorter one says what is usual
 * @throws Error with the condition's text when the time is over; whatever the condition throws, at once
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
