/**
 * unsubscribe - the target of an unsubscribe link: the recipient's item, and the sender of the mail
 *
 * Guarantees: the recipient's address is not read, so the page cannot show it.
 *
 * Keys: `server:<id>`, `segments:<server>`, `log head:<server>:<segment>`, `person:<account>:<x…>`
 *
 * Spec unsubscribe.page
 */

import type { Fact } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shardOf, shortId } from '../../../cluster/id.ts'
import type { UnsubscribeTarget } from '../../mail/unsubscribe-token.ts'
import { hasLinks } from '../../state/age.ts'
import { spelledAddress, unpackHead } from '../../state/message/head.ts'
import { itemPrefix, itemSuffix } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { ERASED_DOMAIN } from '../../state/person/person.ts'
import { leftSegment } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { entityFact, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import { readPersons } from '../person.ts'
import { readIsPast } from '../retention.ts'
import { segmentsFact } from './message.ts'
import { type Logged, readEntries, wholeHead } from './rows.ts'

/** Sender of a mail; '' and null if it was removed. */
export interface MailSender {
  readonly address: string
  readonly name: string | null
}

/** A recipient that a link names. */
export interface FoundClicker {
  readonly shard: number
  /** Name of its item. */
  readonly item: string
  readonly from: MailSender
}

/**
 * Finds the recipient of a link, which works for 60 days even if its message has left the log. Out: `gone` after that,
 * or if the server is removed.
 */
export async function findClicker(
  read: Reader,
  target: UnsubscribeTarget,
  nowMs: number,
): Promise<FoundClicker | 'gone' | 'unavailable'> {
  const { messageId, serverId, streamId } = target
  const shard = shardOf(messageId)
  if (shard === null || shardOf(serverId) !== shard || shardOf(streamId) !== shard) return 'gone'
  const seen = await read(shard, [entityFact(shard, serverRef(serverId))])
  if (seen === null) return 'unavailable'
  const server = parseState<ServerState>(seen[0])
  if (server === null) return 'gone'
  const isPast = await readIsPast(read, server, { atMs: msOf(messageId), nowMs })
  if (isPast === null) return 'unavailable'
  const found = isPast ? 'gone' : await findInLog(read, { shard, server, target })
  return found === 'gone' && hasLinks(msOf(messageId), nowMs) ? leftClicker(shard, server, target) : found
}

/** A recipient whose message has left the log; the link itself is sufficient. */
function leftClicker(shard: number, { mode, serverId }: ServerState, target: UnsubscribeTarget): FoundClicker {
  const { messageId, recipient, streamId } = target
  const of = { recipients: recipient + 1, hasAttachments: false, broadcastStreamId: streamId }
  const prefix = itemPrefix(serverId, leftSegment(mode === 'test'), shortId(messageId))
  return { shard, item: prefix + itemSuffix(recipient, of), from: { address: '', name: null } }
}

async function findInLog(
  read: Reader,
  {
    shard,
    server,
    target,
  }: { readonly shard: number; readonly server: ServerState; readonly target: UnsubscribeTarget },
): Promise<FoundClicker | 'gone' | 'unavailable'> {
  const { messageId, recipient, serverId } = target
  const segments = await read(shard, [segmentsFact(shard, server, messageId)])
  if (segments === null) return 'unavailable'
  const segment = (segments[0] as readonly (readonly [string, number])[]).at(-1)?.[0]
  if (segment === undefined) return 'gone'
  const candidate = { messageId, entryId: entryIdOf(messageId), segment, packed: null }
  const entries = await readEntries(read, { shard, serverId }, [candidate])
  if (entries === null) return 'unavailable'
  const [logged] = entries
  const streamId = logged?.entry.streamId
  if (logged === undefined || streamId == null || recipient >= logged.entry.recipients.length) return 'gone'
  const from = await readSender(read, { shard, server, logged })
  if (from === null) return 'unavailable'
  const of = { recipients: logged.entry.recipients.length, hasAttachments: false, broadcastStreamId: streamId }
  return { shard, item: itemPrefix(serverId, segment, shortId(messageId)) + itemSuffix(recipient, of), from }
}

async function readSender(
  read: Reader,
  { shard, server, logged }: { readonly shard: number; readonly server: ServerState; readonly logged: Logged },
): Promise<MailSender | null> {
  const { accountId, serverId } = server
  const { messageId, segment, entry } = logged
  const headFact: Fact = new MessageRows(shard, { serverId, segment }).headsFact([shortId(messageId)])
  const [persons, heads] = await Promise.all([
    readPersons(read, { shard, accountId, numbers: [entry.sender] }),
    read(shard, [headFact]),
  ])
  if (persons === null || heads === null) return null
  const [packed] = heads[0] as readonly (string | null)[]
  const [known = ''] = persons
  if (packed == null || known === '' || known.endsWith(ERASED_DOMAIN)) return { address: '', name: null }
  const head = await wholeHead(read, shard, unpackHead(packed, entry.recipients.length))
  if (head === undefined) return null
  return { address: spelledAddress(head, 0, known), name: head.senderName }
}
