/**
 * age - how long what is kept of a message stays, in one place for those who write, read and remove it.
 *
 * Expired data is invisible at once and removed within a day.
 *
 * Spec retention.message, retention.content
 */

import { civilOf, DAY_MS, HOUR_MS, msOfCivil } from './calendar.ts'

const LIVE_MONTHS = 13
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

/**
 * Months after the one in which a person was last named before its row is removed; by then all messages with that
 * person are gone.
 */
export const PERSON_MONTHS = LIVE_MONTHS + 1

/**
 * Messages submitted before this instant are gone. For live servers it is the same day and time 13 months earlier, or
 * the end of that month if it is too short. It never decreases while `nowMs` rises.
 */
export function cutoffMs(nowMs: number, test: boolean): number {
  if (test) return nowMs - TEST_DAYS * DAY_MS
  const { year, month, day } = civilOf(nowMs)
  const then = year * 12 + month - 1 - LIVE_MONTHS
  const target = { year: Math.floor(then / 12), month: (then % 12) + 1 }
  const nextMonth = { year: Math.floor((then + 1) / 12), month: ((then + 1) % 12) + 1, day: 1 }
  const sameDayMs = msOfCivil({ ...target, day }) + (nowMs - Math.floor(nowMs / DAY_MS) * DAY_MS)
  return Math.min(sameDayMs, msOfCivil(nextMonth))
}

/** Whether a message is past its age. */
export function isPastAge(submittedAtMs: number, { nowMs, test }: { nowMs: number; test: boolean }): boolean {
  return submittedAtMs < cutoffMs(nowMs, test)
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
