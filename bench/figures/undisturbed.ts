/**
 * undisturbed - repeats a measurement during which the host of a virtual machine gave its processors to others
 *
 * The criterion is the stolen share of the wanted processor time, never the measured figure, so a contestant that uses
 * more of the processor is not repeated sooner.
 */

import { setTimeout as pause } from 'node:timers/promises'

/**
 * A measurement, and the stolen share of the wanted processor time during it; null if the kernel does not report it.
 */
export interface Disturbed {
  readonly stolenPercent: number | null
}

/** A chain of three processes that wait for each other loses far more by it than this. */
const STOLEN_PERCENT_MAX = 3
const TRIES_MAX = 4
const REST_MS = 10_000

/**
 * Repeats `work` until it runs undisturbed, up to four times, and returns the run with the least stolen time. Takes a
 * callback for each repeated run, and a rest before it, in ms.
 */
export async function undisturbed<T extends Disturbed>(
  work: () => Promise<T>,
  { tell, restMs = REST_MS }: { tell: (disturbed: T) => void; restMs?: number },
): Promise<T> {
  let last = await work()
  let best = last
  for (let tries = 1; tries < TRIES_MAX && stolenOf(last) > STOLEN_PERCENT_MAX; tries++) {
    tell(last)
    await pause(restMs)
    last = await work()
    if (stolenOf(last) <= stolenOf(best)) best = last
  }
  return best
}

function stolenOf({ stolenPercent }: Disturbed): number {
  return stolenPercent ?? 0
}
