/** mail - calls about sent messages, received messages and events */
import { WaitTimeoutError } from './errors.ts'
import { type Exchange, pause } from './exchange.ts'
import { type FollowOptions, followEvents } from './feed.ts'
import type { CallOptions } from './options.ts'
import { iterate } from './pages.ts'
import type { Event, EventSearch } from './shapes/events.ts'
import type { Checks, Message, MessageList, MessageSearch, MessageSummary } from './shapes/messages.ts'
import type { ReceivedList, ReceivedMessage, ReceivedSearch, ReceivedSummary } from './shapes/received.ts'

const TIMEOUT_SECONDS = 30
/** From one search of a wait to the next, at least. */
const SEARCH_MS = 1_000

export interface WaitOptions extends CallOptions {
  /** Seconds after which the wait ends with an error. Default: 30 */
  readonly timeoutSeconds?: number
}

export interface Messages {
  /** One page, newest first. */
  search(search?: MessageSearch, options?: CallOptions): Promise<MessageList>
  /** All pages, newest first. */
  iterate(search?: MessageSearch, options?: CallOptions): AsyncGenerator<MessageSummary, void, undefined>
  /**
   * Waits for a message, and reads it; one that matches already is returned at once. Set `submittedFrom` to wait for a
   * new one.
   * @throws WaitTimeoutError if none comes in time
   */
  wait(search?: MessageSearch, options?: WaitOptions): Promise<Message>
  read(messageId: string, options?: CallOptions): Promise<Message>
  /** The message as it is sent. */
  raw(messageId: string, options?: CallOptions): Promise<Uint8Array>
  /** The content of an attachment. Positions begin at 0. */
  attachment(messageId: string, position: number, options?: CallOptions): Promise<Uint8Array>
  /** Findings about the message as mail clients will show it; with `links` also whether its links answer. */
  check(messageId: string, options?: CallOptions & { readonly links?: boolean }): Promise<Checks>
  /** Cancels a scheduled message. */
  cancel(messageId: string, options?: CallOptions): Promise<Message>
  /** Sets another time for a scheduled message. */
  reschedule(messageId: string, sendAt: string | Date, options?: CallOptions): Promise<Message>
}

/** One page of events. */
export interface EventList {
  events: Event[]
  next: string | null
}

export interface Events {
  /** One page, oldest first. */
  search(search?: EventSearch, options?: CallOptions): Promise<EventList>
  /** All pages of a window (`from`, `to`), oldest first. Default: the last 30 days */
  iterate(search?: EventSearch, options?: CallOptions): AsyncGenerator<Event, void, undefined>
  /**
   * The events from now on, until the loop is left or the signal aborts. A lost connection is opened again and
   * continues after the last event.
   */
  follow(options?: FollowOptions): AsyncGenerator<Event, void, undefined>
}

export interface Received {
  /** One page, newest first. */
  search(search?: ReceivedSearch, options?: CallOptions): Promise<ReceivedList>
  /** All pages, newest first. */
  iterate(search?: ReceivedSearch, options?: CallOptions): AsyncGenerator<ReceivedSummary, void, undefined>
  read(inboundMessageId: string, options?: CallOptions): Promise<ReceivedMessage>
  /** The mail as it was received. */
  raw(inboundMessageId: string, options?: CallOptions): Promise<Uint8Array>
  /** The content of an attachment. */
  attachment(inboundMessageId: string, position: number, options?: CallOptions): Promise<Uint8Array>
}

/**
 * Calls about sent messages.
 * @internal
 */
export function makeMessages({ ask, bytes, waitSecondsMax }: Exchange): Messages {
  const path = '/v1/messages'
  const search: Messages['search'] = (body = {}, options) =>
    ask({ method: 'POST', path: `${path}/search`, body, options })
  const read: Messages['read'] = (id, options) => ask({ method: 'GET', path: joinPath(path, id), options })
  return {
    search,
    iterate: (body, options) =>
      iterate(
        (after) => search({ ...body, ...after }, options),
        ({ messages }) => messages,
      ),
    async wait(body, { timeoutSeconds = TIMEOUT_SECONDS, ...options } = {}) {
      const endAtMs = performance.now() + timeoutSeconds * 1000
      for (;;) {
        const leftSeconds = Math.max(0, Math.ceil((endAtMs - performance.now()) / 1000))
        const waitSeconds = Math.min(leftSeconds, waitSecondsMax)
        const askedAtMs = performance.now()
        const [found] = (await search({ ...body, limit: 1, waitSeconds }, options)).messages
        if (found !== undefined) return read(found.messageId, options)
        if (leftSeconds === 0) throw new WaitTimeoutError(`No message matched within ${timeoutSeconds} s`)
        // An empty page can come early, because the time limit of an attempt allows no wait, or a process stops.
        await pause(Math.max(0, Math.min(askedAtMs + SEARCH_MS, endAtMs) - performance.now()), options.signal)
      }
    },
    read,
    ...makeFiles(bytes, path),
    check: (id, { links = false, ...options } = {}) =>
      ask({ method: 'POST', path: joinPath(path, id, 'checks'), body: { links }, options }),
    cancel: (id, options) => ask({ method: 'POST', path: joinPath(path, id, 'cancel'), options }),
    reschedule: (id, sendAt, options) =>
      ask({
        method: 'PATCH',
        path: joinPath(path, id),
        body: { sendAt: typeof sendAt === 'string' ? sendAt : sendAt.toISOString() },
        options,
      }),
  }
}

/**
 * Calls about events.
 * @internal
 */
export function makeEvents(exchange: Exchange): Events {
  const search: Events['search'] = (body = {}, options) =>
    exchange.ask({ method: 'POST', path: '/v1/events/search', body, options })
  return {
    search,
    iterate: (body, options) =>
      iterate(
        (after) => search({ ...body, ...after }, options),
        ({ events }) => events,
      ),
    follow: (options = {}) => followEvents(exchange, options),
  }
}

/**
 * Calls about received mail.
 * @internal
 */
export function makeReceived({ ask, bytes }: Exchange): Received {
  const path = '/v1/inbound'
  const search: Received['search'] = (body = {}, options) =>
    ask({ method: 'POST', path: `${path}/search`, body, options })
  return {
    search,
    iterate: (body, options) =>
      iterate(
        (after) => search({ ...body, ...after }, options),
        ({ messages }) => messages,
      ),
    read: (id, options) => ask({ method: 'GET', path: joinPath(path, id), options }),
    ...makeFiles(bytes, path),
  }
}

/** The calls for the bytes of a mail. */
function makeFiles(bytes: Exchange['bytes'], path: string): Pick<Messages, 'raw' | 'attachment'> {
  return {
    raw: (id, options) => bytes({ method: 'GET', path: joinPath(path, id, 'raw'), options }),
    attachment: (id, position, options) =>
      bytes({ method: 'GET', path: joinPath(path, id, 'attachments', String(position)), options }),
  }
}

/**
 * A path of parts that a caller names.
 * @internal
 */
export function joinPath(base: string, ...parts: readonly string[]): string {
  return [base, ...parts.map(encodeURIComponent)].join('/')
}
