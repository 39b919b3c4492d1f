/**
 * event-search - a page of a server's events for which every given filter holds, in the order in which they occurred
 *
 * The log of events holds references. The referenced rows are read in batches, and each event is built from them like
 * the body of a webhook; an event is left out if its message was removed. One search reads a bounded number of
 * events and returns the matches among them.
 *
 * Keys: `key:<sha256>`, `stream:<id>`, `event-slices:<server>`, `events:<server>:<slice>`, `person:<account>:<x…>`,
 * `log head status:<server>:<segment>`
 *
 * Spec event.search
 */

import type { Entry } from '../../../cluster/behaviour.ts'
import { entryIdOf, homeShard, idOfEntry, msOf, shardOf } from '../../../cluster/id.ts'
import { EVENTS_LOOKED_AT_MAX } from '../../../schemas/limits.ts'
import type { EventBody, EventName } from '../../../schemas/webhook.ts'
import { eventsKey } from '../../state/keys.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { eventCutoffMs, eventOfEntry, eventSlicesFact } from '../../state/webhook/event-log.ts'
import type { EventReference, MessageReference } from '../../state/webhook/item.ts'
import { lowerBound, msOfBound, upperBound } from '../bound.ts'
import { entityFact, parseState } from '../entity.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from '../key.ts'
import type { Page } from '../newest.ts'
import { numberIn, personPlaces, readPersonMap } from '../person.ts'
import { readTogether } from '../read-together.ts'
import { type EventReader, messageEvent } from './event.ts'
import { type Logged, readEntries, readStored } from './rows.ts'
import type { StoredMessage } from './summary.ts'

/** Slices of a server: several a day of the busiest one. */
const SLICES_MAX = 5_000
/** Events of one read of the log, and events built in one step. */
const ENTRIES_MAX = 1_000
const EVENTS_AT_ONCE = 100

/** The filters; null for one that is not given. */
export interface EventFilter {
  readonly events: readonly EventName[] | null
  readonly streamId: string | null
  readonly tag: { readonly text: string; readonly hash: string } | null
  readonly metadata: { readonly name: string; readonly value: string } | null
  readonly messageId: string | null
  /** HMAC of an address within the account. */
  readonly recipient: string | null
  readonly fromMs: number | null
  readonly toMs: number | null
}

export interface EventSearchDeps {
  readonly read: Reader
  readonly readEvent: EventReader
  /** The store's time in ms. */
  readonly nowMs: () => number
  /** Events that one search reads; the default is that of the contract. */
  readonly lookedAtMax?: number
}

/** An event with its id in the log. */
export interface FoundEvent {
  readonly id: string
  readonly body: EventBody
}

/** A page of events. */
export interface EventPage {
  readonly events: readonly FoundEvent[]
  readonly next: string | null
}

interface Search {
  readonly shard: number
  readonly owner: ServerKey
  readonly filter: EventFilter
  /** Kind of the stream in the filter; null for any. */
  readonly streamKind: StreamState['kind'] | null
  /** Number of the recipient; null: any. */
  readonly recipient: number | null
  /** Names of slices, oldest first. */
  readonly slices: readonly string[]
  readonly from: string
  readonly to: string
  readonly nowMs: number
}

const NOTHING: EventPage = { events: [], next: null }

/** Searches; `page.after` is the event after which the page begins. */
export async function searchEvents(
  deps: EventSearchDeps,
  owner: ServerKey,
  { filter, page }: { readonly filter: EventFilter; readonly page: Page },
): Promise<EventPage | 'unauthorized' | 'unavailable' | 'stream_not_found'> {
  const search = await begin(deps, owner, { filter, page })
  if (search === 'nothing') return NOTHING
  if (typeof search === 'string') return search
  return (await collect(deps, search, page.limit)) ?? 'unavailable'
}

