/**
 * erased-content - removes the content of a message from all places
 *
 * Parts in Redis are unlinked by their names, which follow from the message, without checking that they exist. Objects
 * in the content store cannot be opened without their key, which is removed with the head; the lane `unlink` removes
 * the objects themselves.
 */

import type { Context, Due, Op } from '../../../cluster/behaviour.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from '../../state/age.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { attachmentEndOps, rawEndOps } from '../../state/message/content-part.ts'
import type { Head } from '../../state/message/head.ts'
import { type BodyOwner, endBody } from '../message/end-body.ts'
import { unlinkDue } from '../message/unlink.ts'

/** A message as far as its content goes. */
export interface ErasedMessage extends BodyOwner {
  readonly head: Head
  readonly submittedAtMs: number
}

/** The writes for erasing the content of messages. */
export interface ContentEnd {
  readonly ops: readonly Op[]
  readonly due: readonly Due[]
  /** A small body is in a hash with others. */
  readonly body: { readonly key: string; readonly field: string } | null
}

const NOTHING: ContentEnd = { ops: [], due: [], body: null }

/** The writes and removals of one message's content; none for expired content. */
export function endContent(context: Pick<Context, 'shard' | 'nowMs'>, message: ErasedMessage): ContentEnd {
  const { shard, nowMs } = context
  const { contentId, head, submittedAtMs, test } = message
  const { stored, raw, attachments } = head
  // A slice of bodies, and a day of objects, are kept a little longer than their content.
  if (contentExpiresAtMs(submittedAtMs, test) + DAY_MS < nowMs) return NOTHING
  const ended = endBody(context, message)
  const due: Due[] = [...ended.due]
  const ops: Op[] = [...ended.ops]
  if (stored?.files === true) due.push(unlinkDue(context, contentId))
  else if (attachmentExpiresAtMs(Math.max(submittedAtMs, head.sendAtMs ?? 0)) + DAY_MS >= nowMs) {
    if (raw !== null) ops.push(...rawEndOps(shard, contentId, raw.bytes))
    const sizes = attachments.map(({ size }) => size)
    ops.push(...attachmentEndOps(shard, contentId, sizes))
  }
  return { ops, due, body: ended.body }
}
