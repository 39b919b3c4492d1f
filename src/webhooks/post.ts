/**
 * post - one attempt to hand an event to a receiver over HTTPS.
 *
 * The name is resolved and its addresses are checked for each connection (`post-connect.ts`), so a name that changes
 * between two look-ups (DNS rebinding) gains nothing. A kept connection was checked when it was made. Redirects are
 * not followed. Receivers that have answered have connections of their own, which begin first, so that a hanging
 * receiver neither uses nor delays them.
 *
 * Guarantees: ends within ten seconds of its start, whatever the receiver does; reads at most 64 KB of an answer;
 * never rejects; sends no request whose time is over; connections are bounded by the attempts in flight, those that
 * linger and those used in the last four seconds.
 *
 * Spec webhook.attempt, webhook.private, webhook.fair
 */

import type { Socket } from 'node:net'
import { Agent, Client, type Dispatcher, Pool } from 'undici'
import { LAST_RESPONSE_BYTES_MAX, WEBHOOK_ANSWER_SECONDS } from '../../schemas/limits.ts'

import type { PostOutcome } from '../actors/webhook/posted.ts'
import { capText, maskAddress } from '../mail/reply.ts'
import { makePace } from './pace.ts'
import { type Connect, type ConnectDeps, makeConnect, NotConnected } from './post-connect.ts'

/** An unused connection is closed after this time; most receivers close theirs later. */
const KEEP_ALIVE_MS = 4_000
/** Bytes of an answer that are read; a longer one ends its connection. */
const ANSWER_BYTES_MAX = 64 * 1024
/** Bytes of an answer from which the stored part is derived. Masking addresses can shorten the text. */
const ANSWER_KEPT_BYTES = 2 * LAST_RESPONSE_BYTES_MAX
/** The next attempt waits this long for the rest of an answer, so that it can reuse the connection. */
const BODY_MS = 50
/** Maximum number of connections that still read the rest of an answer after the attempt; others are closed. */
const LINGERING_MAX = 256
const HEADER_BYTES_MAX = 16 * 1024
/** Reasons that no later attempt changes. */
const FINAL: readonly string[] = ['private_address', 'port_not_allowed']
/** Maximum number of hosts marked to be resolved again. */
const HOSTS_MAX = 5_000

export interface PosterDeps extends Pick<ConnectDeps, 'resolver' | 'privateNetworksAllowed' | 'webhookPorts' | 'ca'> {
  /** Time limit of the whole attempt; ten seconds by default. */
  readonly timeoutMs?: number
}

export interface PostInput {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether names must be resolved again because their known addresses failed before. */
  readonly fresh: boolean
  /** Whether the receiver answered when it was asked last. */
  readonly isProven: boolean
}

export interface Poster {
  /** Never rejects. */
  post(input: PostInput, signal: AbortSignal): Promise<PostOutcome>
  /** Ends every connection. */
  close(): Promise<void>
}

/** A poster with its own connections. */
export function makePoster(deps: PosterDeps): Poster {
  const timeoutMs = deps.timeoutMs ?? WEBHOOK_ANSWER_SECONDS * 1000
  const fresh = new Set<string>()
  const lingering = new Set<AnswerWatch>()
  const isFresh = (hostname: string): boolean => fresh.delete(hostname)
  const connectDeps = { ...deps, timeoutMs, pace: makePace(), isFresh }
  const proven = makeAgent(makeConnect(connectDeps, true))
  const unproven = makeAgent(makeConnect(connectDeps, false))
  return {
    async post(input, signal) {
      const { hostname } = new URL(input.url)
      if (input.fresh && fresh.size < HOSTS_MAX) fresh.add(hostname)
      const agent = input.isProven ? proven : unproven
      const time = { endsAtMs: performance.now() + timeoutMs, signal, lingering }
      const first = await attempt(agent, input, time)
      if (first !== STALE) return first
      // The receiver had closed a kept connection before it received any byte, so that was not an attempt.
      const second = await attempt(agent, input, time)
      return second === STALE ? failure('connect_failed') : second
    },
    async close() {
      await Promise.all([proven.destroy(), unproven.destroy()])
    },
  }
}

/** The receiver had closed the kept connection. */
const STALE = Symbol('stale')