async function begin(
  { read, nowMs }: EventSearchDeps,
  owner: ServerKey,
  { filter, page }: { filter: EventFilter; page: Page },
): Promise<Search | 'unauthorized' | 'unavailable' | 'stream_not_found' | 'nothing'> {
  const { accountId, serverId } = owner
  const shard = homeShard(accountId)
  const now = nowMs()
  const { streamId } = filter
  const to = upperBound({ after: null, toMs: filter.toMs })
  // A stream of another shard belongs to another account, and its key name would not be valid on this shard.
  const isHere = streamId !== null && shardOf(streamId) === shard
  const max = Math.min(msOfBound(to), Number.MAX_SAFE_INTEGER)
  const seen = await readTogether(read, shard, [
    [keyFact(shard, owner.hash), eventSlicesFact(shard, serverId, { max, count: SLICES_MAX })],
    filter.recipient === null ? [] : personPlaces(shard, accountId, filter.recipient),
    isHere ? [entityFact(shard, streamRef(streamId))] : [],
  ])
  if (seen === null) return 'unavailable'
  const [[key, slices], persons, [found]] = seen
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  const stream = parseState<StreamState>(found)
  if (streamId !== null && stream?.serverId !== serverId) return 'stream_not_found'
  const recipient = numberIn(persons)
  // An address that no message names has no event.
  if (filter.recipient !== null && recipient === null) return 'nothing'
  const fromMs = Math.max(eventCutoffMs(now), filter.fromMs ?? 0)
  const isAfter = page.after !== null && msOf(page.after) >= fromMs
  const from = isAfter ? `(${entryIdOf(page.after as string)}` : lowerBound(fromMs)
  const startMs = isAfter ? msOf(page.after as string) : fromMs
  const ordered = slices.toSorted(([one, oneMs], [other, otherMs]) => oneMs - otherMs || partOf(one) - partOf(other))
  // A full slice can end within a millisecond, so the walk begins before a slice that opens with that millisecond.
  const first = ordered.findLastIndex(([, firstMs]) => firstMs < startMs)
  const names = ordered.slice(Math.max(0, first)).map(([name]) => name)
  const streamKind = stream?.kind ?? null
  return { shard, owner, filter, streamKind, recipient, slices: names, from, to, nowMs: now }
}

/** The n of `<yyyymm>-<n>`. */
function partOf(slice: string): number {
  return Number(slice.slice(slice.indexOf('-') + 1))
}

/** Walks until the page is full, the log ends or the bound is reached; null if the store did not answer. */
async function collect(deps: EventSearchDeps, search: Search, limit: number): Promise<EventPage | null> {
  const { shard, owner, slices, to } = search
  const { read, lookedAtMax = EVENTS_LOOKED_AT_MAX } = deps
  const events: FoundEvent[] = []
  let { from } = search
  let looked = 0
  for (let at = 0; at < slices.length; ) {
    const key = eventsKey(shard, owner.serverId, slices[at] as string)
    const count = Math.min(ENTRIES_MAX, Math.max(limit - events.length, EVENTS_AT_ONCE))
    const seen = await read(shard, [{ read: 'range', key, from, to, count }])
    if (seen === null) return null
    const [entries] = seen
    for (let start = 0; start < entries.length; start += EVENTS_AT_ONCE) {
      const some = entries.slice(start, start + EVENTS_AT_ONCE)
      const found = await readEvents(deps, search, some)
      if (found === null) return null
      events.push(...found.slice(0, limit - events.length))
      if (events.length === limit) return { events, next: (events.at(-1) as FoundEvent).id }
      looked += some.length
      if (looked >= lookedAtMax) return { events, next: idOfEntry((some.at(-1) as Entry).id, shard) }
    }
    const last = entries.at(-1)
    if (last !== undefined) from = `(${last.id}`
    if (entries.length < count) at += 1
  }
  return { events, next: null }
}

interface Referred {
  readonly id: string
  readonly reference: EventReference
}

