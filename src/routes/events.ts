/**
 * events - GET /v1/events: the events of the key's server from now on, or from the last one that a client has
 * received; POST /v1/events/search: those of a time range, in the order in which they occurred
 *
 * While a feed is open the owner of the server's shard writes the references of its events down
 * (`actors/webhook/listen.ts`); the feed reads them from there, on each signal and at every beat, so that a lost
 * signal only delays an event. The id of an entry is the id of the feed's line. Events of caps are sent as they
 * come, without an id. A feed ends at once when its key is revoked.
 *
 * Addresses and tags are searched by their keyed hashes, which are made here.
 *
 * Spec event.feed, event.search
 */

import type { Entry } from '../../cluster/behaviour.ts'
import { homeShard, idOfEntry } from '../../cluster/id.ts'
import type { Ask } from '../../cluster/work.ts'
import { FEEDS_MAX, SERVER_FEEDS_MAX } from '../../schemas/limits.ts'
import type { EventBody, EventSearch } from '../../schemas/webhook.ts'
import { accountTopic, keysTopic, serverTopic } from '../actors/webhook/announce.ts'
import { LISTEN_MS, type ListenReply } from '../actors/webhook/listen.ts'
import type { HandlerOf } from '../http/request.ts'
import { type Answer, type Feed, type FeedSink, refusalReply } from '../http/respond.ts'
import type { Scans } from '../http/scans.ts'
import type { Secrets } from '../process/secrets.ts'
import type { ServerState } from '../state/server.ts'
import { parseFeedEvent } from '../state/webhook/event-feed.ts'
import { type EventReference, parseReference } from '../state/webhook/item.ts'
import { isStillInFeed, newestInFeed, readFeed } from '../views/event-feed.ts'
import type { Reader, ServerKey } from '../views/key.ts'
import type { EventReader } from '../views/message/event.ts'
import { type EventFilter, type EventSearchDeps, searchEvents } from '../views/message/event-search.ts'
import { giveOrder, type Replied } from './answer.ts'
import { makeWaiting, type WaitDeps } from './wait/waits.ts'

/** An empty line keeps proxies from ending the connection, and detects a disconnected client. */
const BEAT_MS = 5_000
/** Events that a feed reads in parallel; reading them one after the other, it would fall behind under load. */
export const EVENTS_AT_ONCE = 32
const ENTRY_ID = /^\d{1,15}-\d{1,19}$/
const GONE = 'Events after this Last-Event-ID are no longer kept: connect without it'

/** Dependencies of feeds of events. */
export interface EventFeedDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
  readonly readEvent: EventReader
  /** Subscribes to a topic; resolves with a function that ends it. */
  readonly hear: (topic: string, heard: (text: string) => void) => Promise<() => void>
  /** Makes an id for an event that has none of its own. */
  readonly newEventId: () => string
  /** How many feeds of each server this process has open. */
  readonly openFeeds: Map<string, number>
}

/** GET /v1/events */
function makeListenToEvents(deps: EventFeedDeps): HandlerOf<'listenToEvents'> {
  const { openFeeds: open } = deps
  return async ({ key, lastEventId }) => {
    const { serverId, hash: keyHash } = key
    if (lastEventId !== null && !ENTRY_ID.test(lastEventId))
      return refusalReply('invalid_request', {}, 'Last-Event-ID must be the id of an event in this feed')
    const listening = () => listen(deps, { serverId, keyHash })
    const asked = await listening()
    if (asked.answer !== undefined) return asked.answer
    const position = await readPosition(deps, serverId, lastEventId)
    if (typeof position !== 'string') return position
    const mine = open.get(serverId) ?? 0
    if (mine >= SERVER_FEEDS_MAX) return refusalReply('feed_limit', { max: SERVER_FEEDS_MAX })
    if (countFeeds(open) >= FEEDS_MAX) return refusalReply('feed_limit', { max: FEEDS_MAX })
    open.set(serverId, mine + 1)
    const closed = () => {
      const left = (open.get(serverId) ?? 1) - 1
      if (left > 0) open.set(serverId, left)
      else open.delete(serverId)
    }
    return makeFeed(deps, { server: asked.reply.server, position, listening, closed })
  }
}

/** Feeds of all servers. */
export function countFeeds(open: EventFeedDeps['openFeeds']): number {
  return Array.from(open.values()).reduce((sum, feeds) => sum + feeds, 0)
}

function listen(deps: EventFeedDeps, body: { serverId: string; keyHash: string }): Promise<Replied<ListenReply>> {
  return giveOrder(deps, homeShard(body.serverId), { name: 'listen', body })
}

/** The entry after which a feed begins, or the refusal. */
async function readPosition(deps: EventFeedDeps, serverId: string, lastId: string | null): Promise<string | Answer> {
  if (lastId === null) return (await newestInFeed(deps.read, serverId)) ?? refusalReply('unavailable')
  const isThere = await isStillInFeed(deps.read, serverId, lastId)
  if (isThere === null) return refusalReply('unavailable')
  return isThere ? lastId : refusalReply('content_expired', {}, GONE)
}

interface FeedWork {
  readonly server: ServerState
  readonly position: string
  readonly listening: () => Promise<Replied<ListenReply>>
  readonly closed: () => void
}

