/**
 * segment-growth - counts the bytes that an open segment gains beyond the allowance of acceptance.
 *
 * Spec message.log
 */

import type { AttemptItem } from '../../state/message/item.ts'
import { type ServerCounters, serverOwner } from '../../state/server.ts'

/**
 * Counts the bytes by which statuses exceed the open segment's allowance, so that no key grows without bound.
 * `isChanged`: whether the counters are written in any case.
 */
export function countersAfterAttempt(
  counters: ServerCounters,
  { serverId, segment }: AttemptItem,
  grown: number,
  isChanged = false,
): { owner: string; value: ServerCounters }[] {
  const open = counters.segment
  if (grown <= 0 || open === undefined || open.name !== segment)
    return isChanged ? [{ owner: serverOwner(serverId), value: counters }] : []
  return [{ owner: serverOwner(serverId), value: { ...counters, segment: { ...open, bytes: open.bytes + grown } } }]
}
