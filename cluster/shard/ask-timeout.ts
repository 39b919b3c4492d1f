/** ask-timeout - how long an ask waits, and the condition that it waits for */
import { answerWork, type Work } from '../work.ts'
import type { InFlightCommit } from './in-flight-commit.ts'

/** An ask can be committed for this long. */
export const ASK_LIFE_MS = 4_000
/** An ask in a commit without a verdict is let go, unanswered, after this. */
const DOUBT_MAX_MS = 30_000
/** An ask that was never handed to a silent store is refused after this. */
const SILENCE_MAX_MS = 1_500
/** An outcome that the store does not take, as during a move, is sent again within this. */
export const RESEND_MS_MAX = 1_000

/** This moment by the store's clock and by the monotonic one, and the start of the store's silence. */
export interface Moment {
  readonly nowMs: number
  readonly atMs: number
  readonly silentMs: number
}

/** Whether an ask that is in no commit is refused. */
export function hasWaited({ deadlineMs, cameAtMs }: Work, { nowMs, atMs, silentMs }: Moment): boolean {
  return nowMs > deadlineMs || (silentMs > SILENCE_MAX_MS && atMs - cameAtMs > SILENCE_MAX_MS)
}

/** Whether a verdict comes too late for any caller, so that the callers are released without an answer. */
export function isHopeless({ sentAtMs }: InFlightCommit, { atMs }: Moment): boolean {
  return atMs - sentAtMs > DOUBT_MAX_MS
}

/**
 * Whether an ask takes part in no commit: it was answered in the meantime, or its deadline has passed, and then it is
 * refused now.
 */
export function isOver(work: Work, nowMs: number): boolean {
  const past = work.deadlineMs > 0 && work.deadlineMs <= nowMs
  if (work.source === 'mailbox') work.late ||= past
  if (work.source !== 'local') return false
  if (work.answer !== null && !past) return false
  answerWork(work, { kind: 'unavailable' })
  return true
}
