/**
 * search - a page of the messages that the key's server has received and for which every given filter holds,
 * newest first
 *
 * `walk.ts` returns the entries of candidates. An entry has the stream, the envelope's sender and a hash of the
 * mailbox hash; the other filters need the message's standing. One call looks at a bounded number of messages and
 * answers what it has found by then.
 *
 * Keys: `key:<sha256>`, `stream:<id>`, `person:<account>`, `received-segments:<server>`, and those of `walk.ts` and
 * `rows.ts`
 *
 * Spec inbound.search, inbound.summary
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { homeShard, shardOf } from '../../../cluster/id.ts'
import type { ReceivedSummary } from '../../../schemas/inbound.ts'
import { RECEIVED_LOOKED_AT_MAX } from '../../../schemas/limits.ts'
import { cutoffMs } from '../../state/age.ts'
import { receivedSegmentsKey } from '../../state/keys.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { lowerBound, msOfBound, upperBound } from '../bound.ts'
import { entityFact, parseState } from '../entity.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import type { Page } from '../newest.ts'
import { numberIn, personPlaces } from '../person.ts'
import { readTogether } from '../read-together.ts'
import { readLogMonths } from '../retention.ts'
import type { LoggedReceived } from './blocks.ts'
import { readReceivedRows, type StoredReceived } from './rows.ts'
import { envelopeRecipientOf, formatReceivedSummary } from './shown.ts'
import { POSTINGS_MAX, type ReceivedWalk, walkReceivedMail } from './walk.ts'

/** Segments of a server: more than can fill in 13 months. */
const SEGMENTS_MAX = 10_000
/** A page with at least one result ends after this number of messages was read. */
const LOOKED_AT_ENOUGH = 2_000

/** The filters; null for one that is not given. */
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
  /** Messages that one search reads; the default is that of the contract. */
  readonly lookedAtMax?: number
  /** In place of our own bound of a bucket. */
  readonly postingsMax?: number
}

/** A page of received messages. */
export interface ReceivedPage {
  readonly messages: readonly ReceivedSummary[]
  readonly next: string | null
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
): Promise<ReceivedWalk | 'unauthorized' | 'unavailable' | 'stream_not_found' | 'nothing'> {
  const { accountId, serverId } = owner
  const shard = homeShard(accountId)
  const { streamId, from } = filter
  const to = upperBound({ after: page.after, toMs: filter.toMs })
  // A stream of another shard belongs to another account, and its key name would not be valid on this shard.
  const isHere = streamId !== null && shardOf(streamId) === shard
  const reading = readTogether(read, shard, [
    [keyFact(shard, owner.hash), segmentsFact(shard, serverId, msOfBound(to))],
    from === null ? [] : personPlaces(shard, accountId, from),
    isHere ? [entityFact(shard, streamRef(streamId))] : [],
  ])
  const [seen, months] = await Promise.all([reading, readLogMonths(read, accountId)])
  if (seen === null || months === null) return 'unavailable'
  const [[key, segments], rows, [found]] = seen
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const stream = parseState<StreamState>(found)
  if (streamId !== null && (stream?.serverId !== serverId || stream.kind !== 'inbound')) return 'stream_not_found'
  const sender = numberIn(rows)
  // A person without a number has sent no message.
  if (from !== null && sender === null) return 'nothing'
  const fromMs = Math.max(cutoffMs(nowMs, false, months), filter.fromMs ?? 0)
  const oldest = segments.findIndex(([, firstMs]) => firstMs <= fromMs)
  return {
    shard,
    serverId,
    segments: oldest < 0 ? segments : segments.slice(0, oldest + 1),
    from: lowerBound(fromMs),
    to,
    sender,
    plusHash: filter.mailboxHash?.hash ?? null,
  }
}

function segmentsFact(shard: number, serverId: string, maxMs: number): FactOf<'sorted'> {
  const max = Math.min(maxMs, Number.MAX_SAFE_INTEGER)
  return { read: 'sorted', key: receivedSegmentsKey(shard, serverId), min: 0, max, count: SEGMENTS_MAX, newest: true }
}

interface Hits {
  readonly found: readonly StoredReceived[]
  readonly next: string | null
}

/** Walks until the page is full, the log ends or the bound is reached; null if the store did not answer. */
async function collect(
  { read, inboundDomain, lookedAtMax = RECEIVED_LOOKED_AT_MAX, postingsMax = POSTINGS_MAX }: ReceivedSearchDeps,
  walk: ReceivedWalk,
  { filter, limit }: { filter: ReceivedFilter; limit: number },
): Promise<Hits | null> {
  const found: StoredReceived[] = []
  let next: string | null = null
  let looked = 0
  for await (const round of walkReceivedMail(read, walk, { lookedAtMax, postingsMax })) {
    if (round === null) return null
    const meant = round.logged.filter((one) => entryPasses(one, filter))
    const stored = await readReceivedRows(read, walk, meant)
    if (stored === null) return null
    const passed = stored.filter((message) => rowPasses(message, walk, { filter, inboundDomain }))
    found.push(...passed.slice(0, limit - found.length))
    if (found.length === limit) {
      const last = (found.at(-1) as StoredReceived).messageId
      return { found, next: round.isEnd && last === stored.at(-1)?.messageId ? null : last }
    }
    next = round.isEnd ? null : round.last
    looked += round.looked
    if (found.length > 0 && looked >= LOOKED_AT_ENOUGH) break
  }
  return { found, next }
}

function entryPasses({ entry }: LoggedReceived, { streamId, mailboxHash }: ReceivedFilter): boolean {
  if (streamId !== null && entry.streamId !== streamId) return false
  return mailboxHash === null || entry.plusHash === mailboxHash.hash
}

function rowPasses(
  stored: StoredReceived,
  { sender }: ReceivedWalk,
  { filter, inboundDomain }: { filter: ReceivedFilter; inboundDomain: string },
): boolean {
  const { entry, standing } = stored
  if (sender !== null && entry.sender !== sender && standing.from !== sender) return false
  // Hashes are short, so the text itself settles a collision.
  if (filter.mailboxHash !== null && standing.mailboxHash !== filter.mailboxHash.text) return false
  return filter.recipient === null || envelopeRecipientOf(stored, inboundDomain).toLowerCase() === filter.recipient
}
