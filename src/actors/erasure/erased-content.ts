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
import type { Head } from '../../state/message/head.ts'
import { type BodyOwner, endBody, endFiles } from '../message/end-content.ts'

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
  const { nowMs } = context
  const { head, submittedAtMs, test } = message
  // A slice of bodies, and a day of objects, are kept a little longer than their content.
  if (contentExpiresAtMs(submittedAtMs, test) + DAY_MS < nowMs) return NOTHING
  const ended = endBody(context, message)
  const filesEndAtMs = attachmentExpiresAtMs(submittedAtMs, { sendAtMs: head.sendAtMs ?? 0, test })
  if (head.stored?.files !== true && filesEndAtMs + DAY_MS < nowMs) return ended
  const files = endFiles(context, message)
  return { ops: [...ended.ops, ...files.ops], due: [...ended.due, ...files.due], body: ended.body }
}
