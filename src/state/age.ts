/**
 * age - how long the data of a message is kept, in one place for its writers, readers and sweeps.
 *
 * Expired data is invisible at once and removed within a day.
 *
 * Spec retention.message, retention.content
 */

import {
  LOG_RETENTION_DAYS_MIN,
  LOG_RETENTION_MONTHS_MAX,
  SEND_AT_DAYS_MAX,
  UNSUBSCRIBE_LINK_DAYS,
} from '../../schemas/limits.ts'
import { computeCivilDate, DAY_MS, HOUR_MS, msOfCivil } from './calendar.ts'

const LIVE_MONTHS = LOG_RETENTION_MONTHS_MAX
/** Months for which figures stay, of live and of test servers. Spec retention.stats */
export const STATS_MONTHS = LIVE_MONTHS
const TEST_DAYS = 30
const LIVE_CONTENT_DAYS = 30
const TEST_CONTENT_DAYS = 7
/**
 * Attachments are removed with the last recipient. This is for recipients whose end was never reported: retries span 48
 * hours.
 */
const ATTACHMENT_LIFE_MS = 72 * HOUR_MS

/** A message waits up to 27 days for its time, its attempts end within 48 hours, and a link works for 60 days more. */
const LINK_DAYS = SEND_AT_DAYS_MAX + 3 + UNSUBSCRIBE_LINK_DAYS

/**
 * Messages submitted before this instant are gone. For live servers it is the same day and time 13 months earlier, or
 * as many as the log is kept for; or the end of that month if it is too short. It never decreases while `nowMs` rises.
 */
export function cutoffMs(nowMs: number, test: boolean, months = LIVE_MONTHS): number {
  if (test) return nowMs - TEST_DAYS * DAY_MS
  const { year, month, day } = computeCivilDate(nowMs)
  const then = year * 12 + month - 1 - months
  const target = { year: Math.floor(then / 12), month: (then % 12) + 1 }
  const nextMonth = { year: Math.floor((then + 1) / 12), month: ((then + 1) % 12) + 1, day: 1 }
  const sameDayMs = msOfCivil({ ...target, day }) + (nowMs - Math.floor(nowMs / DAY_MS) * DAY_MS)
  return Math.min(sameDayMs, msOfCivil(nextMonth), nowMs - LOG_RETENTION_DAYS_MIN * DAY_MS)
}

/** Whether a message is past its age. `months` is how long the log is kept. */
export function isPastAge(
  submittedAtMs: number,
  { nowMs, test, months = LIVE_MONTHS }: { nowMs: number; test: boolean; months?: number },
): boolean {
  return submittedAtMs < cutoffMs(nowMs, test, months)
}

/** Whether a message may be past its age: by the shortest time for which a log is kept. */
export function mayBePastAge(submittedAtMs: number, nowMs: number): boolean {
  return submittedAtMs < nowMs - TEST_DAYS * DAY_MS
}

/** Whether the unsubscribe links in a message work, even if it has left the log. */
export function hasLinks(submittedAtMs: number, nowMs: number): boolean {
  return submittedAtMs >= nowMs - LINK_DAYS * DAY_MS
}

/** A person last named before this instant is removed: no message names it, and no link of one works. */
export function personCutoffMs(nowMs: number, months: number): number {
  return Math.min(cutoffMs(nowMs, false, months), nowMs - LINK_DAYS * DAY_MS)
}

/** When text and html of a message end, in milliseconds. */
export function contentExpiresAtMs(submittedAtMs: number, test: boolean): number {
  return submittedAtMs + (test ? TEST_CONTENT_DAYS : LIVE_CONTENT_DAYS) * DAY_MS
}

/**
 * When attachment bytes of a message end at the latest, in milliseconds. On a test server they end with the text. In:
 * the time for which the message was scheduled, 0 if it was not.
 */
export function attachmentExpiresAtMs(submittedAtMs: number, of: { sendAtMs: number; test: boolean }): number {
  if (of.test) return contentExpiresAtMs(submittedAtMs, true)
  return Math.max(submittedAtMs, of.sendAtMs) + ATTACHMENT_LIFE_MS
}
