/**
 * send-time - whether a message can be scheduled for a time, and when a recipient stops being scheduled.
 *
 * All attempts must fit within the retention of content, so the time is bounded. A time that has just passed means now.
 *
 * Spec send.at
 */

import { SEND_AT_DAYS_MAX, SEND_AT_PAST_SECONDS_MAX, TEST_SEND_AT_DAYS_MAX } from '../../../schemas/limits.ts'
import { DAY_MS } from '../../state/calendar.ts'
import type { RecipientState } from '../../state/message/status.ts'
import { changeScheduled } from '../../state/scheduled.ts'
import type { ServerCounters } from '../../state/server.ts'

/** `past` means that the time has passed. `late`: it is too far ahead. */
export type SendTimeFault = 'past' | 'late'

/**
 * The reason why a message cannot be scheduled for `sendAtMs`; null: it can. In: when the message was accepted; absent:
 * now. Another time does not prolong the retention of its content.
 */
export function sendTimeFault(
  sendAtMs: number,
  {
    test,
    nowMs,
    acceptedAtMs = nowMs,
  }: { readonly test: boolean; readonly nowMs: number; readonly acceptedAtMs?: number },
): SendTimeFault | null {
  if (sendAtMs < nowMs - SEND_AT_PAST_SECONDS_MAX * 1000) return 'past'
  return sendAtMs > acceptedAtMs + (test ? TEST_SEND_AT_DAYS_MAX : SEND_AT_DAYS_MAX) * DAY_MS ? 'late' : null
}

/** The counters of a server once the first thing happens to a recipient of a scheduled message. Spec send.at */
export function withoutScheduled(
  counters: ServerCounters,
  sendAtMs: number | null,
  { state, nowMs }: { readonly state: Pick<RecipientState, 'attempts' | 'events'>; readonly nowMs: number },
): ServerCounters {
  if (sendAtMs === null || state.attempts > 0 || state.events.length > 0) return counters
  return { ...counters, scheduled: changeScheduled(counters.scheduled, { sendAtMs, change: -1, nowMs }) }
}
