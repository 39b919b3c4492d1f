/**
 * event-message - whether the mail of a delivery was erased, in which case its receiver's answer is not stored
 *
 * A sent message was erased if its head is empty; a received one without content has no head. A head that has left
 * Redis with its segment may be an erased one: then nothing is kept either.
 *
 * Keys: `head:<server>:<segment>`, `received-head:<server>:<day>:<n>`
 *
 * Spec erasure.messages, erasure.received
 */

import { shortId } from '../../../cluster/id.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { MessageRows } from '../../state/message/row.ts'
import { contentHeadKey } from '../../state/received/content-head.ts'
import type { EventReference, MailReference } from '../../state/webhook/item.ts'

/** The place of a message's head. */
export interface HeadPlace {
  readonly key: string
  readonly field: string
}

/** Whether an event is one of mail, sent or received. */
export function isOfMail(reference: EventReference): reference is MailReference {
  return reference.kind === 'message' || reference.kind === 'inbound'
}

/** The place of the head of an event's message. */
export function headPlace(shard: number, serverId: string, reference: MailReference): HeadPlace {
  const { messageId, segment } = reference
  if (reference.kind === 'inbound')
    return { key: contentHeadKey(shard, serverId, messageId), field: shortId(messageId) }
  return new MessageRows(shard, { serverId, segment }).headPlace(messageId)
}

/** Whether the message of an event was erased. Takes its stored head, or null. */
export function isErasedMail({ kind }: Pick<MailReference, 'kind'>, head: string | null): boolean {
  if (head === null) return true
  return kind === 'message' && isErasedHead(unpackHead(head, 0))
}
