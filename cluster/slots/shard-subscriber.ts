/**
 * shard-subscriber - receives messages published in the slots of single shards (`SSUBSCRIBE`) of one primary
 *
 * A separate connection with a reader for the needed part of the protocol. The client cannot do this, because a
 * subscription answered by MOVED never settles there, and one that the server ends breaks its queue.
 *
 * Subscriptions are repeated with each connection, and a second after a refusal. Messages published in the meantime
 * are lost. A connection that is silent for ten seconds is given up; it is asked each second.
 */
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectSafely } from 'node:tls'
import Parser from 'redis-parser'
import { commandBytes } from '../redis/bulk-writer.ts'

const AGAIN_MS = 1_000
const SILENT_MS_MAX = 10_000

export interface ShardSubscriberOptions {
  /** `redis://` or `rediss://` address. */
  readonly address: string
  /** A channel is subscribed from now on: earlier messages were lost. */
  held(channel: string): void
  heard(channel: string, message: Buffer): void
}

export class ShardSubscriber {
  private readonly options: ShardSubscriberOptions
  private readonly wanted = new Set<string>()
  /** Wanted, and confirmed on this connection. */
  private readonly held = new Set<string>()
  private socket: Socket | null = null
  private isOpen = false
  private saidAtMs = 0
  private isClosed = false
  private readonly watch: NodeJS.Timeout

  constructor(options: ShardSubscriberOptions) {
    this.options = options
    this.open()
    this.watch = setInterval(() => this.look(), AGAIN_MS)
    this.watch.unref()
  }

  /** Receives these channels and no others from now on. */
  want(channels: ReadonlySet<string>): void {
    for (const channel of this.wanted) if (!channels.has(channel)) this.drop(channel)
    for (const channel of channels) {
      if (this.wanted.has(channel)) continue
      this.wanted.add(channel)
      this.say('SSUBSCRIBE', channel)
    }
  }

  close(): void {
    this.isClosed = true
    clearInterval(this.watch)
    this.socket?.destroy()
  }

  private drop(channel: string): void {
    this.wanted.delete(channel)
    if (this.held.delete(channel)) this.say('SUNSUBSCRIBE', channel)
  }

  private say(...args: readonly string[]): void {
    if (this.isOpen) this.socket?.write(commandBytes(args))
  }

  /** A second has passed: repeats missing subscriptions, and checks the connection. */
  private look(): void {
    if (this.socket === null || performance.now() - this.saidAtMs > SILENT_MS_MAX) {
      this.socket?.destroy()
      if (this.socket === null) this.open()
      return
    }
    for (const channel of this.wanted) if (!this.held.has(channel)) this.say('SSUBSCRIBE', channel)
    this.say('PING')
  }

  private open(): void {
    if (this.isClosed) return
    const url = new URL(this.options.address)
    const place = { host: url.hostname.replace(/^\[|\]$/g, ''), port: Number(url.port || 6379) }
    const isSafe = url.protocol === 'rediss:'
    const socket = isSafe
      ? connectSafely({ ...place, ...(isIP(place.host) === 0 && { servername: place.host }) })
      : connect(place)
    this.socket = socket
    this.saidAtMs = performance.now()
    const parser = new Parser({
      returnBuffers: true,
      returnReply: (reply) => this.said(reply),
      // A refusal of one command; missing subscriptions are requested again.
      returnError: () => undefined,
      returnFatalError: () => void socket.destroy(),
    })
    socket.on('data', (data: Buffer) => {
      this.saidAtMs = performance.now()
      parser.execute(data)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.isOpen = false
      this.held.clear()
      this.socket = null
    })
    socket.once(isSafe ? 'secureConnect' : 'connect', () => {
      this.isOpen = true
      const [user, password] = [url.username, url.password].map(decodeURIComponent)
      if (password) this.say(...(user ? ['AUTH', user, password] : ['AUTH', password]))
      for (const channel of this.wanted) this.say('SSUBSCRIBE', channel)
    })
  }

  private hold(channel: string): void {
    if (this.held.has(channel)) return
    this.held.add(channel)
    this.options.held(channel)
  }

  private said(reply: unknown): void {
    if (!Array.isArray(reply)) return
    const [kind, channel, message] = reply.map((part) => (Buffer.isBuffer(part) ? part : null))
    if (channel === null || channel === undefined) return
    const name = String(channel)
    if (String(kind) === 'smessage' && message) this.options.heard(name, message)
    else if (String(kind) === 'ssubscribe' && this.wanted.has(name)) this.hold(name)
    else if (String(kind) === 'sunsubscribe') this.held.delete(name)
  }
}
