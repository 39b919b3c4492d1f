/** dead-score - the place of a delivery in sorted sets: its millisecond, and the order of ids within it. */

import { parseId } from '../../../cluster/id.ts'

/** Positions within a millisecond, from the remaining bits of a double. */
const SCORES_PER_MS = 4_096
/** The next score. */
export const DEAD_SCORE_STEP = 1 / SCORES_PER_MS

/** The score of a delivery: ms, and the order of ids within one millisecond. */
export function deadScore(deliveryId: string): number {
  const { ms, counter } = parseId(deliveryId)
  return ms + Math.min(counter, SCORES_PER_MS - 1) * DEAD_SCORE_STEP
}
