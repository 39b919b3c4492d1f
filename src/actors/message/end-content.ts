/**
 * end-content - the writes that remove the text and the HTML of a message, or its attachments, before they expire.
 *
 * Parts in Redis are unlinked by their names, which follow from the message, without checking that they exist. Objects
 * in the content store are removed by the lane `unlink`. A body in a pack ends with the key in the head.
 */

import type { Context, Due, Op } from '../../../cluster/behaviour.ts'
import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { contentKey } from '../../state/keys.ts'
import { attachmentEndOps, BODY_PART, bodyPlace, countChunks, rawEndOps } from '../../state/message/content-part.ts'
import type { Head } from '../../state/message/head.ts'
import { deleteOps } from '../../state/message/row.ts'
import { unlinkBodyDue, unlinkFilesDue } from './unlink.ts'

/** A message as far as its body goes. */
export interface BodyOwner {
  readonly contentId: string
  readonly head: Pick<Head, 'stored' | 'broadcast'>
  readonly test: boolean
  /** As built; null while that is not known. */
  readonly sizeBytes: number | null
}

/** The writes that remove a body. */
export interface BodyEnd {
  readonly ops: readonly Op[]
  readonly due: readonly Due[]
  /** A small body is in a hash with others. */
  readonly body: { readonly key: string; readonly field: string }
}

/** The text of a body can have this many times the bytes of the message, as Latin-1 becomes UTF-8. */
const BODY_GROWTH = 3
const BODY_CHUNKS_MAX = countChunks(MESSAGE_BYTES_MAX)

/** The writes and removals of one body. */
export function endBody(context: Pick<Context, 'shard' | 'nowMs'>, message: BodyOwner): BodyEnd {
  const { shard } = context
  const { contentId, head, test } = message
  const isStored = head.stored?.body === true
  const isPacked = head.stored?.packed !== undefined
  return {
    ops: isStored || isPacked ? [] : unlinks(shard, contentId, bodyChunks(message)),
    due: isStored ? [unlinkBodyDue(context, { contentId, test })] : [],
    body: bodyPlace(shard, contentId, test),
  }
}

/** The same of several messages, their small bodies together. */
export function endBodies(
  context: Pick<Context, 'shard' | 'nowMs'>,
  messages: readonly BodyOwner[],
): { ops: Op[]; due: Due[] } {
  const ends = messages.map((message) => endBody(context, message))
  const fields = new Map<string, string[]>()
  for (const { body } of ends) fields.set(body.key, [...(fields.get(body.key) ?? []), body.field])
  return {
    ops: [...ends.flatMap(({ ops }) => ops), ...[...fields].flatMap(([key, some]) => deleteOps(key, some))],
    due: ends.flatMap(({ due }) => due),
  }
}

/** The writes that remove the attachments of a message, or a message that came whole. */
export function endFiles(
  context: Pick<Context, 'shard' | 'nowMs'>,
  message: { readonly contentId: string; readonly test: boolean; readonly head: FilesOfHead },
): { readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const { contentId, head } = message
  const { attachments, stored, raw } = head
  if (stored?.files === true) return { ops: [], due: [unlinkFilesDue(context, message)] }
  if (raw !== null) return { ops: rawEndOps(context.shard, contentId, raw.bytes), due: [] }
  const sizes = attachments.map(({ size }) => size)
  return { ops: attachmentEndOps(context.shard, contentId, sizes), due: [] }
}

type FilesOfHead = Pick<Head, 'attachments' | 'stored' | 'raw'>

function unlinks(shard: number, contentId: string, chunks: number): Op[] {
  return Array.from({ length: chunks }, (_, chunk): Op => {
    return { key: contentKey(shard, contentId, BODY_PART, chunk), write: 'UNLINK', args: [] }
  })
}

/** Chunks that a body in Redis has at most. */
function bodyChunks({ head, sizeBytes }: BodyOwner): number {
  // Content stored in addition to objects, and individual values of a broadcast, are small.
  if (head.stored !== null || head.broadcast !== null) return 1
  return sizeBytes === null ? BODY_CHUNKS_MAX : Math.min(BODY_CHUNKS_MAX, countChunks(sizeBytes * BODY_GROWTH))
}
