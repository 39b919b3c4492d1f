/**
 * search - a page of the messages of the key's server that every given filter holds for, newest first
 *
 * Steps: one read of key, stream, persons and segments; candidates by the walk of `scan.ts`; their entries, heads and
 * statuses; the addresses of the page. One call looks at a bounded number of messages and answers what it has found by
 * then.
 *
 * Keys: `key:<sha256>`, `stream:<id>`, `segments:<server>`, `person:<account>:<x…>`,
 * `log head status:<server>:<segment>`
 *
 * Spec message.search, message.summary
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { homeShard, shardOf } from '../../../cluster/id.ts'
import { MESSAGES_LOOKED_AT_MAX } from '../../../schemas/limits.ts'
import type { MessageSummary } from '../../../schemas/message.ts'
import { cutoffMs } from '../../state/age.ts'
import { segmentsKey } from '../../state/keys.ts'
import { spelledAddress } from '../../state/message/head.ts'
import { keepsContent } from '../../state/message/retention.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { lowerBound, msOfBound, upperBound } from '../bound.ts'
import { entityFact, parseState } from '../entity.ts'
import { keyFact, ownerOfRow, type Reader } from '../key.ts'
import type { Page } from '../newest.ts'
import { numberIn, personPlaces, readPersonMap } from '../person.ts'
import { readTogether } from '../read-together.ts'
import { readLogMonths } from '../retention.ts'
import { type MessageFilter, needsHead, type Passing, readPassing, type SearchOwner } from './filter.ts'
import { type Round, type Stretch, type Walk, walkMessages } from './scan.ts'
import { formatSummary, type StoredMessage } from './summary.ts'

/** Segments of a server: more than one can fill in 13 months. */
const SEGMENTS_MAX = 10_000
/** A page with at least one result ends after this number of messages was read. */
const LOOKED_AT_ENOUGH = 1_000
/** Candidates whose heads and statuses are read in one step, and the cost of a candidate that does not match. */
const CANDIDATES_AT_ONCE = 100
const CANDIDATES_MIN = 20
const CANDIDATE_WEIGHT = 5

export interface SearchDeps {
  readonly read: Reader
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** Messages that one search reads; the default is that of the contract. */
  readonly lookedAtMax?: number
}

/** A page of messages. */
export interface MessagePage {
  readonly messages: readonly MessageSummary[]
  readonly next: string | null
}

const NOTHING: Hits = { found: [], next: null }

/** The start of a search, with its walk and filter, or the reason why the page is empty. */
type Begin = Walk | 'unauthorized' | 'unavailable' | 'stream_not_found' | 'nothing'

/** Searches. */
export async function searchMessages(
  deps: SearchDeps,
  owner: SearchOwner,
  asked: { readonly filter: MessageFilter; readonly page: Page },
): Promise<MessagePage | 'unauthorized' | 'unavailable' | 'stream_not_found'> {
  const seen = await findAddressed(deps, owner, asked)
  if (typeof seen === 'string') return seen
  const messages = seen.found.map(({ stored, addresses }) => {
    // An erasure removes the subject and the content; otherwise content is kept until it expires.
    const isKept = stored.head.subject !== null && keepsContent(stored, deps.nowMs())
    return formatSummary(stored, addresses, isKept)
  })
  return { messages, next: seen.next }
}

/** A stored message, with the sender's address and that of each recipient. */
export interface AddressedMessage {
  readonly stored: StoredMessage
  readonly addresses: readonly string[]
}

/** The messages of a page as they are stored, with their addresses. */
export async function findAddressed(
  deps: SearchDeps,
  owner: SearchOwner,
  asked: { readonly filter: MessageFilter; readonly page: Page },
): Promise<
  | { readonly found: readonly AddressedMessage[]; readonly next: string | null }
  | 'unauthorized'
  | 'unavailable'
  | 'stream_not_found'
> {
  const hits = await findMessages(deps, owner, asked)
  if (typeof hits === 'string') return hits
  const { accountId } = owner
  const numbers = hits.found.flatMap(({ entry }) => [entry.sender, ...entry.recipients])
  const persons = await readPersonMap(deps.read, { shard: homeShard(accountId), accountId, numbers })
  if (persons === null) return 'unavailable'
  const found = hits.found.map((stored) => {
    const { entry, head } = stored
    const numbers = [entry.sender, ...entry.recipients]
    return { stored, addresses: numbers.map((one, place) => spelledAddress(head, place, persons.get(one) ?? '')) }
  })
  return { found, next: hits.next }
}

/** The messages of a page as they are stored. */
export async function findMessages(
  { read, nowMs, lookedAtMax = MESSAGES_LOOKED_AT_MAX }: SearchDeps,
  owner: SearchOwner,
  { filter, page }: { readonly filter: MessageFilter; readonly page: Page },
): Promise<Hits | 'unauthorized' | 'unavailable' | 'stream_not_found'> {
  const walk = await beginWalk(read, owner, { filter, page, nowMs: nowMs() })
  if (walk === 'nothing') return NOTHING
  if (typeof walk === 'string') return walk
  const hits = await collect(read, { owner, walk, filter, limit: page.limit, lookedAtMax, nowMs: nowMs() })
  return hits ?? 'unavailable'
}

