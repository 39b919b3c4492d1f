/**
 * erased-content - removes the content of a message from all places
 *
 * Parts in Redis are unlinked by their names, which follow from the message, without checking that they exist. Objects
 * in the content store cannot be opened without their key, which is removed with the head; the lane `unlink` removes
 * the objects themselves.
 */

import type { Context, Due, Op } from '../../../cluster/behaviour.ts'
import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from '../../state/age.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { contentKey } from '../../state/keys.ts'
import { attachmentEndOps, BODY_PART, bodyPlace, chunksOf, rawEndOps } from '../../state/message/content-part.ts'
import type { Head } from '../../state/message/head.ts'
import { unlinkBodyDue, unlinkDue } from '../message/unlink.ts'

/** A message as far as its content goes. */
export interface ErasedMessage {
  readonly contentId: string
  readonly head: Head
  readonly submittedAtMs: number
  readonly test: boolean
  /** As built; null while that is not known. */
  readonly sizeBytes: number | null
}

/** The writes for erasing the content of messages. */
export interface ContentEnd {
  readonly ops: readonly Op[]
  readonly due: readonly Due[]
  /** A small body is in a hash with others. */
  readonly body: { readonly key: string; readonly field: string } | null
}

/** The text of a body can have this many times the bytes of the message, as Latin-1 becomes UTF-8. */
const BODY_GROWTH = 3
const BODY_CHUNKS_MAX = chunksOf(MESSAGE_BYTES_MAX)
const NOTHING: ContentEnd = { ops: [], due: [], body: null }

/** The writes and removals of one message's content; none for expired content. */
export function endContent(context: Pick<Context, 'shard' | 'nowMs'>, message: ErasedMessage): ContentEnd {
  const { shard, nowMs } = context
  const { contentId, head, submittedAtMs, test } = message
  const { stored, raw, attachments } = head
  // A slice of bodies, and a day of objects, are kept a little longer than their content.
  if (contentExpiresAtMs(submittedAtMs, test) + DAY_MS < nowMs) return NOTHING
  const due: Due[] = []
  const ops: Op[] = []
  if (stored?.body === true) due.push(unlinkBodyDue(context, { contentId, test }))
  else ops.push(...unlinks(shard, contentId, bodyChunks(message)))
  if (stored?.files === true) due.push(unlinkDue(context, contentId))
  else if (attachmentExpiresAtMs(Math.max(submittedAtMs, head.sendAtMs ?? 0)) + DAY_MS >= nowMs) {
    if (raw !== null) ops.push(...rawEndOps(shard, contentId, raw.bytes))
    const sizes = attachments.map(({ size }) => size)
    ops.push(...attachmentEndOps(shard, contentId, sizes))
  }
  return { ops, due, body: bodyPlace(shard, contentId, test) }
}

function unlinks(shard: number, contentId: string, chunks: number): Op[] {
  return Array.from({ length: chunks }, (_, chunk): Op => {
    return { key: contentKey(shard, contentId, BODY_PART, chunk), write: 'UNLINK', args: [] }
  })
}

/** Chunks that a body in Redis has at most. */
function bodyChunks({ head, sizeBytes }: ErasedMessage): number {
  // Content stored in addition to objects, and individual values of a broadcast, are small.
  if (head.stored !== null || head.broadcast !== null) return 1
  return sizeBytes === null ? BODY_CHUNKS_MAX : Math.min(BODY_CHUNKS_MAX, chunksOf(sizeBytes * BODY_GROWTH))
}
