/**
 * packed - the text and HTML of sent mail in packs of the content store, once no attempt is left.
 *
 * A pack holds bodies of one server and one UTC day, each sealed by itself under a key of its own that the head of its
 * message holds. So an erasure that empties the head has erased the body, and a pack is never changed: it leaves with
 * its day. Each message is looked at twice: after an hour, when most have ended, and after three days, when attempts
 * are over. A body that still waits then stays in Redis and expires there.
 *
 * Counters: `pack:<server>`
 *
 * Objects: `<shard>/out/<day>/<leaf>`, under the day on which the content of the newest message ends
 */

import { isEntryIdAbove } from '../../../cluster/id.ts'
import { contentExpiresAtMs } from '../age.ts'
import { DAY_MS, dayName, HOUR_MS } from '../calendar.ts'
import { formatObjectName } from '../object-name.ts'

/** Ages at which messages are checked. */
export const LOOKS_MS = [HOUR_MS, 3 * DAY_MS] as const

/** Where a body lies. */
export interface PackedPlace {
  /** `<day>/<leaf>` of the pack. */
  readonly object: string
  /** Of the sealed body. */
  readonly from: number
  readonly length: number
}

export interface PackCounters {
  /** Of each look, the entry id behind which the next one begins. */
  readonly at: readonly string[]
  /** The pack that is being written, `<day>/<leaf>`; '' for none. */
  readonly writing: string
  /** Claims in a row after which no pack was written; absent: none. Their number sets the next wait. */
  readonly failures?: number
}

/** Owner of the counters. */
export function packOwner(serverId: string): string {
  return `pack:${serverId}`
}

/** Name of the pack `<day>/<leaf>` in the content store. */
export function packName(shard: number, object: string): string {
  const [day = '', leaf = ''] = object.split('/')
  return formatObjectName({ shard, tree: 'out', day, leaf })
}

/** The day of a pack whose messages are of the UTC day that ends at `endMs`. */
export function packDay(endMs: number, test: boolean): string {
  return dayName(contentExpiresAtMs(endMs - 1, test))
}

/** Where a look begins: behind the last one, and not with content that has ended. */
export function packFrom(
  counters: PackCounters | null,
  { look, nowMs, test }: { readonly look: number; readonly nowMs: number; readonly test: boolean },
): string {
  const oldest = `${nowMs - contentExpiresAtMs(0, test)}-0`
  const known = counters?.at[look]
  return known !== undefined && isEntryIdAbove(known, oldest) ? known : oldest
}
