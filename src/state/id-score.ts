/** id-score - the place of an id in a sorted set: its millisecond, and the order of ids within it. */

import { parseId } from '../../cluster/id.ts'

/** Positions within a millisecond, from the remaining bits of a double. */
const SCORES_PER_MS = 4_096
/** The next score. */
export const ID_SCORE_STEP = 1 / SCORES_PER_MS

/** The score of an id: ms, and the order of ids within one millisecond. */
export function idScore(id: string): number {
  const { ms, counter } = parseId(id)
  return ms + Math.min(counter, SCORES_PER_MS - 1) * ID_SCORE_STEP
}
