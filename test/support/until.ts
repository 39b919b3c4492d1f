/** until - waiting for a condition instead of sleeping. */
import { setTimeout as pause } from 'node:timers/promises'

const STEP_MS = 5

/**
 * Waits until `condition` returns something true, and returns it.
 * @param timeoutMs how long at most
 * @throws Error with the condition's text when the time is over; whatever the condition throws, at once
 */
export async function until<T>(condition: () => T | Promise<T>, timeoutMs: number): Promise<NonNullable<T>> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const value = await condition()
    if (value) return value
    if (performance.now() >= endMs) throw new Error(`Not true within ${timeoutMs} ms: ${condition}`)
    await pause(STEP_MS)
  }
}
