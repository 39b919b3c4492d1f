/**
 * link - one connection to the store that reports the outcome of every command.
 *
 * States: down (connecting, or preparing what a new connection needs), up, closed (for good).
 *
 * Guarantees that a command gets exactly one answer: a reply, an error of the store, `lost` (handed to the socket,
 * then the connection ended), or `unsent` (never handed to it). Nothing is queued while the link is down, nothing is
 * sent twice, and no timer ends a command. Commands sent in one turn of the loop go out in one write. Errors carry no
 * arguments.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { Command, Redis, type RedisOptions } from 'ioredis'
import { commandBytes } from './bulk-writer.ts'
import type { Script } from './scripts.ts'

/** Milliseconds between tries to connect, growing by 50 up to this. */
const RETRY_MS_MAX = 500
const CONNECT_MS_MAX = 5_000
/** A new connection that does not answer its preparation is given up after this. */
const PREPARE_MS_MAX = 10_000
/** How often a link looks whether its commands are answered. */
const WATCH_MS = 500
const KEEP_ALIVE_MS = 10_000
/**
 * A store that reads its files is asked again after this; the client would go by the store's own guess, up to ten
 * seconds.
 */
export const LOADING_MS = 200

export type StoreAnswer =
  | { readonly kind: 'reply'; readonly value: unknown }
  | { readonly kind: 'error'; readonly message: string }
  | { readonly kind: 'lost' | 'unsent' }

export interface LinkOptions {
  /** `redis://` or `rediss://` address, or the path of a unix socket. */
  readonly address: string
  /** As CLIENT LIST shows it. */
  readonly name: string
  /** A connection on which a command waits for its answer this long is given up; undefined: never. */
  readonly silentMsMax?: number
  /** Prepares a new connection before its first command. A rejection ends the connection; it is tried again. */
  prepare(client: Redis): Promise<void>
  onUp?(): void
  onDown?(): void
  /** In a cluster: sends a command that this node redirects (MOVED, ASK) to the right one; null for other refusals. */
  sendOn?(refusal: string, sending: Sending): Promise<StoreAnswer> | null
  /** In a cluster, a command not sent through the link got a redirection. */
  moved?(): void
}

/** A command as bytes, and how it is sent. */
export interface Sending {
  /** Name of its link. */
  readonly link: string
  readonly bytes: Buffer
  readonly isBinary?: boolean | undefined
  /** The slot is being moved to the node that is asked, which answers once for it. */
  readonly isAsking?: boolean | undefined
  /** Nodes that have sent it on. */
  readonly hops?: number | undefined
}

/** Times of answered commands are dropped in batches of this size. */
const SENT_KEPT = 1_024

const UNSENT: StoreAnswer = { kind: 'unsent' }
const LOST: StoreAnswer = { kind: 'lost' }

export class RedisLink {
  readonly client: QuietRedis
  private readonly watch: NodeJS.Timeout
  private readonly options: LinkOptions
  private isUp = false
  private downSinceMs = performance.now()
  private isClosed = false
  private isCorked = false
  private waiting: { resolve: () => void; reject: (error: Error) => void }[] = []
  private lastError: Error | null = null

  constructor(options: LinkOptions) {
    this.options = options
    this.client = new QuietRedis(options.address, clientOptions(options))
    this.client.moved = () => options.moved?.()
    this.client.on('ready', () => void this.prepare())
    this.client.on('error', (error: Error) => {
      this.lastError = error
    })
    this.client.on('close', () => this.goDown())
    this.client.on('end', () => this.startAnew())
    this.watch = setInterval(() => void this.lookAtSilence(), WATCH_MS)
    this.watch.unref()
  }

  get name(): string {
    return this.options.name
  }

  get up(): boolean {
    return this.isUp
  }

  /**
   * The age of the oldest unanswered command or the duration of the last answer, whichever is longer; while down, the
   * time since. An idle link is probed twice a second, so a slow one is slow at every look.
   */
  get lagMs(): number {
    const { oldestMs, tookMs } = this.client
    return this.isUp ? Math.max(oldestMs, tookMs) : performance.now() - this.downSinceMs
  }