/** The events of the entries that pass the filters, in their order; null if the store did not answer. */
async function readEvents(
  deps: EventSearchDeps,
  search: Search,
  entries: readonly Entry[],
): Promise<readonly FoundEvent[] | null> {
  const { shard, owner, nowMs } = search
  const meant = entries
    .map((entry): Referred => ({ id: idOfEntry(entry.id, shard), reference: eventOfEntry(entry) }))
    .filter(({ reference }) => mayPass(reference, search))
  const stored = await readMessages(deps, search, meant)
  if (stored === null) return null
  const { accountId } = owner
  const numbers = [...stored.values()].flatMap(({ entry }) => entry.recipients)
  const persons = await readPersonMap(deps.read, { shard, accountId, numbers })
  if (persons === null) return null
  const bodies = await Promise.all(
    meant.map(({ reference }) =>
      reference.kind === 'message'
        ? makeBody(reference, search, { stored: stored.get(reference.messageId), persons })
        : deps.readEvent({ ...owner, inboundContent: 'reference' }, reference, nowMs, deps.read),
    ),
  )
  const found: FoundEvent[] = []
  for (const [place, { id }] of meant.entries()) {
    const body = bodies[place]
    if (body === undefined) return null
    if (body !== null && streamPasses(body, search.filter)) found.push({ id, body })
  }
  return found
}

/** Whether a reference lets its event pass. Events of caps and received mail have no message, recipient or tag. */
function mayPass(reference: EventReference, { filter, streamKind }: Search): boolean {
  const { events, messageId, recipient, tag, metadata } = filter
  if (events !== null && !events.includes(reference.event)) return false
  if (reference.kind === 'message') return messageId === null || reference.messageId === messageId
  if (streamKind !== null && (reference.kind !== 'inbound' || streamKind !== 'inbound')) return false
  return messageId === null && recipient === null && tag === null && metadata === null
}

/** Only events of messages have a stream. */
function streamPasses(body: EventBody, { streamId }: EventFilter): boolean {
  return streamId === null || body.streamId === streamId
}

/** The messages of references that their log entries let pass, by id. Null if the store did not answer. */
async function readMessages(
  { read }: EventSearchDeps,
  search: Search,
  meant: readonly Referred[],
): Promise<ReadonlyMap<string, StoredMessage> | null> {
  const { shard, owner, filter, recipient, nowMs } = search
  const places = new Map<string, string>()
  for (const { reference } of meant)
    if (reference.kind === 'message') places.set(reference.messageId, reference.segment)
  const candidates = Array.from(places, ([messageId, segment]) => {
    return { messageId, segment, entryId: entryIdOf(messageId), packed: null }
  })
  const entries = await readEntries(read, { shard, serverId: owner.serverId }, candidates)
  const passing = entries?.filter(({ entry }: Logged) => {
    if (filter.streamId !== null && (entry.streamId ?? owner.defaultStreamId) !== filter.streamId) return false
    if (recipient !== null && !entry.recipients.includes(recipient)) return false
    return filter.tag === null || entry.tagHash === filter.tag.hash
  })
  const stored = passing === undefined ? null : await readStored(read, { owner, shard, entries: passing, nowMs })
  return stored === null ? null : new Map(stored.map((one) => [one.messageId, one]))
}

function makeBody(
  reference: MessageReference,
  { owner, filter, recipient }: Search,
  { stored, persons }: { stored: StoredMessage | undefined; persons: ReadonlyMap<number, string> },
): EventBody | null {
  const number = stored?.entry.recipients[reference.recipient]
  if (stored === undefined || number === undefined || (recipient !== null && number !== recipient)) return null
  const { head, recipients } = stored
  // Hashes of tags are short, so the tag itself settles a collision.
  if (filter.tag !== null && head.tag !== filter.tag.text) return null
  const { metadata } = filter
  if (metadata !== null && !holds(head.metadata, metadata)) return null
  const events = recipients[reference.recipient]?.events ?? []
  const message = { serverId: owner.serverId, streamId: stored.streamId, test: stored.test, head }
  return messageEvent(reference, { ...message, events, known: persons.get(number) ?? '' })
}

function holds(metadata: Readonly<Record<string, string>>, { name, value }: { name: string; value: string }): boolean {
  return Object.hasOwn(metadata, name) && metadata[name] === value
}
