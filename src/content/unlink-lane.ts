/**
 * unlink-lane - the performer of removals: attachments whose message has ended leave the content store
 *
 * A few at a time, because a pending removal only takes space on a disk and delays no one.
 *
 * Spec retention.attachments
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import {
  prepareUnlink,
  UNLINK_LANE,
  type UnlinkJob,
  type UnlinkOutcome,
  unlinkOutcome,
} from '../actors/message/unlink.ts'
import type { Contents } from './contents.ts'

const REMOVALS_MAX = 64
/** Three tries at a store that does not answer are shorter. */
const HOLD_MS = 2 * 60_000

/**
 * The lane. Takes the store, or null if this process has none; an item then waits, and its object is removed with its
 * day.
 */
export function makeUnlinkLane(contents: Contents | null): LaneType {
  let underWay = 0
  const lane: LaneType<UnlinkJob, UnlinkOutcome> = {
    prefix: UNLINK_LANE,
    holdMs: HOLD_MS,
    claimsStand: false,
    prepare: prepareUnlink,
    outcome: unlinkOutcome,
    room: () => REMOVALS_MAX - underWay,
    async perform({ name }) {
      underWay += 1
      const removed = (await contents?.remove([name])) ?? false
      underWay -= 1
      return { removed }
    },
  }
  return lane as LaneType
}