  /** Resolves when the link is up; rejects with the last reason after `timeoutMs`. */
  ready(timeoutMs: number): Promise<void> {
    if (this.isUp) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const settle = (call: () => void): void => {
        clearTimeout(timer)
        call()
      }
      const mine = { resolve: () => settle(resolve), reject: (error: Error) => settle(() => reject(error)) }
      const timer = setTimeout(() => {
        this.waiting = this.waiting.filter((other) => other !== mine)
        reject(this.reason())
      }, timeoutMs)
      this.waiting.push(mine)
    })
  }

  /** Sends one command, given as the bytes of the protocol. Texts of a binary answer come as bytes. Never rejects. */
  send(bytes: Buffer, options: Omit<Sending, 'link' | 'bytes'> = {}): Promise<StoreAnswer> {
    if (!this.isUp) return Promise.resolve(UNSENT)
    const command = new ReadyMade(bytes, options.isBinary === true)
    this.cork()
    // In the same write, so that nothing comes between the two.
    if (options.isAsking === true) void this.client.asking().catch(() => undefined)
    return (this.client.sendCommand(command) as Promise<unknown>).then(
      (value): StoreAnswer => ({ kind: 'reply', value }),
      (error: Error): StoreAnswer | Promise<StoreAnswer> => {
        const { message } = error
        if (error.name === 'ReplyError')
          return this.options.sendOn?.(message, { ...options, link: this.name, bytes }) ?? { kind: 'error', message }
        return command.isHanded ? LOST : UNSENT
      },
    )
  }

  /** Sends one command of text arguments. */
  call(...args: readonly string[]): Promise<StoreAnswer> {
    return this.send(commandBytes(args))
  }

  /** Ends this connection at once, without waiting for the other side; the link connects again. */
  cut(): void {
    this.client.stream?.destroy()
  }

  /** Ends the link for good. */
  close(): void {
    this.isClosed = true
    clearInterval(this.watch)
    this.client.disconnect()
    this.goDown()
    this.fail(new Error('The connection to the store was closed'))
  }

  /** Rejects the callers that wait for the link. */
  fail(error: Error): void {
    const waiting = this.waiting
    this.waiting = []
    for (const { reject } of waiting) reject(error)
  }

  private async prepare(): Promise<void> {
    const { stream } = this.client
    try {
      await this.options.prepare(this.client)
    } catch (error) {
      this.lastError = error as Error
      // In a separate turn, or a store that refuses at once would be asked without a pause.
      await turn()
      stream.destroy()
      return
    }
    if (this.isClosed || this.client.stream !== stream || this.client.status !== 'ready') return
    this.isUp = true
    const waiting = this.waiting
    this.waiting = []
    for (const { resolve } of waiting) resolve()
    this.options.onUp?.()
  }

  /**
   * After a stop of the whole process timers run before sockets, so an answer that has arrived is read first. An idle
   * link is probed, so that its lag holds for the next command.
   */
  private async lookAtSilence(): Promise<void> {
    if (this.isUp && this.client.oldestMs === 0) this.client.ping().catch(() => undefined)
    if (!this.isSilent()) return
    await turn()
    if (this.isSilent()) this.cut()
  }

  private isSilent(): boolean {
    const msMax = this.options.silentMsMax ?? (this.isUp ? Number.POSITIVE_INFINITY : PREPARE_MS_MAX)
    return this.client.silentMs > msMax
  }

  /** The client has given up, which it does when a connection cannot even be begun; the link never does. */
  private startAnew(): void {
    if (this.isClosed) return
    setTimeout(() => {
      if (!this.isClosed && this.client.status === 'end') void this.client.connect().catch(() => undefined)
    }, RETRY_MS_MAX)
  }

  private goDown(): void {
    this.isCorked = false
    if (!this.isUp) return
    this.isUp = false
    this.downSinceMs = performance.now()
    this.options.onDown?.()
  }

  /** Holds the socket's writes back until the running code has issued all its commands. */
  private cork(): void {
    if (this.isCorked) return
    const { stream } = this.client
    this.isCorked = true
    stream.cork()
    // A microtask: pending work for an answer that came just now is resolved after this has left.
    queueMicrotask(() => {
      this.isCorked = false
      stream.uncork()
    })
  }

  private reason(): Error {
    return new Error(`The store does not answer: ${this.lastError?.message || 'no connection'}`)
  }
}

