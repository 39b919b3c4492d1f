/**
 * day-count - what became of a live server's mail in the last 24 hours, by the hour.
 *
 * Counters `day:<server>`: `[[hour, delivered, bounced, complained], ...]`, hours since 1970, oldest first, of those
 * in which anything happened. They are written by the commits of outcomes, never by an acceptance.
 *
 * Spec account.detail
 */

import { HOUR_MS } from '../calendar.ts'
import type { StatusEvent } from './status.ts'

type Hour = readonly [hour: number, delivered: number, bounced: number, complained: number]

/** Counters as they are stored. */
export type DayCounters = readonly Hour[]

export type DayEvent = 'delivered' | 'bounced' | 'complained'

const WINDOW_HOURS = 24
const PLACES: Readonly<Record<DayEvent, number>> = { delivered: 1, bounced: 2, complained: 3 }

/** Owner of a server's day. */
export function dayOwner(serverId: string): string {
  return `day:${serverId}`
}

/** As what an event of a recipient counts; null: as nothing. What fails here or is suppressed was never sent. */
export function dayEventOf(event: StatusEvent): DayEvent | null {
  if (event.event === 'delivered') return 'delivered'
  if (event.event === 'spam_complaint') return 'complained'
  return event.event === 'bounced' && event.status === 'bounced' ? 'bounced' : null
}

/** The counters with one event more. A clock that goes back counts on in the hour it had come to. */
export function countInDay(counters: DayCounters | null, event: DayEvent, nowMs: number): DayCounters {
  const hours = withinDay(counters, nowMs)
  const last = hours.at(-1)
  const hour = Math.max(Math.floor(nowMs / HOUR_MS), last?.[0] ?? 0)
  const before = last?.[0] === hour ? hours.slice(0, -1) : hours
  const counted: [number, number, number, number] = last?.[0] === hour ? [...last] : [hour, 0, 0, 0]
  counted[PLACES[event]] = (counted[PLACES[event]] ?? 0) + 1
  return [...before, counted]
}

/** What the last 24 hours hold. */
export function dayCountOf(counters: DayCounters | null, nowMs: number): Readonly<Record<DayEvent, number>> {
  const sum = { delivered: 0, bounced: 0, complained: 0 }
  for (const [, delivered, bounced, complained] of withinDay(counters, nowMs)) {
    sum.delivered += delivered
    sum.bounced += bounced
    sum.complained += complained
  }
  return sum
}

function withinDay(counters: DayCounters | null, nowMs: number): readonly Hour[] {
  const first = Math.floor(nowMs / HOUR_MS) - WINDOW_HOURS + 1
  return (counters ?? []).filter(([hour]) => hour >= first)
}