function makeAgent(connect: Connect): Agent {
  return new Agent({
    connect: connect as never,
    factory: (origin, options) =>
      new Pool(origin, { ...options, factory: (to, own) => new Line(to, own as LineOptions) }),
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
    // The attempt keeps its own time, from its start.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** A request on its way through the library, which wraps its handler and leaves its options alone. */
interface Sent extends Dispatcher.DispatchOptions {
  readonly watch: AnswerWatch
}

type LineOptions = Client.Options & { readonly connect: Connect }

/** A client that reports to each request's watch that it was started, and knows its connection. */
class Line extends Client {
  /** Connections made so far. */
  made = 0
  private socket: Socket | null = null

  constructor(origin: string | URL, options: LineOptions) {
    const connect: Connect = (to, done) =>
      options.connect(to, (error, socket) => {
        this.made += 1
        this.socket = socket
        done(error, socket)
      })
    super(origin, { ...options, connect: connect as never })
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { watch } = options as Sent
    watch.takenBy(this)
    return super.dispatch(options, handler)
  }

  /** Ends the connection, and with it the request that is on it. An abort would have the library connect once more. */
  hangUp(reason: string): void {
    this.socket?.destroy(new Error(reason))
  }
}

interface AttemptTime {
  readonly endsAtMs: number
  readonly signal: AbortSignal
  /** Finished attempts whose answer is still being received. */
  readonly lingering: Set<AnswerWatch>
}

/** One request, from its dispatch to the head of its answer. */
function attempt(agent: Agent, input: PostInput, time: AttemptTime): Promise<PostOutcome | typeof STALE> {
  return new Promise((resolve) => {
    const { origin, pathname, search } = new URL(input.url)
    const watch = new AnswerWatch(time, resolve)
    const { headers, body } = input
    const sent: Sent = { origin, path: pathname + search, method: 'POST', headers, body, watch }
    agent.dispatch(sent, watch)
  })
}

/** Receives the events of a request, as undici's handler. */
class AnswerWatch implements Dispatcher.DispatchHandler {
  private readonly settle: (outcome: PostOutcome | typeof STALE) => void
  private readonly time: AttemptTime
  private readonly timer: NodeJS.Timeout
  /** It is on the connection of its line. */
  private isSent = false
  private isSettled = false
  private line: Line | null = null
  private madeBefore = 0
  /** The request was sent over a connection that was already open. */
  private isReused = false
  private answer: PostOutcome | null = null
  private bodyTimer: NodeJS.Timeout | undefined
  private bytes = 0
  private readonly kept: Buffer[] = []
  private keptBytes = 0

  constructor(time: AttemptTime, settle: (outcome: PostOutcome | typeof STALE) => void) {
    this.time = time
    this.settle = settle
    this.timer = setTimeout(() => this.late(), Math.max(1, time.endsAtMs - performance.now()))
    time.signal.addEventListener('abort', this.late, { once: true })
    if (time.signal.aborted) this.late()
  }

  takenBy(line: Line): void {
    this.line = line
    this.madeBefore = line.made
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.isSent = !this.isSettled
    // A request that had to wait for a new connection would have seen it made.
    this.isReused = this.line?.made === this.madeBefore
    if (this.isSettled) controller.abort(new Error('The attempt timed out'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    if (statusCode < 200) return
    this.answer =
      statusCode < 300
        ? { result: 'delivered', statusCode, error: null, final: false }
        : { ...failure(statusCode < 400 ? 'redirect' : `http_${statusCode}`), statusCode }
    this.bodyTimer = setTimeout(() => this.linger(), BODY_MS)
  }

  /** The body is read so that the connection can be used again, and only so far. */
  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.keptBytes < ANSWER_KEPT_BYTES && !this.isSettled) {
      // The buffer is the library's: it may be used again.
      const piece = Buffer.from(chunk.subarray(0, ANSWER_KEPT_BYTES - this.keptBytes))
      this.kept.push(piece)
      this.keptBytes += piece.length
    }
    this.bytes += chunk.length
    if (this.bytes <= ANSWER_BYTES_MAX) return
    this.tell()
    this.line?.hangUp('The answer is too long')
  }

  onResponseEnd(): void {
    this.over()
    // The library marks its connection as free one turn later; an attempt before that would open another one.
    setImmediate(() => setImmediate(() => this.tell()))
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.over()
    if (this.answer !== null) this.tell()
    else if (error instanceof NotConnected) this.end({ ...failure(error.reason), final: FINAL.includes(error.reason) })
    else if (this.isReused) this.end(STALE)
    else this.end(failure('connect_failed'))
  }

  /** The head of the answer decides, whatever its body is. */
  private tell(): void {
    if (this.answer === null || this.isSettled) return
    const response = this.keptBytes === 0 ? '' : keptResponse(Buffer.concat(this.kept).toString())
    this.end(response === '' ? this.answer : { ...this.answer, response })
  }

  /** The rest of the answer is received, but the attempt no longer waits for it. */
  private linger(): void {
    this.tell()
    if (this.time.lingering.size < LINGERING_MAX) this.time.lingering.add(this)
    else this.line?.hangUp('The answer took too long')
  }

  private readonly late = (): void => {
    this.tell()
    this.end(failure('timeout'))
    this.over()
    if (this.isSent) this.line?.hangUp('The attempt timed out')
  }

  private end(outcome: PostOutcome | typeof STALE): void {
    if (this.isSettled) return
    this.isSettled = true
    this.settle(outcome)
  }

  private over(): void {
    clearTimeout(this.timer)
    clearTimeout(this.bodyTimer)
    this.time.lingering.delete(this)
    this.time.signal.removeEventListener('abort', this.late)
  }
}

/** The kept part of an answer: one line without addresses, of at most 512 bytes. `text` may be longer. */
export function keptResponse(text: string): string {
  const line = capText(maskAddress(text, ''))
  const bytes = Buffer.from(line)
  if (bytes.length <= LAST_RESPONSE_BYTES_MAX) return line
  // A character that is cut becomes the replacement character.
  return bytes
    .subarray(0, LAST_RESPONSE_BYTES_MAX)
    .toString()
    .replace(/\ufffd+$/, '')
}

function failure(error: NonNullable<PostOutcome['error']>): PostOutcome {
  return { result: 'failed', statusCode: null, error, final: false }
}
