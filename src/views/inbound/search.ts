/**
 * received-search - a page of the messages that the key's server has received and for which every given filter holds,
 * newest first
 *
 * The log is walked from the newest entry down, segment by segment; an entry tells the stream, the envelope's sender
 * and a hash of the mailbox hash, the standing the rest. One call looks at a bounded number of messages and answers
 * what it has found by then.
 *
 * Keys: `key:<sha256>`, `stream:<id>`, `person:<account>`, `received-segments:<server>`, and those of `rows.ts`
 *
 * Spec inbound.search, inbound.summary
 */

import type { Entry, FactOf } from '../../../cluster/behaviour.ts'
import { homeShard, idOfEntry, shardOf } from '../../../cluster/id.ts'
import type { ReceivedSummary } from '../../../schemas/inbound.ts'
import { RECEIVED_LOOKED_AT_MAX } from '../../../schemas/limits.ts'
import { cutoffMs } from '../../state/age.ts'
import { firstPersonsKey, personKey, receivedKey, receivedSegmentsKey } from '../../state/keys.ts'
import { bucketOfHmac, unpackPerson } from '../../state/person.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { lowerBound, msOfBound, upperBound } from '../bound.ts'
import { entityFact, stateOf } from '../entity.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import type { Page } from '../newest.ts'
import { readTogether } from '../read-together.ts'
import { type LoggedReceived, loggedOf, readReceivedRows, type StoredReceived } from './rows.ts'
import { envelopeRecipientOf, formatReceivedSummary } from './shown.ts'

/** Segments of a server: more than can fill in 13 months. */
const SEGMENTS_MAX = 10_000
/** Entries of a read: the first is most often all that a page needs. */
const ENTRIES_FIRST = 200
const ENTRIES_MAX = 1_000
/** A page that holds something is not made to wait for more once so many messages were looked at. */
const LOOKED_AT_ENOUGH = 2_000

/** The filters; null where one is not given. */
export interface ReceivedFilter {
  readonly streamId: string | null
  /** HMAC of an address within the account. */
  readonly from: string | null
  /** An address in lower case. */
  readonly recipient: string | null
  readonly mailboxHash: { readonly text: string; readonly hash: string } | null
  readonly fromMs: number | null
  readonly toMs: number | null
}

export interface ReceivedSearchDeps {
  readonly read: Reader
  /** The store's time in ms. */
  readonly nowMs: () => number
  readonly inboundDomain: string
  /** Messages that one search looks at; by default as the contract says. */
  readonly lookedAtMax?: number
}

/** A page of received messages. */
export interface ReceivedPage {
  readonly messages: readonly ReceivedSummary[]
  readonly next: string | null
}

interface Walk {
  readonly shard: number
  readonly serverId: string
  /** Newest first. */
  readonly segments: readonly (readonly [name: string, firstMs: number])[]
  readonly from: string
  readonly to: string
  /** Person number that is asked for; null: any. */
  readonly sender: number | null
}

const NOTHING: ReceivedPage = { messages: [], next: null }

/** Searches. */
export async function searchReceived(
  deps: ReceivedSearchDeps,
  owner: ServerKey,
  { filter, page }: { readonly filter: ReceivedFilter; readonly page: Page },
): Promise<ReceivedPage | 'unauthorized' | 'unavailable' | 'stream_not_found'> {
  const nowMs = deps.nowMs()
  const walk = await begin(deps.read, owner, { filter, page, nowMs })
  if (walk === 'nothing') return NOTHING
  if (typeof walk === 'string') return walk
  const hits = await collect(deps, walk, { filter, limit: page.limit })
  if (hits === null) return 'unavailable'
  const at = { nowMs, inboundDomain: deps.inboundDomain }
  return { messages: hits.found.map((stored) => formatReceivedSummary(stored, at)), next: hits.next }
}

async function begin(
  read: Reader,
  owner: ServerKey,
  { filter, page, nowMs }: { filter: ReceivedFilter; page: Page; nowMs: number },
): Promise<Walk | 'unauthorized' | 'unavailable' | 'stream_not_found' | 'nothing'> {
  const { accountId, serverId } = owner
  const shard = homeShard(accountId)
  const { streamId, from } = filter
  const to = upperBound({ after: page.after, toMs: filter.toMs })
  // A stream of another shard is another account's, and its key name would not lie on this shard.
  const isHere = streamId !== null && shardOf(streamId) === shard
  const seen = await readTogether(read, shard, [
    [keyFact(shard, owner.hash), segmentsFact(shard, serverId, msOfBound(to))],
    from === null ? [] : personFacts(shard, accountId, from),
    isHere ? [entityFact(shard, streamRef(streamId))] : [],
  ])
  if (seen === null) return 'unavailable'
  const [[key, segments], [first, bucket], [found]] = seen
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const stream = stateOf<StreamState>(found)
  if (streamId !== null && (stream?.serverId !== serverId || stream.kind !== 'inbound')) return 'stream_not_found'
  const row = from === null ? null : (first?.[0] ?? bucket?.[0] ?? null)
  // Whoever has no number has sent nothing.
  if (from !== null && row === null) return 'nothing'
  const fromMs = Math.max(cutoffMs(nowMs, false), filter.fromMs ?? 0)
  const oldest = segments.findIndex(([, firstMs]) => firstMs <= fromMs)
  return {
    shard,
    serverId,
    segments: oldest < 0 ? segments : segments.slice(0, oldest + 1),
    from: lowerBound(fromMs),
    to,
    sender: row === null ? null : unpackPerson(row).number,
  }
}

