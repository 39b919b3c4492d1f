/**
 * redis-signals - hears the signals about topics that owners of shards send after their commits.
 *
 * One connection for all topics, opened with the first and closed with the last. What is said while it is down is not heard.
 */
import { Redis } from 'ioredis'
import { topicName } from './keyspace.ts'
import { LOADING_MS } from './redis-link.ts'

const RETRY_MS_MAX = 500
const KEEP_ALIVE_MS = 10_000

export type Heard = (text: string) => void

export class RedisSignals {
  private readonly address: string
  private readonly listeners = new Map<string, Set<Heard>>()
  private client: Redis | null = null

  constructor(address: string) {
    this.address = address
  }

  /** Hears what is said about a topic. Resolves when it is heard from now on, with what ends it. */
  async hear(topic: string, heard: Heard): Promise<() => void> {
    const channel = topicName(topic)
    const known = this.listeners.get(channel)
    if (known !== undefined) known.add(heard)
    else {
      this.listeners.set(channel, new Set([heard]))
      this.client ??= this.connect()
      // A connection that ends takes its subscriptions up again by itself.
      await this.client.subscribe(channel).catch(() => undefined)
    }
    return () => this.leave(channel, heard)
  }

  close(): void {
    this.client?.disconnect()
    this.client = null
    this.listeners.clear()
  }

  private leave(channel: string, heard: Heard): void {
    const known = this.listeners.get(channel)
    if (known === undefined || !known.delete(heard) || known.size > 0) return
    this.listeners.delete(channel)
    if (this.listeners.size === 0) this.close()
    else void this.client?.unsubscribe(channel).catch(() => undefined)
  }

  private connect(): Redis {
    const client = new Redis(this.address, {
      connectionName: 'signals',
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      autoResubscribe: true,
      keepAlive: KEEP_ALIVE_MS,
      maxLoadingRetryTime: LOADING_MS,
      disableClientInfo: true,
      retryStrategy: (times: number) => Math.min(times * 50, RETRY_MS_MAX),
    })
    // The connection's own troubles are those of the other ones, which say so.
    client.on('error', () => undefined)
    client.on('message', (channel: string, text: string) => {
      for (const heard of this.listeners.get(channel) ?? []) heard(text)
    })
    return client
  }
}
