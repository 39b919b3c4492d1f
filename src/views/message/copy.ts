/**
 * copy - the copy of a stored message that its first recipient gets, in the form in which an attempt has it
 *
 * Recipients differ in their unsubscribe links alone, on broadcast streams.
 *
 * Keys: `person:<account>`, `person:<account>:<x…>`, `stream:<id>`
 *
 * Spec message.raw, retention.attachments
 */

import { homeShard } from '../../../cluster/id.ts'
import type { AttemptJob, JobAddress } from '../../actors/message/prepare-attempt.ts'
import { isErasedHead, spelledAddress } from '../../state/message/head.ts'
import { keepsContent } from '../../state/message/retention.ts'
import { isOpen } from '../../state/message/status.ts'
import { ERASED_DOMAIN } from '../../state/person/person.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader, ServerKey } from '../key.ts'
import { readPersons } from '../person.ts'
import type { StoredMessage } from './summary.ts'

/**
 * Whether text, HTML and attachments of a message can be read. On a live server attachments, and a message that came
 * whole, end with its last recipient.
 */
export function isContentWhole(stored: StoredMessage, nowMs: number): boolean {
  const { head, recipients, test } = stored
  if (isErasedHead(head) || !keepsContent(stored, nowMs)) return false
  const hasFiles = head.attachments.length > 0 || head.raw !== null
  return test || !hasFiles || recipients.some(({ status }) => isOpen(status))
}

/** The copy; `expired` if a person in it was erased. */
export async function readCopy(
  read: Reader,
  { accountId, serverId }: Pick<ServerKey, 'accountId' | 'serverId'>,
  stored: StoredMessage,
): Promise<AttemptJob | 'expired' | 'unavailable'> {
  const shard = homeShard(accountId)
  const { entry, head, streamId } = stored
  const [persons, streams] = await Promise.all([
    readPersons(read, { shard, accountId, numbers: [entry.sender, ...entry.recipients] }),
    read(shard, [entityFact(shard, streamRef(streamId))]),
  ])
  if (persons === null || streams === null) return 'unavailable'
  const [sender, ...recipients] = persons.map((address, place) => spelledAddress(head, place, address))
  const named = [sender, ...recipients.filter((_, index) => index === 0 || entry.kinds[index] !== 'bcc')]
  if (named.some((address) => !address || address.endsWith(ERASED_DOMAIN))) return 'expired'
  const stream = parseState<StreamState>(streams[0])
  const shown = (kind: 'to' | 'cc'): JobAddress[] =>
    recipients.flatMap((address, index) =>
      entry.kinds[index] === kind ? [{ address, name: head.recipientNames[index] ?? null }] : [],
    )
  const { messageId, submittedAtMs, test } = stored
  const { contentId, tagHash } = entry
  const { subject, headers, broadcast, attachments, raw, stored: objects } = head
  return {
    message: {
      ...{ messageId, accountId, serverId, streamId, test, tagHash, contentId, headers, broadcast, attachments, raw },
      acceptedAtMs: Math.max(submittedAtMs, head.sendAtMs ?? 0),
      isScheduled: false,
      hasReturnPath: false,
      keySinceMs: null,
      from: { address: sender ?? '', name: head.senderName },
      to: shown('to'),
      cc: shown('cc'),
      subject: subject ?? '',
      listName: stream?.kind === 'broadcast' ? stream.name : null,
      stored: objects,
      content: null,
    },
    recipient: { address: recipients[0] ?? '', index: 0 },
  }
}
