/**
 * feed - the events of a server as they happen, over a connection that reconnects when it is lost
 *
 * Spec client.feed, event.feed
 */
import { ApiError, ConnectionError } from './errors.ts'
import { type Exchange, pause, reasonOf } from './exchange.ts'
import type { Signal } from './options.ts'
import type { Event } from './shapes/events.ts'

const RETRY_MS = 500
const RETRY_MS_MAX = 5_000
/** The service sends a comment every five seconds. */
const SILENT_MS_MAX = 20_000
const LINE_CHARS_MAX = 16 * 1024 * 1024

export interface FollowOptions {
  /** Ends the feed, whose loop then ends without an error. */
  readonly signal?: Signal
  /** Called after a disconnect during which more events happened than the service keeps; the feed continues. */
  readonly onGap?: () => void
  /** Called when a connection was lost, with the reason, before the next is opened. */
  readonly onDisconnect?: (reason: string) => void
}

/** The position of a feed. */
interface Place {
  lastId: string | null
}

/**
 * Follows the events of a server from now on.
 * @internal
 * @throws ApiError if the service refuses: a wrong key, too many feeds, or events that were missed (`content_expired`)
 * while there is no `onGap`
 */
export async function* followEvents(
  exchange: Exchange,
  { signal, onGap, onDisconnect }: FollowOptions,
): AsyncGenerator<Event, void, undefined> {
  const place: Place = { lastId: null }
  for (let waitMs = RETRY_MS; ; waitMs = Math.min(waitMs * 2, RETRY_MS_MAX)) {
    const connection = { reason: 'closed by the service' }
    for await (const event of eventsOf(exchange, { place, signal, onGap, connection })) {
      waitMs = RETRY_MS
      yield event
    }
    const isOver = () => signal?.aborted === true
    if (isOver()) return
    onDisconnect?.(connection.reason)
    await pause(waitMs * (0.5 + Math.random() / 2), signal).catch(() => undefined)
    if (isOver()) return
  }
}

interface Following {
  readonly place: Place
  readonly signal: Signal | undefined
  readonly onGap: (() => void) | undefined
  /** Gets the reason for which the connection ended. */
  readonly connection: { reason: string }
}

/** The events of one connection. Throws errors that the same request would cause again. */
async function* eventsOf(exchange: Exchange, following: Following): AsyncGenerator<Event, void, undefined> {
  const { place, signal, onGap, connection } = following
  const ending = new AbortController()
  const end = () => ending.abort()
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  let timer = setTimeout(end, SILENT_MS_MAX)
  try {
    const headers: Record<string, string> = place.lastId === null ? {} : { 'last-event-id': place.lastId }
    const body = await exchange.open({ path: '/v1/events', headers }, ending.signal)
    const onPiece = () => {
      clearTimeout(timer)
      timer = setTimeout(end, SILENT_MS_MAX)
    }
    for await (const line of linesOf(body, onPiece)) {
      if (line.startsWith('data: ')) yield JSON.parse(line.slice('data: '.length)) as Event
      else if (line.startsWith('id: ')) place.lastId = line.slice('id: '.length)
    }
  } catch (error) {
    connection.reason = ending.signal.aborted ? 'silent' : reasonOf(error)
    if (signal?.aborted === true || !(error instanceof ApiError) || error.status >= 502) return
    if (error.code !== 'content_expired' || onGap === undefined) throw error
    place.lastId = null
    onGap()
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
    end()
  }
}

/** The lines of a body. Throws `ConnectionError` if a line is too long. */
async function* linesOf(body: AsyncIterable<Uint8Array>, onPiece: () => void): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of body) {
    onPiece()
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > LINE_CHARS_MAX) throw new ConnectionError(`A line has more than ${LINE_CHARS_MAX} characters`)
    yield* lines
  }
}
