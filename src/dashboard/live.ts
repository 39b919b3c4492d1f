/**
 * live - GET /dashboard/api/servers/{serverId}/events: the live events of a server for a page
 *
 * It reads the references recorded while a feed is open, like a feed of the API (`routes/events.ts`), and sends each
 * event as a webhook would get it, received mail as a reference. Accepted messages are only signalled, not recorded,
 * because a page that misses one still reads its list again.
 *
 * Guarantees: a busy server costs a feed a bounded number of reads a second: further events are left out, which
 * `missed` reports; a feed ends with its session, with its member's role, and with its server.
 *
 * Spec member.live, member.content
 */

import type { Entry } from '../../cluster/behaviour.ts'
import { homeShard, idOfEntry, msOf } from '../../cluster/id.ts'
import { USER_FEEDS_MAX, USERS_FEEDS_MAX } from '../../schemas/limits.ts'
import type { EventBody } from '../../schemas/webhook.ts'
import { memberTopic } from '../actors/dashboard/session.ts'
import { acceptedTopic, accountTopic, keysTopic, serverTopic } from '../actors/webhook/announce.ts'
import { LISTEN_MS, type ListenReply } from '../actors/webhook/listen.ts'
import { NOT_SIGNED_IN } from '../http/dashboard-edge.ts'
import { type Answer, type Feed, type FeedSink, refusalReply } from '../http/respond.ts'
import { giveOrder, type Replied } from '../routes/answer.ts'
import { countFeeds, type EventFeedDeps } from '../routes/events.ts'
import { proofOf } from '../state/dashboard/session.ts'
import type { ServerState } from '../state/server.ts'
import { parseFeedEvent } from '../state/webhook/event-feed.ts'
import { type EventReference, parseReference } from '../state/webhook/item.ts'
import { isStillInFeed, newestInFeed, readFeed } from '../views/event-feed.ts'
import { formatInstant } from '../views/instant.ts'
import { findServer } from './api-proxy.ts'
import { type DashboardDeps, type DashboardHandler, type DashboardRequest, sessionOf } from './deps.ts'

/** An empty line keeps proxies from ending the connection, and detects a disconnected client. */
const BEAT_MS = 15_000
/** Interval of the reads, and maximum events of one read, because a page shows no more. */
const REST_MS = 500
const TOLD_MAX = 50
/** Accepted messages that wait for the next look. */
const ACCEPTED_MAX = 100
/** A stalled browser is disconnected, and its page reads again when it resumes. */
const WAITING_BYTES_MAX = 64 * 1024
const ENTRY_ID = /^\d{1,15}-\d{1,19}$/

export interface LiveDeps extends Omit<EventFeedDeps, 'openFeeds'> {
  /** How many feeds of each user this process has open. */
  readonly userFeeds: Map<string, number>
}

/** GET /dashboard/api/servers/{serverId}/events */
export function makeHearServer(deps: DashboardDeps & LiveDeps): DashboardHandler<'hearServer'> {
  const { userFeeds: open } = deps
  return async (request) => {
    const { lastEventId, params } = request
    const session = sessionOf(request)
    if (lastEventId !== null && !ENTRY_ID.test(lastEventId))
      return refusalReply('invalid_request', {}, 'Last-Event-ID must be the id of an event in this feed')
    const found = await findServer(deps, session, { serverId: params.serverId ?? '', level: 'r' })
    if ('answer' in found) return found.answer
    const { serverId } = found.server
    const listening = () => listen(deps, { serverId, keyHash: proofOf('r', session.hash) })
    const asked = await listening()
    if (asked.answer !== undefined) return asked.refused === null ? asked.answer : NOT_SIGNED_IN
    const place = await findPlace(deps, serverId, lastEventId)
    if (place === null) return refusalReply('unavailable')
    const left = leaveOrRefuse(open, session.row.userId)
    if (typeof left !== 'function') return left
    return makeFeed(deps, { server: asked.reply.server, ...place, listening, left, request })
  }
}

/** Takes a place among the feeds. Returns a function that releases it, or the refusal. */
function leaveOrRefuse(open: LiveDeps['userFeeds'], userId: string): (() => void) | Answer {
  const mine = open.get(userId) ?? 0
  if (mine >= USER_FEEDS_MAX) return refusalReply('feed_limit', { max: USER_FEEDS_MAX })
  if (countFeeds(open) >= USERS_FEEDS_MAX) return refusalReply('feed_limit', { max: USERS_FEEDS_MAX })
  open.set(userId, mine + 1)
  return () => {
    const left = (open.get(userId) ?? 1) - 1
    if (left > 0) open.set(userId, left)
    else open.delete(userId)
  }
}

function listen(deps: LiveDeps, body: { serverId: string; keyHash: string }): Promise<Replied<ListenReply>> {
  return giveOrder(deps, homeShard(body.serverId), { name: 'listen', body })
}

/** The entry after which a feed begins, and whether some before it are gone; null when the store did not answer. */
async function findPlace(
  { read }: LiveDeps,
  serverId: string,
  lastId: string | null,
): Promise<{ readonly position: string; readonly isBehind: boolean } | null> {
  const isThere = lastId === null ? false : await isStillInFeed(read, serverId, lastId)
  if (isThere === null) return null
  if (lastId !== null && isThere) return { position: lastId, isBehind: false }
  const position = await newestInFeed(read, serverId)
  return position === null ? null : { position, isBehind: lastId !== null }
}

