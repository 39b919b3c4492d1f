/**
 * live - the events on the server that a page shows, as they happen
 *
 * One feed serves everything that a page shows of a server, and is closed while the page is hidden, because a browser
 * has six connections to a host. Without a feed, the page polls.
 */
import { useEffect, useRef } from 'preact/hooks'
import { gates } from './call.ts'
import { probe } from './connection.ts'
import { readSession } from './session.ts'

/** An event as a webhook gets it, or that a message was accepted. */
export interface Told {
  readonly event: string
  readonly messageId?: string
}

/** Receives events; null if some may have been missed. */
type Hearer = (told: Told | null) => void

/** Events between the first read of a page and the opening of its feed are found by a second read. */
const FIRST_MS = 2_000
/** A feed that was refused is tried again. */
const RETRY_MS = 30_000
/** Another page of the same server takes a feed over. */
const LINGER_MS = 3_000
/** However quiet a feed is. */
const QUIET_MS = 30_000
const CLOCK_MS = 500

class Feed {
  readonly hearers = new Set<Hearer>()
  readonly #path: string
  #source: EventSource | null = null
  #timer: ReturnType<typeof setTimeout> | undefined
  #wasOpen = false

  constructor(serverId: string) {
    this.#path = `${gates.base}/servers/${serverId}/events`
    document.addEventListener('visibilitychange', this.#seen)
    this.#open()
  }

  get isOpen(): boolean {
    return this.#source?.readyState === EventSource.OPEN
  }

  end(): void {
    document.removeEventListener('visibilitychange', this.#seen)
    this.#close()
  }

  #open(): void {
    if (document.hidden || this.#source !== null) return
    const source = new EventSource(this.#path)
    this.#source = source
    source.onopen = () => {
      this.#timer = setTimeout(() => this.#tell(null), this.#wasOpen ? 0 : FIRST_MS)
      // A feed ends with a change of its member's role.
      if (this.#wasOpen) readSession().catch(() => undefined)
      this.#wasOpen = true
    }
    source.onmessage = ({ data }) => this.#tell(JSON.parse(data) as Told)
    source.addEventListener('missed', () => this.#tell(null))
    source.onerror = () => {
      void probe()
      if (source.readyState !== EventSource.CLOSED) return
      this.#close()
      this.#timer = setTimeout(() => this.#open(), RETRY_MS)
    }
  }

  #close(): void {
    clearTimeout(this.#timer)
    this.#source?.close()
    this.#source = null
  }

  #tell(told: Told | null): void {
    for (const hearer of this.hearers) hearer(told)
  }

  readonly #seen = (): void => {
    if (document.hidden) this.#close()
    else this.#open()
  }
}

const feeds = new Map<string, Feed>()

/** Subscribes to a server's feed. Returns a function that ends that. */
function hear(serverId: string, hearer: Hearer): () => void {
  const feed = feeds.get(serverId) ?? new Feed(serverId)
  feeds.set(serverId, feed)
  feed.hearers.add(hearer)
  return () => {
    feed.hearers.delete(hearer)
    setTimeout(() => {
      if (feed.hearers.size > 0 || feeds.get(serverId) !== feed) return
      feeds.delete(serverId)
      feed.end()
    }, LINGER_MS)
  }
}

interface Live {
  /** Reads the shown data again. */
  readonly call: () => void
  /** Filter of events; absent for all. */
  readonly wants?: (told: Told) => boolean
  /** Whether anything can still come; absent: yes. */
  readonly isOpen?: boolean
  /** Ms between two calls, at least. */
  readonly restMs: number
  /** Ms between two calls while there is no feed. */
  readonly awayMs: number
}

/** Calls whenever something has happened on a server, as long as the page is seen. */
export function useLive(serverId: string, live: Live): void {
  const latest = useRef(live)
  latest.current = live
  const { isOpen = true } = live
  useEffect(() => {
    if (!isOpen) return
    let lastMs = performance.now()
    let timer: ReturnType<typeof setTimeout> | null = null
    const soon = () => {
      const look = () => {
        timer = null
        lastMs = performance.now()
        latest.current.call()
      }
      timer ??= setTimeout(look, Math.max(0, lastMs + latest.current.restMs - performance.now()))
    }
    const leave = hear(serverId, (told) => {
      if (told === null || (latest.current.wants?.(told) ?? true)) soon()
    })
    const clock = setInterval(() => {
      const dueMs = feeds.get(serverId)?.isOpen ? QUIET_MS : latest.current.awayMs
      if (!document.hidden && performance.now() - lastMs >= dueMs) soon()
    }, CLOCK_MS)
    return () => {
      leave()
      clearInterval(clock)
      if (timer !== null) clearTimeout(timer)
    }
  }, [serverId, isOpen])
}

/** Opens a server's feed before anything subscribes. */
export function useFeed(serverId: string): void {
  useEffect(() => hear(serverId, () => undefined), [serverId])
}