/** The walk of a search from its page on. */
export async function beginWalk(
  read: Reader,
  owner: SearchOwner,
  { filter, page, nowMs }: { filter: MessageFilter; page: Pick<Page, 'after'>; nowMs: number },
): Promise<Begin> {
  const { accountId, serverId } = owner
  const shard = homeShard(accountId)
  const { streamId } = filter
  const to = upperBound({ after: page.after, toMs: filter.toMs })
  const hmacs = [filter.recipient, filter.from].filter((hmac) => hmac !== null)
  // A stream of another shard belongs to another account, and its key name would not be valid on this shard.
  const isHere = streamId !== null && shardOf(streamId) === shard
  const reading = readTogether(read, shard, [
    [segmentsFact(shard, serverId, msOfBound(to))],
    hmacs.flatMap((hmac) => personPlaces(shard, accountId, hmac)),
    isHere ? [entityFact(shard, streamRef(streamId))] : [],
    owner.hash === null ? [] : [keyFact(shard, owner.hash)],
  ])
  const [seen, months] = await Promise.all([reading, readLogMonths(read, accountId)])
  if (seen === null || months === null) return 'unavailable'
  const [[segments], rows, [found], [key]] = seen
  if (owner.hash !== null && ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const stream = parseState<StreamState>(found)
  if (streamId !== null && stream?.serverId !== serverId) return 'stream_not_found'
  const places = rows.length / hmacs.length
  const numbers = hmacs.map((_, index) => numberIn(rows.slice(index * places, (index + 1) * places)))
  // A person without a number is on no message.
  if (numbers.includes(null)) return 'nothing'
  const recipient = filter.recipient === null ? null : (numbers[0] ?? null)
  const sender = filter.from === null ? null : (numbers.at(-1) ?? null)
  const cutoff = cutoffMs(nowMs, owner.mode === 'test', months)
  return {
    shard,
    serverId,
    segments: stretchesOf(segments, Math.max(cutoff, filter.fromMs ?? 0)),
    from: lowerBound(Math.max(cutoff, filter.fromMs ?? 0)),
    to,
    sought: { recipient, sender, tagHash: filter.tag?.hash ?? null },
  }
}

function segmentsFact(shard: number, serverId: string, maxMs: number): FactOf<'sorted'> {
  const max = Math.min(maxMs, Number.MAX_SAFE_INTEGER)
  return { read: 'sorted', key: segmentsKey(shard, serverId), min: 0, max, count: SEGMENTS_MAX, newest: true }
}

/** The segments, newest first, down to the one that may contain the earliest instant. */
function stretchesOf(rows: readonly (readonly [string, number])[], fromMs: number): Stretch[] {
  const oldest = rows.findIndex(([, firstMs]) => firstMs <= fromMs)
  const reached = oldest < 0 ? rows : rows.slice(0, oldest + 1)
  return reached.map(([name, firstMs]) => ({ name, firstMs }))
}

/** What a page has found, as it is stored. */
export interface Hits {
  readonly found: readonly StoredMessage[]
  readonly next: string | null
}

interface Search extends Passing {
  readonly limit: number
  readonly lookedAtMax: number
}

/** A page while it is filled. */
interface Filling {
  readonly found: StoredMessage[]
  looked: number
}

/** Walks until the page is full, the log ends or the bound is reached; null if the store did not answer. */
async function collect(read: Reader, search: Search): Promise<Hits | null> {
  const { walk, lookedAtMax } = search
  const page: Filling = { found: [], looked: 0 }
  const { found } = page
  let next: string | null = null
  for await (const round of walkMessages(read, walk, lookedAtMax)) {
    const end = round === null ? null : await fillFrom(read, search, { round, page })
    if (round === null || end === null) return null
    if (end !== 'goes on') return { found, next: end.next }
    next = round.isEnd ? null : round.last
    if (page.looked >= (found.length > 0 ? Math.min(lookedAtMax, LOOKED_AT_ENOUGH) : lookedAtMax)) break
  }
  return { found, next }
}

/**
 * Takes what passes of one round onto the page. Out: the end of the page, if it is reached; null if the store did not
 * answer.
 */
async function fillFrom(
  read: Reader,
  search: Search,
  { round, page }: { round: Round; page: Filling },
): Promise<{ readonly next: string | null } | 'goes on' | null> {
  const { filter, limit, lookedAtMax } = search
  page.looked += round.looked
  for (let start = 0; start < round.found.length; ) {
    const slice = round.found.slice(start, start + sliceSize(filter, limit - page.found.length))
    start += slice.length
    const step = await readPassing(read, search, slice)
    if (step === null) return null
    const { passed } = step
    const taken = passed.slice(0, limit - page.found.length)
    page.found.push(...taken)
    page.looked += (step.read - passed.length) * (CANDIDATE_WEIGHT - 1)
    const last = taken.at(-1)?.messageId ?? null
    if (page.found.length === limit) return { next: isLastOf(round, last) ? null : last }
    if (page.looked >= lookedAtMax && start < round.found.length) return { next: slice.at(-1)?.messageId ?? round.last }
  }
  return 'goes on'
}

/** How many candidates are read at once. If the entry alone decides, only as many are read as are shown. */
function sliceSize(filter: MessageFilter, missing: number): number {
  return needsHead(filter) ? CANDIDATES_AT_ONCE : Math.max(missing, CANDIDATES_MIN)
}

function isLastOf(round: Round, messageId: string | null): boolean {
  return round.isEnd && messageId === round.found.at(-1)?.messageId
}
