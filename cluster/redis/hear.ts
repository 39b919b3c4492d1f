/**
 * redis-subscriber - one connection that hears channels, and hears them again after whatever befell it.
 *
 * Its troubles are told to nobody: the connections that work beside it say that the store is away. Every new connection
 * subscribes to each channel by itself, so that one which is refused (by an access list) does not keep the others from
 * being heard; it is asked for again a second later. What is published meanwhile is not heard.
 */
import { Redis } from 'ioredis'
import { LOADING_MS } from './link.ts'

const RETRY_MS_MAX = 500
const KEEP_ALIVE_MS = 10_000
const REFUSED_MS = 1_000

export interface SubscriberOptions {
  readonly address: string
  /** As CLIENT LIST shows it. */
  readonly name: string
  heard(channel: string, message: Buffer): void
}

export class RedisSubscriber {
  readonly client: Redis
  private readonly channels = new Set<string>()
  private isClosed = false

  constructor({ address, name, heard }: SubscriberOptions) {
    this.client = new Redis(address, {
      connectionName: name,
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      // The client would not hear that it is refused.
      autoResubscribe: false,
      keepAlive: KEEP_ALIVE_MS,
      maxLoadingRetryTime: LOADING_MS,
      disableClientInfo: true,
      retryStrategy: (times: number) => Math.min(times * 50, RETRY_MS_MAX),
    })
    // The connection's own troubles are those of the other ones, which say so.
    this.client.on('error', () => undefined)
    this.client.on('ready', () => {
      for (const channel of this.channels) void this.subscribe(channel)
    })
    this.client.on('end', () => this.startAnew())
    this.client.on('messageBuffer', (channel: Buffer, message: Buffer) => heard(channel.toString(), message))
  }

  /** Whether the connection is there. */
  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** Hears a channel. Resolves when it is heard from now on, or was refused. */
  add(channel: string): Promise<void> {
    this.channels.add(channel)
    return this.subscribe(channel)
  }

  remove(channel: string): void {
    this.channels.delete(channel)
    void this.client.unsubscribe(channel).catch(() => undefined)
  }

  /** Resolves when the store has answered; true: it did. */
  ping(): Promise<boolean> {
    return this.client.ping().then(
      () => true,
      () => false,
    )
  }

  /** Ends this connection; there will be another. */
  cut(): void {
    this.client.stream?.destroy()
  }

  close(): void {
    this.isClosed = true
    this.client.disconnect()
  }

  private subscribe(channel: string): Promise<void> {
    return this.client.subscribe(channel).then(
      () => undefined,
      (error: Error) => {
        if (error.name === 'ReplyError') this.askAgain(channel)
      },
    )
  }

  /** The channel was refused. A new connection asks for it anyway. */
  private askAgain(channel: string): void {
    const { stream } = this.client
    const timer = setTimeout(() => {
      if (!this.isClosed && this.client.stream === stream && this.channels.has(channel)) void this.subscribe(channel)
    }, REFUSED_MS)
    timer.unref()
  }

  /** The client has given up, which it does when a connection cannot even be begun; this never does. */
  private startAnew(): void {
    if (this.isClosed) return
    setTimeout(() => {
      if (!this.isClosed && this.client.status === 'end') void this.client.connect().catch(() => undefined)
    }, RETRY_MS_MAX)
  }
}
