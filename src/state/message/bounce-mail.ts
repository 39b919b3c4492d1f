/**
 * bounce-mail - the reports about a message that its SMTP client asked for (RFC 3461), and the names of those that
 * wait.
 *
 * An item is named by its event, so a repeated decision gives the same report:
 * `<attempt item>!<place of the event, base 36>!<time of the event in ms, base 36>`
 *
 * Spec submission.reports
 */

import { HOUR_MS } from '../calendar.ts'
import type { ReportCount } from '../server.ts'
import { type AttemptItem, parseAttemptItem } from './item.ts'
import type { StatusEvent } from './status.ts'

/** The lane of reports. */
export const BOUNCE_MAIL_LANE = 'bounce-mail'
/** Reports of a server in an hour. */
const PER_HOUR_MAX = 100
/** A recipient whose mail waits longer is reported as delayed, once. */
const DELAY_MS = 4 * HOUR_MS

/** Bits of NOTIFY; `same`: ORCPT names the recipient itself. */
export const NOTIFY = { success: 1, failure: 2, delay: 4, same: 8 } as const

/** The reports that a client wants. */
export interface ReportsWanted {
  /** ENVID, printable ASCII; null if none was given. */
  readonly envid: string | null
  /** Bits of `NOTIFY`, one number for each recipient. */
  readonly notify: readonly number[]
}

/** A report that waits. */
export interface ReportItem {
  readonly attempt: AttemptItem
  /** Place of the event among those of the recipient. */
  readonly place: number
  readonly atMs: number
}

/** Whether an event is to be reported. Takes the recipient's bits, and its events before this one. */
export function isReported(
  event: StatusEvent,
  { notify, before, acceptedAtMs }: { notify: number; before: readonly StatusEvent[]; acceptedAtMs: number },
): boolean {
  if (event.event === 'delivered') return (notify & NOTIFY.success) !== 0
  if (event.event === 'bounced') return (notify & NOTIFY.failure) !== 0
  const isLate = (one: StatusEvent) => one.event === 'deferred' && one.occurredAtMs >= acceptedAtMs + DELAY_MS
  return (notify & NOTIFY.delay) !== 0 && isLate(event) && !before.some(isLate)
}

/** The count with one more report; null if the hour has no room. */
export function countBounceMail(known: ReportCount | undefined, nowMs: number): ReportCount | null {
  const hour = Math.floor(nowMs / HOUR_MS)
  const count = known !== undefined && known[0] >= hour ? known[1] : 0
  return count >= PER_HOUR_MAX ? null : [Math.max(hour, known?.[0] ?? 0), count + 1]
}

/** The bits of a recipient; 0 if no report is wanted. */
export function notifyOf(raw: { readonly reports?: ReportsWanted } | null, recipient: number): number {
  return raw?.reports?.notify[recipient] ?? 0
}

/** The name of a report. Takes the name of the recipient's item. */
export function formatReportItem(attempt: string, place: number, atMs: number): string {
  return `${attempt}!${place.toString(36)}!${atMs.toString(36)}`
}

/** Reads the name of a report. */
export function parseReportItem(item: string): ReportItem {
  const [attempt = '', place = '', atMs = ''] = item.split('!')
  return {
    attempt: parseAttemptItem(attempt),
    place: Number.parseInt(place, 36),
    atMs: Number.parseInt(atMs, 36),
  }
}
