/**
 * last-end - with a message's last recipient its attachments go, and so does a message that came whole.
 *
 * Those in Redis go in the commit that ends the recipient; those in the content store by the lane `unlink`, which that
 * commit gives the order.
 *
 * Spec retention.attachments
 */

import type { Context, Due, Facts, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { headKey, statusKey } from '../../state/keys.ts'
import { attachmentEndOps, rawEndOps } from '../../state/message/content-part.ts'
import { unpackHead } from '../../state/message/head.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import { logEntryOf, logFact } from '../../state/message/log-entry.ts'
import { isOpen, statusField, unpackStatus } from '../../state/message/status.ts'
import { unlinkDue } from './unlink.ts'

export interface LastEnd {
  readonly ops: readonly Op[]
  readonly due: readonly Due[]
}

const NOTHING: LastEnd = { ops: [], due: [] }

/** What the end of a recipient makes of its message's attachments. In: the facts of its outcome. */
export function lastEnd(facts: Facts, context: Pick<Context, 'shard' | 'nowMs'>, item: AttemptItem): LastEnd {
  if (!item.hasAttachments) return NOTHING
  const { shard } = context
  const key = statusKey(shard, item.serverId, item.segment)
  const acceptedAtMs = msOf(item.messageId)
  for (let index = 0; index < item.recipients; index += 1) {
    if (index === item.recipient) continue
    const packed = facts.field(key, statusField(item.short, index))
    if (isOpen(unpackStatus(packed, acceptedAtMs).status)) return NOTHING
  }
  const head = facts.field(headKey(shard, item.serverId, item.segment), item.short)
  const logged = facts.range(logFact(shard, item))[0]
  const entry = logged === undefined ? null : logEntryOf(logged)
  if (head === null || entry === null) return NOTHING
  const { attachments, stored, raw } = unpackHead(head, item.recipients)
  if (stored?.files === true) return { ops: [], due: [unlinkDue(context, entry.contentId)] }
  if (raw !== null) return { ops: rawEndOps(shard, entry.contentId, raw.bytes), due: [] }
  const sizes = attachments.map(({ size }) => size)
  return { ops: attachmentEndOps(shard, entry.contentId, sizes), due: [] }
}
