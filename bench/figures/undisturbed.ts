/**
 * undisturbed - repeats what was measured while the host beneath a virtual machine gave its processors to others
 *
 * What decides is the share of the wanted processor time that was stolen, never the figure that was measured: a
 * contestant that wants more of the processor is not repeated sooner.
 */

import { setTimeout as pause } from 'node:timers/promises'

/**
 * What was measured, and what of the wanted processor time was stolen meanwhile; null where the kernel does not say.
 */
export interface Disturbed {
  readonly stolenPercent: number | null
}

/** A chain of three processes that wait for each other loses far more by it than this. */
const STOLEN_PERCENT_MAX = 3
const TRIES_MAX = 4
const REST_MS = 10_000

/**
 * Does `work` until it was left alone, four times at most, and gives the run of which least was stolen. In: what is
 * told of each run that is repeated; a rest before it, in ms.
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
