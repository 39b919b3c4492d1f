/**
 * scheduled - how many recipients of a server wait for the time of their message.
 *
 * The counter is `[[UTC day, recipients], …]`, oldest day first. A recipient is counted at acceptance under the day of
 * its time, and removed with its first event. A day is dropped three days later in any case, because no recipient
 * waits longer, and a server whose mail was removed in the meantime gets its places back.
 *
 * Spec send.at
 */

import { DAY_MS } from './calendar.ts'

export type ScheduledDays = readonly (readonly [day: number, recipients: number])[]

const KEPT_DAYS = 3

/** Recipients that wait. */
export function countScheduled(days: ScheduledDays | undefined): number {
  return (days ?? []).reduce((sum, [, recipients]) => sum + recipients, 0)
}

/** The counter once `change` more (or less) recipients wait for `sendAtMs`. */
export function changeScheduled(
  days: ScheduledDays | undefined,
  { sendAtMs, change, nowMs }: { readonly sendAtMs: number; readonly change: number; readonly nowMs: number },
): ScheduledDays {
  const oldest = Math.floor(nowMs / DAY_MS) - KEPT_DAYS
  const kept = new Map((days ?? []).filter(([day]) => day >= oldest))
  const day = Math.floor(sendAtMs / DAY_MS)
  const after = (kept.get(day) ?? 0) + change
  if (after > 0) kept.set(day, after)
  else kept.delete(day)
  return [...kept].sort(([one], [other]) => one - other)
}