interface FeedWork {
  readonly server: ServerState
  readonly position: string
  readonly isBehind: boolean
  readonly listening: () => Promise<Replied<ListenReply>>
  readonly left: () => void
  readonly request: DashboardRequest<'hearServer'>
}

function makeFeed(deps: LiveDeps, { server, position, isBehind, listening, left, request }: FeedWork): Feed {
  const { userId, sessionId } = sessionOf(request).row
  const { accountId, serverId, mode } = server
  return {
    waitingBytesMax: WAITING_BYTES_MAX,
    start(sink) {
      const lines = new LiveLines(deps, { server, sink, position })
      if (isBehind) sink.send(missedLine(position))
      // A session that has ended, or a removed server, is refused.
      const renew = async (): Promise<void> => {
        if ((await listening()).refused != null) sink.end()
      }
      const timers = [
        setInterval(() => void renew(), LISTEN_MS / 2),
        setInterval(() => {
          sink.send(': beat\n\n')
          lines.look()
        }, BEAT_MS),
      ]
      const heard = [
        deps.hear(serverTopic(serverId), lines.take),
        deps.hear(accountTopic(accountId, mode), lines.take),
        deps.hear(acceptedTopic(serverId), lines.accept),
        deps.hear(keysTopic(serverId), () => void renew()),
        deps.hear(memberTopic(accountId, userId), (text) => text === sessionId && sink.end()),
      ]
      // Checks for ends and events before the signals were subscribed.
      void Promise.all(heard).then(() => {
        lines.look()
        return renew()
      })
      return () => {
        lines.end()
        for (const timer of timers) clearInterval(timer)
        for (const one of heard) void one.then((leave) => leave())
        left()
      }
    },
    skip: left,
  }
}

/** A line for omitted events up to an entry, from which a reconnect resumes. */
function missedLine(position: string): string {
  return `id: ${position}\nevent: missed\ndata: {}\n\n`
}

/** Reads from an entry on, at most every half second, and sends the events. */
class LiveLines {
  readonly #deps: LiveDeps
  readonly #server: ServerState
  readonly #sink: FeedSink
  #position: string
  #accepted: string[] = []
  #isMissed = false
  /** A look is under way, or one was a moment ago. */
  #isBusy = false
  /** There may be more than that look has seen. */
  #isWanted = false
  #rest: NodeJS.Timeout | null = null
  #isOver = false

  constructor(
    deps: LiveDeps,
    of: { readonly server: ServerState; readonly sink: FeedSink; readonly position: string },
  ) {
    this.#deps = deps
    this.#server = of.server
    this.#sink = of.sink
    this.#position = of.position
  }

  /**
   * Receives a signal of an event: recorded events are read from the store, an event of a cap is complete in the
   * signal.
   */
  readonly take = (text: string): void => {
    const reference = parseReference(text)
    if (reference.kind === 'message' || reference.kind === 'inbound') this.look()
    else void this.#read(reference).then((event) => this.#say(event, this.#deps.newEventId(), ''))
  }

  /** Receives signals of accepted messages. */
  readonly accept = (text: string): void => {
    const ids = text.split(' ')
    if (this.#accepted.length + ids.length > ACCEPTED_MAX) this.#isMissed = true
    else this.#accepted.push(...ids)
    this.look()
  }

  look(): void {
    this.#isWanted = true
    if (!this.#isBusy && !this.#isOver) void this.#work()
  }

  end(): void {
    this.#isOver = true
    if (this.#rest !== null) clearTimeout(this.#rest)
  }

  async #work(): Promise<void> {
    this.#isBusy = true
    this.#isWanted = false
    this.#tellAccepted()
    await this.#tellHeard()
    if (this.#isMissed && !this.#isOver) this.#sink.send(missedLine(this.#position))
    this.#isMissed = false
    if (this.#isOver) return
    this.#rest = setTimeout(() => {
      this.#isBusy = false
      if (this.#isWanted) this.look()
    }, REST_MS)
  }

  #tellAccepted(): void {
    const ids = this.#accepted
    this.#accepted = []
    for (const messageId of ids) {
      const line = { event: 'accepted', messageId, occurredAt: formatInstant(msOf(messageId)) }
      this.#sink.send(`data: ${JSON.stringify(line)}\n\n`)
    }
  }

  /** Sends entries in order, up to the first that the store did not answer, which is sent with the next read. */
  async #tellHeard(): Promise<void> {
    const { serverId } = this.#server
    const entries = await readFeed(this.#deps.read, serverId, this.#position)
    if (entries === null) return
    if (entries.length > TOLD_MAX) {
      this.#position = (await newestInFeed(this.#deps.read, serverId)) ?? this.#position
      this.#isMissed = true
      return
    }
    const events = await Promise.all(entries.map((entry: Entry) => this.#read(parseFeedEvent(entry))))
    for (const [at, { id }] of entries.entries()) {
      const event = events[at]
      if (this.#isOver || event === undefined) return
      this.#say(event, idOfEntry(id, homeShard(serverId)), `id: ${id}\n`)
      this.#position = id
    }
  }

  #read(reference: EventReference) {
    const owner = { ...this.#server, inboundContent: 'reference' } as const
    return this.#deps.readEvent(owner, reference, this.#deps.nowMs())
  }

  /** The subject of an event may have expired: then nothing is sent. */
  #say(event: EventBody | null | undefined, id: string, line: string): void {
    if (event !== null && event !== undefined && !this.#isOver)
      this.#sink.send(`${line}data: ${JSON.stringify({ id, attempt: 1, ...event })}\n\n`)
  }
}
