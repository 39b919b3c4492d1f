/**
 * note - what became of recipients of a broadcast, as the operator's log and figures tell it: ids and numbers alone
 *
 * Guarantee: the notes of a broadcast that has ended add up to its `total`, as far as a commit's notes were heard.
 */

import type { Note } from '../../../cluster/behaviour.ts'
import type { BroadcastState, Progress } from './broadcast.ts'

/** Recipients that a commit released or gave up. */
export interface BroadcastNote extends Note {
  readonly broadcastId: string
  readonly released: number
  readonly failed: number
  /** How it ended with them, and all of its recipients; null while it goes on. */
  readonly ended: BroadcastEnd | null
}

/** An end, as the log tells it. */
export interface BroadcastEnd {
  readonly result: 'completed' | 'cancelled'
  readonly released: number
  readonly failed: number
}

/** Whether a note tells of a broadcast. */
export function isBroadcastNote(note: Note): note is BroadcastNote {
  return 'broadcastId' in note
}

/** What a step has done. In: the counts before it and after it. */
export function stepNote(
  { broadcastId }: BroadcastState,
  { before, after }: { readonly before: Progress; readonly after: Progress },
): BroadcastNote {
  const { released, failed } = before
  return { broadcastId, released: after.released - released, failed: after.failed - failed, ended: null }
}

/** An end: what is left is never released. */
export function endNote(
  { broadcastId, total }: BroadcastState,
  progress: Progress,
  result: BroadcastEnd['result'],
): BroadcastNote {
  const { released } = progress
  const ended = { result, released, failed: total - released }
  return { broadcastId, released: 0, failed: ended.failed - progress.failed, ended }
}