function segmentsFact(shard: number, serverId: string, maxMs: number): FactOf<'sorted'> {
  const max = Math.min(maxMs, Number.MAX_SAFE_INTEGER)
  return { read: 'sorted', key: receivedSegmentsKey(shard, serverId), min: 0, max, count: SEGMENTS_MAX, newest: true }
}

/** Both places where the row of an HMAC may be. */
function personFacts(shard: number, accountId: string, hmac: string): FactOf<'fields'>[] {
  const keys = [firstPersonsKey(shard, accountId), personKey(shard, accountId, bucketOfHmac(hmac))]
  return keys.map((key) => ({ read: 'fields', key, fields: [hmac] }))
}

interface Hits {
  readonly found: readonly StoredReceived[]
  readonly next: string | null
}

/** Walks until the page is full, nothing is left or enough was looked at; null: the store did not answer. */
async function collect(
  { read, inboundDomain, lookedAtMax = RECEIVED_LOOKED_AT_MAX }: ReceivedSearchDeps,
  walk: Walk,
  { filter, limit }: { filter: ReceivedFilter; limit: number },
): Promise<Hits | null> {
  const found: StoredReceived[] = []
  let looked = 0
  let count = ENTRIES_FIRST
  let { to } = walk
  for (let at = 0; at < walk.segments.length; ) {
    const [segment] = walk.segments[at] as Walk['segments'][number]
    const isLastSegment = at === walk.segments.length - 1
    const asked = Math.min(count, lookedAtMax - looked)
    const entries = await readEntries(read, walk, { segment, to, count: asked })
    if (entries === null) return null
    looked += entries.length
    const isEnd = entries.length < asked
    const logged = entries.map((entry) => loggedOf(entry, { shard: walk.shard, segment }))
    const meant = logged.filter((one) => one !== null).filter((one) => entryPasses(one, filter))
    const stored = await readReceivedRows(read, walk, meant)
    if (stored === null) return null
    for (const message of stored) {
      if (!rowPasses(message, walk, { filter, inboundDomain })) continue
      found.push(message)
      if (found.length < limit) continue
      const isLast = isLastSegment && isEnd && message.messageId === stored.at(-1)?.messageId
      return { found, next: isLast ? null : message.messageId }
    }
    const last = entries.at(-1)
    if (isEnd && isLastSegment) return { found, next: null }
    if (last !== undefined && looked >= (found.length > 0 ? Math.min(lookedAtMax, LOOKED_AT_ENOUGH) : lookedAtMax))
      return { found, next: idOfEntry(last.id, walk.shard) }
    if (isEnd) at += 1
    else if (last !== undefined) to = `(${last.id}`
    count = ENTRIES_MAX
  }
  return { found, next: null }
}

async function readEntries(
  read: Reader,
  { shard, serverId, from }: Walk,
  { segment, to, count }: { segment: string; to: string; count: number },
): Promise<readonly Entry[] | null> {
  const key = receivedKey(shard, serverId, segment)
  const seen = await read(shard, [{ read: 'newest', key, from, to, count }])
  return seen === null ? null : seen[0]
}

function entryPasses({ entry }: LoggedReceived, { streamId, mailboxHash }: ReceivedFilter): boolean {
  if (streamId !== null && entry.streamId !== streamId) return false
  return mailboxHash === null || entry.plusHash === mailboxHash.hash
}

function rowPasses(
  stored: StoredReceived,
  { sender }: Walk,
  { filter, inboundDomain }: { filter: ReceivedFilter; inboundDomain: string },
): boolean {
  const { entry, standing } = stored
  if (sender !== null && entry.sender !== sender && standing.from !== sender) return false
  // Hashes are short: the text itself settles a collision.
  if (filter.mailboxHash !== null && standing.mailboxHash !== filter.mailboxHash.text) return false
  return filter.recipient === null || envelopeRecipientOf(stored, inboundDomain).toLowerCase() === filter.recipient
}
