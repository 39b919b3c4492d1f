/**
 * on-last-recipient - with a message's last recipient its attachments go, and so does a message that came whole; on
 * a test server they stay as long as the text.
 *
 * Those in Redis go in the commit that ends the recipient; those in the content store by the lane `unlink`, which that
 * commit gives the order.
 *
 * Spec retention.attachments
 */

import type { Context, Due, Facts, Op } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { unpackHead } from '../../state/message/head.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { isOpen, unpackStatus } from '../../state/message/status.ts'
import { isTestSegment } from '../../state/segment.ts'
import { endFiles } from './end-content.ts'

export interface LastRecipientWrites {
  readonly ops: readonly Op[]
  readonly due: readonly Due[]
}

const NOTHING: LastRecipientWrites = { ops: [], due: [] }

/** The effect of a recipient's final state on its message's attachments. Takes the facts of its outcome. */
export function onLastRecipient(
  facts: Facts,
  context: Pick<Context, 'shard' | 'nowMs'>,
  item: AttemptItem,
): LastRecipientWrites {
  if (!item.hasAttachments || isTestSegment(item.segment)) return NOTHING
  const { shard } = context
  const rows = new MessageRows(shard, item)
  const { short } = item
  const acceptedAtMs = msOf(item.messageId)
  for (let index = 0; index < item.recipients; index += 1) {
    if (index === item.recipient) continue
    const packed = rows.status(facts, { short, recipient: index })
    if (isOpen(unpackStatus(packed, acceptedAtMs).status)) return NOTHING
  }
  const head = rows.head(facts, short)
  const entry = rows.entry(facts, item.messageId)
  if (head === null || entry === null) return NOTHING
  return endFiles(context, { contentId: entry.contentId, test: false, head: unpackHead(head, item.recipients) })
}
