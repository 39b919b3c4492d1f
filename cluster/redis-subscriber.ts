/**
 * redis-subscriber - one connection that hears channels, and hears them again after whatever befell it.
 *
 * Its troubles are told to nobody: the connections that work beside it say that the store is away. Every new connection
 * subscribes to all channels; one that is refused that (by an access list) is ended a second later,
 * so that the next one asks again. What is published meanwhile is not heard.
 */
import { Redis } from 'ioredis'
import { LOADING_MS } from './redis-link.ts'

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
  private readonly client: Redis
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
      if (this.channels.size > 0) void this.subscribe([...this.channels])
    })
    this.client.on('messageBuffer', (channel: Buffer, message: Buffer) => heard(channel.toString(), message))
  }

  /** Whether the connection is there. */
  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** Hears a channel. Resolves when it is heard from now on, or was refused. */
  add(channel: string): Promise<void> {
    this.channels.add(channel)
    return this.subscribe([channel])
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

  private subscribe(channels: readonly string[]): Promise<void> {
    return this.client.subscribe(...channels).then(
      () => undefined,
      (error: Error) => {
        if (error.name === 'ReplyError') this.endLater()
      },
    )
  }

  private endLater(): void {
    const { stream } = this.client
    const timer = setTimeout(() => {
      if (!this.isClosed && this.client.stream === stream) stream.destroy()
    }, REFUSED_MS)
    timer.unref()
  }
}
