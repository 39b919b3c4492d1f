/**
 * told-mail - whether the mail that a delivery tells of was erased: then nothing is kept of what its receiver says
 *
 * A sent message was erased when its head is empty; of a received one that has lost its content there is none.
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

/** Where the head of a message lies. */
export interface HeadPlace {
  readonly key: string
  readonly field: string
}

/** Whether an event is one of mail, sent or received. */
export function isOfMail(reference: EventReference): reference is MailReference {
  return reference.kind === 'message' || reference.kind === 'inbound'
}

/** Where the head of an event's message lies. */
export function headPlace(shard: number, serverId: string, reference: MailReference): HeadPlace {
  const { messageId, segment } = reference
  if (reference.kind === 'inbound')
    return { key: contentHeadKey(shard, serverId, messageId), field: shortId(messageId) }
  return new MessageRows(shard, { serverId, segment }).headPlace(messageId)
}

/** Whether the message of an event was erased. In: its head as it is stored; null: there is none. */
export function isErasedMail({ kind }: Pick<MailReference, 'kind'>, head: string | null): boolean {
  return kind === 'inbound' ? head === null : head !== null && isErasedHead(unpackHead(head, 0))
}
