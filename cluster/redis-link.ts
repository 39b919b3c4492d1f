/**
 * redis-link - one connection to the store that never sends anything twice by itself.
 *
 * States: down, preparing (connected; its first commands run), up, refused (the store breaks its promise), closed.
 *
 * Guarantees: a call while it is not up is `unsent`; a call whose connection ended before the answer is `lost`; what is
 * written in one tick leaves in one write; errors carry no arguments of commands.
 */
import { Redis } from 'ioredis'

const RECONNECT_MIN_MS = 50
const RECONNECT_MAX_MS = 500
const CONNECT_MS = 3_000
const KEEPALIVE_MS = 10_000

export type Sent<Answer> =
  | { readonly kind: 'ok'; readonly answer: Answer }
  /** The store said no: its error's first word, and the whole. */
  | { readonly kind: 'error'; readonly code: string; readonly text: string }
  | { readonly kind: 'lost' | 'unsent' }

export interface LinkOptions {
  /** `redis://`, `rediss://`, or the path of a unix socket. */
  readonly address: string
  readonly name: string
  /** Runs on each new connection before anything else; throwing refuses the store until the next connection. */
  prepare(redis: Redis): Promise<void>
  readonly onUp?: () => void
  readonly onDown?: () => void
  readonly onRefused?: (error: Error) => void
}

export class RedisLink {
  readonly redis: Redis
  private readonly options: LinkOptions
  private up = false
  private corked = false
  private closed = false
  private waiting: ((error: Error | null) => void)[] = []

  constructor(options: LinkOptions) {
    this.options = options
    const path = options.address.startsWith('unix://') ? options.address.slice(7) : options.address
    const settings = {
      lazyConnect: true,
      connectionName: options.name,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      autoResubscribe: false,
      enableAutoPipelining: false,
      maxRetriesPerRequest: 0,
      enableReadyCheck: true,
      connectTimeout: CONNECT_MS,
      keepAlive: KEEPALIVE_MS,
      noDelay: true,
      retryStrategy: (times: number) => Math.min(RECONNECT_MAX_MS, RECONNECT_MIN_MS * times),
    }
    this.redis = path.startsWith('/') ? new Redis({ ...settings, path }) : new Redis(path, settings)
    this.redis.on('error', () => {})
    this.redis.on('ready', () => void this.prepare())
    this.redis.on('close', () => this.wentDown())
  }

  get isUp(): boolean {
    return this.up
  }

  /** Connects; resolves when it is up. Rejects when the store breaks its promise, or after `timeoutMs`. */
  open(timeoutMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('Connect to Redis: no answer')), timeoutMs)
      this.waiting.push((error) => {
        clearTimeout(timer)
        if (error === null) resolve()
        else reject(error)
      })
      this.redis.connect().catch(() => {})
    })
  }

  /** Sends one command. Never rejects. */
  async call<Answer>(send: (redis: Redis) => Promise<unknown>): Promise<Sent<Answer>> {
    if (!this.up) return { kind: 'unsent' }
    this.cork()
    try {
      return { kind: 'ok', answer: (await send(this.redis)) as Answer }
    } catch (error) {
      return failureOf(error)
    }
  }

  /** Ends the connection at once, so that it is made anew. */
  cut(): void {
    this.redis.disconnect(true)
  }

  close(): void {
    this.closed = true
    this.redis.disconnect()
  }

  private cork(): void {
    if (this.corked) return
    const socket = (this.redis as unknown as { stream?: { cork(): void; uncork(): void } }).stream
    if (socket === undefined) return
    this.corked = true
    socket.cork()
    setImmediate(() => {
      this.corked = false
      socket.uncork()
    })
  }

  private async prepare(): Promise<void> {
    try {
      await this.options.prepare(this.redis)
      if (this.redis.status !== 'ready') return
      this.up = true
      this.tell(null)
      this.options.onUp?.()
    } catch (error) {
      const refused = error instanceof Refused ? error : null
      if (refused === null) return this.cut()
      this.tell(refused)
      this.options.onRefused?.(refused)
    }
  }

  private tell(error: Error | null): void {
    const waiting = this.waiting
    this.waiting = []
    for (const told of waiting) told(error)
  }

  private wentDown(): void {
    const was = this.up
    this.up = false
    this.corked = false
    if (was && !this.closed) this.options.onDown?.()
  }
}

/** The store is reached and breaks its promise: its settings do not keep what is written. */
export class Refused extends Error {}

function failureOf(error: unknown): Sent<never> {
  const { name, message } = error instanceof Error ? error : new Error('unknown')
  if (name === 'ReplyError') return { kind: 'error', code: message.split(' ', 1)[0] ?? '', text: message }
  if (message.startsWith("Stream isn't writeable")) return { kind: 'unsent' }
  return { kind: 'lost' }
}
