/**
 * received - reads a received message for GET /v1/inbound/{id} and its subresources, and for the `inbound` event
 *
 * A message of another server, of another account or past its age is not there.
 *
 * Keys: `key:<sha256>`, `received-segments:<server>`, and those of `rows.ts`
 *
 * Spec inbound.read, inbound.raw, inbound.attachment, inbound.event
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { homeShard, msOf, shardOf } from '../../../cluster/id.ts'
import type { ReceivedMessage } from '../../../schemas/inbound.ts'
import type { EventBody, InboundContent } from '../../../schemas/webhook.ts'
import type { ParsedContent } from '../../mail/mime/received-mail.ts'
import { computeMonth, monthStartMs } from '../../state/calendar.ts'
import { receivedSegmentsKey } from '../../state/keys.ts'
import type { ContentHead } from '../../state/received/content-head.ts'
import type { InboundReference } from '../../state/webhook/item.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import { readIsPast } from '../retention.ts'
import { readOneReceived, type StoredReceived } from './rows.ts'
import { formatInboundEvent, formatReceivedMessage, isContentKept } from './shown.ts'

/** Segments of one month: more than a server can fill. */
const SEGMENTS_MAX = 10_000

/** Reads the parsed form of a mail, as `readParsed` of store/received.ts. */
export type ParsedReader = (place: {
  readonly shard: number
  readonly serverId: string
  readonly head: ContentHead
}) => Promise<ParsedContent | 'damaged' | null | undefined>

export interface ReceivedDeps {
  readonly read: Reader
  readonly readParsed: ParsedReader
  /** The store's time in ms. */
  readonly nowMs: () => number
  readonly inboundDomain: string
}

/** A message and its shard. */
export interface FoundReceived {
  readonly shard: number
  readonly stored: StoredReceived
}

/** Finds a message of the key's server; or why it is not shown. */
export async function findReceived(
  { read, nowMs }: Pick<ReceivedDeps, 'read' | 'nowMs'>,
  owner: ServerKey,
  messageId: string,
): Promise<FoundReceived | 'unauthorized' | 'not_found' | 'unavailable'> {
  const shard = homeShard(owner.accountId)
  const serverId = owner.serverId
  const id = messageId.toLowerCase()
  const at = { atMs: msOf(id), nowMs: nowMs() }
  const isPast = shardOf(id) === shard ? await readIsPast(read, { ...owner, mode: 'live' }, at) : true
  if (isPast === null) return 'unavailable'
  const isHere = !isPast
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    ...(isHere ? [receivedSegmentsFact(shard, serverId, id)] : []),
  ])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const segment = seen[1]?.at(-1)?.[0]
  if (segment === undefined) return 'not_found'
  const stored = await readOneReceived(read, { shard, serverId }, { segment, messageId: id })
  if (stored === undefined) return 'unavailable'
  return stored === null ? 'not_found' : { shard, stored }
}

/**
 * The parsed form of a message whose content is kept. Out: null if there is none; undefined if the store did not
 * answer; or `damaged`.
 */
export async function readParsedContent(
  { readParsed, nowMs }: Pick<ReceivedDeps, 'readParsed' | 'nowMs'>,
  { shard, stored }: FoundReceived,
): Promise<ParsedContent | 'damaged' | null | undefined> {
  const { head, serverId } = stored
  return head !== null && isContentKept(stored, nowMs()) ? readParsed({ shard, serverId, head }) : null
}

/** One message of the key's server, whole; or why it is not shown. */
export async function readReceived(
  deps: ReceivedDeps,
  owner: ServerKey,
  messageId: string,
): Promise<ReceivedMessage | 'unauthorized' | 'not_found' | 'unavailable' | 'content_damaged'> {
  const found = await findReceived(deps, owner, messageId)
  if (typeof found === 'string') return found
  const parsed = await readParsedContent(deps, found)
  const { inboundDomain } = deps
  if (parsed === undefined) return 'unavailable'
  if (parsed !== 'damaged') return formatReceivedMessage(found.stored, parsed, { nowMs: deps.nowMs(), inboundDomain })
  const again = await confirmDamage(deps, owner, found)
  return typeof again === 'string'
    ? again
    : formatReceivedMessage(again.stored, null, { nowMs: deps.nowMs(), inboundDomain })
}

/**
 * Content that cannot be read may have been erased since its row was read. Out: `content_damaged` if the row still
 * names it, otherwise the message in its present state.
 */
export async function confirmDamage(
  deps: Pick<ReceivedDeps, 'read' | 'nowMs'>,
  owner: ServerKey,
  { stored }: FoundReceived,
): Promise<FoundReceived | 'unauthorized' | 'not_found' | 'unavailable' | 'content_damaged'> {
  const again = await findReceived(deps, owner, stored.messageId)
  if (typeof again === 'string') return again
  const { head } = again.stored
  const isNamed = head !== null && head.objectId === stored.head?.objectId && head.parsedId === stored.head.parsedId
  return isNamed && isContentKept(again.stored, deps.nowMs()) ? 'content_damaged' : again
}

/** The event of a received message; null if it was removed; undefined if a store did not answer. */
export async function readInboundEvent(
  deps: ReceivedDeps,
  { serverId, inboundContent }: { readonly serverId: string; readonly inboundContent: InboundContent },
  { segment, messageId }: InboundReference,
): Promise<EventBody | null | undefined> {
  const shard = homeShard(serverId)
  const stored = await readOneReceived(deps.read, { shard, serverId }, { segment, messageId })
  if (stored === null || stored === undefined) return stored
  const at = { nowMs: deps.nowMs(), inboundDomain: deps.inboundDomain }
  if (inboundContent === 'reference') return formatInboundEvent(stored, undefined, at)
  const parsed = await readParsedContent(deps, { shard, stored })
  if (parsed === undefined) return undefined
  // Without its text the event would describe an empty mail. The receiver reads the message instead, which reports the
  // damage.
  return formatInboundEvent(stored, parsed === 'damaged' ? undefined : parsed, at)
}

/** The segments from the beginning of the id's month up to the id; the last one contains it. */
export function receivedSegmentsFact(shard: number, serverId: string, id: string): FactOf<'sorted'> {
  const ms = msOf(id)
  const key = receivedSegmentsKey(shard, serverId)
  return { read: 'sorted', key, min: monthStartMs(computeMonth(ms)), max: ms, count: SEGMENTS_MAX }
}
