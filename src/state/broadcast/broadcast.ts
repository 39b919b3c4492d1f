/**
 * broadcast - one submission to many recipients on a broadcast stream: its definition and progress.
 *
 * States: accepted -> processing (the first message was released) -> completed; accepted or processing -> cancelled. It
 * may also be paused. Its texts are content (`content.ts`): this state has no address and no subject.
 *
 * Counters `broadcast:<id>`, while it is open: `{released, failed, bucket, after}`; at its end they are part of the
 * state.
 *
 * Spec broadcast.states, broadcast.read
 */

import type { Due, EntityType, Ref } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import type { BroadcastStatus } from '../../../schemas/broadcast.ts'
import { DAY_MS } from '../calendar.ts'
import type { LanePrefix } from '../message/item.ts'

/** A part of content that all messages of a broadcast share. */
export interface SharedPart {
  readonly part: string
  readonly chunks: number
}

export interface BroadcastState {
  readonly broadcastId: string
  readonly accountId: string
  readonly serverId: string
  readonly streamId: string
  readonly test: boolean
  readonly lane: LanePrefix
  /** The id of its content. */
  readonly contentId: string
  readonly parts: readonly SharedPart[]
  /** Buckets of recipients, each a separate part of content. */
  readonly buckets: number
  /** Person number and HMAC of the sender, and the domain that it sends from. */
  readonly sender: number
  readonly senderHmac: string
  readonly senderDomain: string
  readonly tagHash: string | null
  readonly status: BroadcastStatus
  /** Messages to be released, without the suppressed. */
  readonly total: number
  readonly suppressed: number
  readonly submittedAtMs: number
  /** When it begins; absent: at once. */
  readonly sendAtMs?: number
  readonly pausedAtMs: number | null
  /** Null while it is open. */
  readonly endedAtMs: number | null
  /** Set once it has ended. */
  readonly released: number
  readonly failed: number
}

export type BroadcastEvent =
  | { readonly type: 'created'; readonly broadcast: BroadcastState }
  | { readonly type: 'begun' }
  | { readonly type: 'paused'; readonly pausedAtMs: number }
  | { readonly type: 'resumed' }
  | {
      readonly type: 'ended'
      readonly status: 'completed' | 'cancelled'
      readonly released: number
      readonly failed: number
      readonly endedAtMs: number
    }

/** How far an open broadcast has come. */
export interface Progress {
  /** Messages that entered the log with an open recipient. */
  readonly released: number
  /** Messages whose recipient was suppressed since. */
  readonly failed: number
  /** The bucket that is being released, from 0. */
  readonly bucket: number
  /** HMAC of the last released recipient; '' before the first. */
  readonly after: string
}

/** The initial progress of a broadcast. */
export const NO_PROGRESS: Progress = { released: 0, failed: 0, bucket: 0, after: '' }
export const BROADCAST_FORGET_TIMER = 'broadcast-forget'

/** Days after which unreleased messages fail, because content must not be kept for ever. */
const LIVE_DAYS = 30
const TEST_DAYS = 7

export const broadcastEntity: EntityType<BroadcastState | null, BroadcastEvent> = {
  kind: 'broadcast',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'created') return event.broadcast
    if (state === null) return null
    if (event.type === 'begun') return { ...state, status: 'processing' }
    if (event.type === 'paused') return { ...state, pausedAtMs: event.pausedAtMs }
    if (event.type === 'resumed') return { ...state, pausedAtMs: null }
    const { type: _, ...ended } = event
    return { ...state, ...ended, pausedAtMs: null }
  },
}

export function broadcastRef(broadcastId: string): Ref {
  return { kind: 'broadcast', id: broadcastId }
}

/** Owner of an open broadcast's counters. */
export function broadcastOwner(broadcastId: string): string {
  return `broadcast:${broadcastId}`
}

/** When the remaining messages of a broadcast fail. */
export function broadcastEndsAtMs({ submittedAtMs, test }: Pick<BroadcastState, 'submittedAtMs' | 'test'>): number {
  return submittedAtMs + (test ? TEST_DAYS : LIVE_DAYS) * DAY_MS
}

/** Whether its time is still to come. */
export function isScheduled({ sendAtMs }: Pick<BroadcastState, 'sendAtMs'>, nowMs: number): boolean {
  return sendAtMs !== undefined && sendAtMs > nowMs
}

/** Whether it may still be cancelled, paused, released. */
export function isOpenBroadcast({ endedAtMs }: Pick<BroadcastState, 'endedAtMs'>): boolean {
  return endedAtMs === null
}

/** The public counts of its messages. Takes the counters of an open one. */
export function computeCounts(
  broadcast: BroadcastState,
  progress: Progress | null,
): { readonly released: number; readonly failed: number } {
  if (!isOpenBroadcast(broadcast)) return { released: broadcast.released, failed: broadcast.failed }
  return { released: progress?.released ?? 0, failed: progress?.failed ?? 0 }
}

/** A look whether an ended broadcast is past its age. */
export function forgetLookDue(broadcastId: string, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${BROADCAST_FORGET_TIMER}:${broadcastId}`, atMs }
}
