/**
 * complaint-threshold - stops a broadcast stream that too many people complain about.
 *
 * Counters `stream:<id>`: `hours`, of the current hour and the 24 before it, only hours with events, `[hour,
 * deliveries, complaints]`, hours since 1970, oldest first. Resuming a stream removes its counters, so that its window
 * restarts.
 *
 * Spec stream.brake
 */

import { BRAKE_COMPLAINTS_PER_THOUSAND, BRAKE_DELIVERIES_MIN } from '../../schemas/limits.ts'
import { HOUR_MS } from './calendar.ts'

type Hour = readonly [hour: number, deliveries: number, complaints: number]

/** Counters of a broadcast stream, which other streams do not have. */
export interface StreamCounters {
  readonly hours?: readonly Hour[]
  /** When the next message of a broadcast may be released, not rounded. */
  readonly nextMs?: number
}

/** The current hour and the 24 before it, because the last 24 hours begin within an hour. */
const WINDOW_HOURS = 25

/** Owner of a stream's counters. */
export function streamOwner(streamId: string): string {
  return `stream:${streamId}`
}

/** The counters with one delivery, or one complaint, more. */
export function countInWindow(
  counters: StreamCounters | null,
  what: 'delivery' | 'complaint',
  nowMs: number,
): StreamCounters {
  const hours = withinWindow(counters, nowMs)
  const last = hours.at(-1)
  // If the clock goes back, events count in the latest hour.
  const hour = Math.max(Math.floor(nowMs / HOUR_MS), last?.[0] ?? 0)
  const [, deliveries, complaints] = last?.[0] === hour ? last : [hour, 0, 0]
  const before = last?.[0] === hour ? hours.slice(0, -1) : hours
  const counted: Hour = what === 'delivery' ? [hour, deliveries + 1, complaints] : [hour, deliveries, complaints + 1]
  return { ...counters, hours: [...before, counted] }
}

/** Whether a stream with these counters must be stopped. */
export function isOverComplaintThreshold(counters: StreamCounters, nowMs: number): boolean {
  let deliveries = 0
  let complaints = 0
  for (const [, delivered, complained] of withinWindow(counters, nowMs)) {
    deliveries += delivered
    complaints += complained
  }
  return deliveries >= BRAKE_DELIVERIES_MIN && complaints * 1000 > deliveries * BRAKE_COMPLAINTS_PER_THOUSAND
}

function withinWindow(counters: StreamCounters | null, nowMs: number): readonly Hour[] {
  const first = Math.floor(nowMs / HOUR_MS) - WINDOW_HOURS + 1
  return (counters?.hours ?? []).filter(([hour]) => hour >= first)
}
