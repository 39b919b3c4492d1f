/**
 * subscriber - receives messages published by other processes, over separate connections.
 *
 * `listenToRedis` receives bells, parcels and releases for a worker; `RedisSignals` receives topics. Both are on
 * `RedisSubscriber`, one connection that receives channels, and receives them again after any failure. Replies come
 * another way (`reply-stream.ts`). Messages published while a connection is down are lost silently, so subscribers
 * must also poll.
 *
 * Errors of a subscriber are not reported; the other connections report an unreachable store. Every new connection
 * subscribes to each channel separately, so that a denied one (by an access list) does not block the others; it is
 * requested again a second later. Messages published in the meantime are lost.
 */
import { Redis } from 'ioredis'
import { bellChannel, parcelChannel, RELEASED_CHANNEL, topicName } from '../keyspace.ts'
import { BellReader } from '../mailbox/bell.ts'
import type { Listening, Receivers } from '../store.ts'
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

/** Interval of the pings of a worker's subscriber. */
const PING_MS = 1_000
const SILENT_MS_MAX = 10_000

export type Heard = (text: string) => void

export class RedisSubscriber {
  readonly client: Redis
  private readonly channels = new Set<string>()
  private isClosed = false

  constructor({ address, name, heard }: SubscriberOptions) {
    this.client = new Redis(address, {
      connectionName: name,
      enableOfflineQueue: true,
      maxRetriesPerRequest: null,
      // Otherwise the client would not report a refusal.
      autoResubscribe: false,
      keepAlive: KEEP_ALIVE_MS,
      maxLoadingRetryTime: LOADING_MS,
      disableClientInfo: true,
      retryStrategy: (times: number) => Math.min(times * 50, RETRY_MS_MAX),
    })
    // The other connections report the same errors.
    this.client.on('error', () => undefined)
    this.client.on('ready', () => {
      for (const channel of this.channels) void this.subscribe(channel)
    })
    this.client.on('end', () => this.startAnew())
    this.client.on('messageBuffer', (channel: Buffer, message: Buffer) => heard(channel.toString(), message))
  }

  /** Whether the connection is open. */
  get isReady(): boolean {
    return this.client.status === 'ready'
  }

  /** Subscribes to a channel. Resolves when subscribed or refused. */
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

/** Listens for `worker` over its own connection, which is given up after ten silent seconds. */
export function listenToRedis(address: string, worker: string, ears: Receivers): Listening {
  const [bells, parcels] = [bellChannel(worker), parcelChannel(worker)]
  const reader = new BellReader()
  let heardAtMs = performance.now()
  const subscriber = new RedisSubscriber({
    address,
    name: 'ears',
    heard(channel, message) {
      heardAtMs = performance.now()
      if (channel === parcels) return reader.parcel(message)
      const text = message.toString()
      if (channel === bells) ears.bells(reader.bells(text))
      else if (text === '') ears.joined()
      else ears.released(Number(text))
    },
  })
  for (const channel of [parcels, bells, RELEASED_CHANNEL]) void subscriber.add(channel)
  let isUp = false
  const watch = setInterval(() => {
    if (subscriber.isReady && !isUp) heardAtMs = performance.now()
    isUp = subscriber.isReady
    if (!isUp) return
    if (performance.now() - heardAtMs > SILENT_MS_MAX) return subscriber.cut()
    void subscriber.ping().then((isAnswered) => {
      if (isAnswered) heardAtMs = performance.now()
    })
  }, PING_MS)
  watch.unref()
  return {
    close() {
      clearInterval(watch)
      subscriber.close()
    },
  }
}

/**
 * Receives the signals that owners of shards publish about topics after their commits, with one connection for all
 * topics, opened with the first and closed with the last.
 */
export class RedisSignals {
  private readonly address: string
  private readonly listeners = new Map<string, { readonly heard: Set<Heard>; readonly added: Promise<void> }>()
  private subscriber: RedisSubscriber | null = null

  constructor(address: string) {
    this.address = address
  }

  /** Subscribes to a topic. Resolves when subscribed, with a function that ends it. */
  async hear(topic: string, heard: Heard): Promise<() => void> {
    const channel = topicName(topic)
    this.subscriber ??= this.connect()
    const known = this.listeners.get(channel) ?? { heard: new Set<Heard>(), added: this.subscriber.add(channel) }
    this.listeners.set(channel, known)
    known.heard.add(heard)
    // Also for a second listener, whose first is still being subscribed.
    await known.added
    return () => this.leave(channel, heard)
  }

  close(): void {
    this.subscriber?.close()
    this.subscriber = null
    this.listeners.clear()
  }

  private leave(channel: string, heard: Heard): void {
    const known = this.listeners.get(channel)
    if (known === undefined || !known.heard.delete(heard) || known.heard.size > 0) return
    this.listeners.delete(channel)
    if (this.listeners.size === 0) this.close()
    else this.subscriber?.remove(channel)
  }

  private connect(): RedisSubscriber {
    return new RedisSubscriber({
      address: this.address,
      name: 'signals',
      heard: (channel, message) => {
        const text = message.toString()
        for (const heard of this.listeners.get(channel)?.heard ?? []) heard(text)
      },
    })
  }
}
