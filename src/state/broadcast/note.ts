/**
 * note - the outcome of recipients of a broadcast for the operator's log and metrics: only ids and numbers
 *
 * Guarantee: the notes of a broadcast that has ended add up to its `total`, as far as the notes of commits were
 * received.
 */

import type { Note } from '../../../cluster/behaviour.ts'
import type { BroadcastState, Progress } from './broadcast.ts'

/** Recipients that a commit released or gave up. */
export interface BroadcastNote extends Note {
  readonly broadcastId: string
  readonly released: number
  readonly failed: number
  /** How it ended, and the number of all its recipients; null while it continues. */
  readonly ended: BroadcastEnd | null
}

/** The end of a broadcast, for the log. */
export interface BroadcastEnd {
  readonly result: 'completed' | 'cancelled'
  readonly released: number
  readonly failed: number
}

/** Whether a note is about a broadcast. */
export function isBroadcastNote(note: Note): note is BroadcastNote {
  return 'broadcastId' in note
}

/** The result of a step. Takes the counts before and after it. */
export function stepNote(
  { broadcastId }: BroadcastState,
  { before, after }: { readonly before: Progress; readonly after: Progress },
): BroadcastNote {
  const { released, failed } = before
  return { broadcastId, released: after.released - released, failed: after.failed - failed, ended: null }
}

/** The end: the remaining messages are never released. */
export function endNote(
  { broadcastId, total }: BroadcastState,
  progress: Progress,
  result: BroadcastEnd['result'],
): BroadcastNote {
  const { released } = progress
  const ended = { result, released, failed: total - released }
  return { broadcastId, released: 0, failed: ended.failed - progress.failed, ended }
}