/**
 * A client whose errors do not carry the arguments of their command, which may be personal data, and that knows how
 * long the oldest command waits. (The client's own `socketTimeout` outlives its connection and ends the next one.)
 */
class QuietRedis extends Redis {
  /** Receives the redirection of a command. */
  moved: (() => void) | null = null
  private waiting = 0
  private movedAtMs = 0
  /** When the commands that wait were sent, oldest first: answers come in that order. */
  private sentAtMs: number[] = []
  private answered = 0
  private lastTookMs = 0

  /** For how long commands have waited without any answer; 0 when none waits. */
  get silentMs(): number {
    return this.waiting === 0 ? 0 : performance.now() - this.movedAtMs
  }

  /** For how long the oldest command has waited; 0 when none waits. */
  get oldestMs(): number {
    return this.waiting === 0 ? 0 : Math.max(1, performance.now() - (this.sentAtMs[this.answered] ?? this.movedAtMs))
  }

  /** The duration of the last answer, or a command that the end of its connection answered. */
  get tookMs(): number {
    return this.lastTookMs
  }

  override sendCommand(...[command, stream]: Parameters<Redis['sendCommand']>): unknown {
    const { resolve, reject } = command
    if (this.waiting === 0) this.movedAtMs = performance.now()
    this.waiting += 1
    this.sentAtMs.push(performance.now())
    command.resolve = (value) => {
      this.answer()
      resolve(value)
    }
    command.reject = (error) => {
      this.answer()
      if ('command' in error) delete error.command
      if (this.moved !== null && error.message.startsWith('MOVED ')) this.moved()
      reject(error)
    }
    return super.sendCommand(command, stream)
  }

  private answer(): void {
    this.waiting -= 1
    this.movedAtMs = performance.now()
    this.lastTookMs = this.movedAtMs - (this.sentAtMs[this.answered] ?? this.movedAtMs)
    this.answered += 1
    if (this.waiting === 0 || this.answered >= SENT_KEPT) {
      this.sentAtMs = this.sentAtMs.slice(this.answered)
      this.answered = 0
    }
  }
}

/** A command whose bytes exist already. It has no arguments that an error could carry. */
class ReadyMade extends Command {
  /** Whether the bytes were given to the socket. */
  isHanded = false
  private readonly bytes: Buffer

  constructor(bytes: Buffer, isBinary: boolean) {
    super('evalsha', [], { replyEncoding: isBinary ? null : 'utf8' })
    this.bytes = bytes
  }

  override toWritable(): Buffer {
    this.isHanded = true
    return this.bytes
  }
}

function clientOptions({ name }: LinkOptions): RedisOptions {
  return {
    connectionName: name,
    // If the client itself resent unanswered commands, a refused commit could run later.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    enableAutoPipelining: false,
    enableReadyCheck: true,
    keepAlive: KEEP_ALIVE_MS,
    connectTimeout: CONNECT_MS_MAX,
    maxLoadingRetryTime: LOADING_MS,
    disableClientInfo: true,
    retryStrategy: (times: number) => Math.min(times * 50, RETRY_MS_MAX),
  }
}

/**
 * Sends a script's bytes; if the store lacks the script (nothing ran), it is loaded and the same bytes are sent again.
 */
export async function runScript(
  link: RedisLink,
  script: Script,
  bytes: Buffer,
  options?: { isBinary?: boolean },
): Promise<StoreAnswer> {
  const answer = await link.send(bytes, options)
  if (!isScriptUnknown(answer)) return answer
  await link.call('SCRIPT', 'LOAD', script.text)
  return link.send(bytes, options)
}

/** Whether the store reported an unknown script: nothing ran. */
export function isScriptUnknown(answer: StoreAnswer): boolean {
  return answer.kind === 'error' && answer.message.startsWith('NOSCRIPT')
}