function makeFeed(deps: EventFeedDeps, { server, position, listening, closed }: FeedWork): Feed {
  return {
    start(sink) {
      const lines = new FeedLines(deps, server, sink, position)
      // A key that was revoked, or a server that was removed, is refused.
      const renew = async (): Promise<void> => {
        if ((await listening()).refused != null) sink.end()
      }
      const renewal = setInterval(() => void renew(), LISTEN_MS / 2)
      const beat = setInterval(() => {
        sink.send(': beat\n\n')
        lines.look()
      }, BEAT_MS)
      const heard = [
        deps.hear(serverTopic(server.serverId), lines.take),
        deps.hear(accountTopic(server.accountId, server.mode), lines.take),
        deps.hear(keysTopic(server.serverId), () => void renew()),
      ]
      // Covers a revocation or an event before the subscription was active.
      void Promise.all(heard).then(() => {
        lines.look()
        return renew()
      })
      return () => {
        lines.end()
        clearInterval(renewal)
        clearInterval(beat)
        for (const one of heard) void one.then((leave) => leave())
        closed()
      }
    },
    skip: closed,
  }
}

/** Reads from an entry on, one read at a time, and sends each event with its id. */
class FeedLines {
  private readonly deps: EventFeedDeps
  private readonly server: ServerState
  private readonly sink: FeedSink
  private position: string
  private isLooking = false
  /** There may be more than the look under way has seen. */
  private isWanted = false
  private isOver = false

  constructor(deps: EventFeedDeps, server: ServerState, sink: FeedSink, position: string) {
    this.deps = deps
    this.server = server
    this.sink = sink
    this.position = position
  }

  /** Receives a signal: recorded events are read from the store, an event of a cap is complete in the signal. */
  readonly take = (text: string): void => {
    const reference = parseReference(text)
    if (reference.kind === 'message' || reference.kind === 'inbound') this.look()
    else void this.read(reference).then((event) => this.say(event, this.deps.newEventId(), ''))
  }

  look(): void {
    this.isWanted = true
    if (!this.isLooking) void this.work()
  }

  end(): void {
    this.isOver = true
  }

  private async work(): Promise<void> {
    this.isLooking = true
    while (this.isWanted && !this.isOver) {
      this.isWanted = false
      const entries = await readFeed(this.deps.read, this.server.serverId, this.position)
      // A store that does not answer is asked again with the next beat.
      if (await this.tellAll(entries ?? [])) this.isWanted = true
    }
    this.isLooking = false
  }

  /** Sends entries in order, up to the first that the store did not answer. Returns whether it sent any. */
  private async tellAll(entries: readonly Entry[]): Promise<boolean> {
    const from = this.position
    for (let at = 0; at < entries.length; at += EVENTS_AT_ONCE) {
      const some = entries.slice(at, at + EVENTS_AT_ONCE)
      const events = await Promise.all(some.map((entry) => this.read(parseFeedEvent(entry))))
      for (const [n, { id }] of some.entries()) {
        const event = events[n]
        if (this.isOver || event === undefined) return this.position !== from
        this.say(event, idOfEntry(id, homeShard(this.server.serverId)), `id: ${id}\n`)
        this.position = id
      }
    }
    return this.position !== from
  }

  private read(reference: EventReference) {
    const owner = { ...this.server, inboundContent: 'reference' } as const
    return this.deps.readEvent(owner, reference, this.deps.nowMs())
  }

  /** The subject of an event may have expired: then nothing is sent. */
  private say(event: EventBody | null | undefined, id: string, line: string): void {
    if (event !== null && event !== undefined)
      this.sink.send(`${line}data: ${JSON.stringify({ id, attempt: 1, ...event })}\n\n`)
  }
}

/** Dependencies of the search. */
export interface SearchEventsDeps extends EventSearchDeps {
  readonly secrets: Pick<Secrets, 'addressHmac' | 'tagHash'>
}

/** The handlers of a server's events. */
export function eventHandlers(deps: SearchEventsDeps & EventFeedDeps & WaitDeps & { readonly scans: Scans }) {
  const search = deps.scans.limit(makeSearchEvents, deps)
  return { searchEvents: makeWaiting(deps, { search, list: 'events' }), listenToEvents: makeListenToEvents(deps) }
}

/** POST /v1/events/search */
function makeSearchEvents(deps: SearchEventsDeps): HandlerOf<'searchEvents'> {
  return async ({ key, body }) => {
    const page = { limit: body.limit, after: body.after?.toLowerCase() ?? null }
    const seen = await searchEvents(deps, key, { filter: makeFilter(deps.secrets, key, body), page })
    if (typeof seen === 'string') return refusalReply(seen)
    const events = seen.events.map(({ id, body: event }) => ({ id, attempt: 1, ...event }))
    return { status: 200, json: { events, next: seen.next } }
  }
}

function makeFilter(secrets: SearchEventsDeps['secrets'], owner: ServerKey, search: EventSearch): EventFilter {
  const { event, streamId, tag, metadata, messageId, recipient, from, to } = search
  const [entry] = Object.entries(metadata ?? {})
  return {
    events: event === undefined ? null : [event],
    streamId: streamId?.toLowerCase() ?? null,
    tag: tag === undefined ? null : { text: tag, hash: secrets.tagHash(owner.serverId, tag) },
    metadata: entry === undefined ? null : { name: entry[0], value: entry[1] },
    messageId: messageId?.toLowerCase() ?? null,
    recipient: recipient === undefined ? null : secrets.addressHmac(owner.accountId, recipient),
    fromMs: from === undefined ? null : Date.parse(from),
    toMs: to === undefined ? null : Date.parse(to),
  }
}
