/**
 * post - one attempt to hand an event to a receiver over HTTPS.
 *
 * The name is looked up and its addresses are checked for each connection, and the connection goes to an address that was
 * checked: a name that changes its mind between two look-ups (DNS rebinding) gains nothing. A kept connection is one that
 * was checked when it was made. Redirects are not followed.
 *
 * Guarantees: ends within ten seconds of its start, whatever the receiver does; reads at most 64 KB of an answer; never
 * rejects; a request whose time is over is not sent any more.
 *
 * Spec webhook.attempt, webhook.private
 */

import { isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Agent, type Dispatcher } from 'undici'
import { WEBHOOK_ANSWER_SECONDS } from '../../schemas/limits.ts'
import type { PostOutcome } from '../actors/posted.ts'
import { isPublicAddress } from '../mail/mx.ts'
import type { Resolver } from './resolve.ts'

/** A connection that nothing is said on is closed after this; most receivers close theirs later. */
const KEEP_ALIVE_MS = 4_000
/** Bytes of an answer that are read; a longer one ends its connection. */
const ANSWER_BYTES_MAX = 64 * 1024
/** The next attempt waits this long for the rest of an answer: then it can have the same connection. */
const BODY_MS = 50
const HEADER_BYTES_MAX = 16 * 1024
/** Hosts that are remembered as to be looked up anew. */
const HOSTS_MAX = 5_000
/** Addresses of a host that are tried in one attempt. */
const ADDRESSES_MAX = 3
const HTTPS_PORT = 443
/** Connections that begin in one step: 500 a second. */
const BEGUN_MAX = 10
const STEP_MS = 20

export interface PosterDeps {
  readonly resolver: Resolver
  /** CIDRs that may be connected to although they are private. */
  readonly privateNetworksAllowed: readonly string[]
  /** Certificates to trust in place of the usual ones; null: the usual ones. */
  readonly ca: string | null
  /** For everything, from the start; ten seconds. */
  readonly timeoutMs?: number
}

export interface PostInput {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether names are to be looked up anew: what was known of them did not help before. */
  readonly fresh: boolean
}

export interface Poster {
  /** Never rejects. */
  post(input: PostInput, signal: AbortSignal): Promise<PostOutcome>
  /** Ends every connection. */
  close(): Promise<void>
}

type ConnectError = 'dns_error' | 'private_address' | 'connect_failed' | 'tls_failed'

/** Why a connection could not be made. */
class NotConnected extends Error {
  readonly reason: ConnectError

  constructor(reason: ConnectError) {
    super(reason)
    this.reason = reason
  }
}

type Connect = (options: ConnectOptions, done: (error: Error | null, socket: Socket | null) => void) => void

interface ConnectOptions {
  readonly hostname: string
  readonly port?: string
}

/** A poster with its own connections. */
export function makePoster(deps: PosterDeps): Poster {
  const timeoutMs = deps.timeoutMs ?? WEBHOOK_ANSWER_SECONDS * 1000
  const fresh = new Set<string>()
  const made = { connections: 0 }
  const agent = makeAgent(makeConnect(deps, { timeoutMs, made, isFresh: (host) => fresh.delete(host) }))
  return {
    async post(input, signal) {
      const { hostname } = new URL(input.url)
      if (input.fresh && fresh.size < HOSTS_MAX) fresh.add(hostname)
      const endsAtMs = performance.now() + timeoutMs
      const time = { endsAtMs, signal, made }
      const first = await attempt(agent, input, time)
      if (first !== STALE) return first
      // The receiver had closed a kept connection before it heard anything: that was no attempt.
      const second = await attempt(agent, input, time)
      return second === STALE ? failure('connect_failed') : second
    },
    async close() {
      await agent.destroy()
    },
  }
}

/** The kept connection was over. */
const STALE = Symbol('stale')

function makeAgent(connect: Connect): Agent {
  return new Agent({
    connect: connect as never,
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

/** Connects to an address of the host that was checked. */
function makeConnect(
  deps: PosterDeps,
  { timeoutMs, made, isFresh }: { timeoutMs: number; made: Made; isFresh: (host: string) => boolean },
): Connect {
  const pace = makePace()
  return ({ hostname, port }, done) => {
    const host = hostname.replace(/^\[|\]$/g, '')
    const target = { host, port: Number(port) || HTTPS_PORT, ca: deps.ca, endsAtMs: performance.now() + timeoutMs }
    findAddresses(deps, host, isFresh(hostname))
      .then((addresses) => pace().then(() => connectToOne(addresses, target)))
      .then(
        (socket) => {
          made.connections += 1
          done(null, socket)
        },
        (error: Error) => done(error, null),
      )
  }
}

/**
 * Lets connections begin a few at a time: a thousand handshakes at once would keep this thread from everything else for
 * seconds. In order; nobody who has a connection waits.
 */
function makePace(): () => Promise<void> {
  const waiting: (() => void)[] = []
  let begun = 0
  const step = (): void => {
    begun = 0
    for (let next = waiting.shift(); next !== undefined; next = begun < BEGUN_MAX ? waiting.shift() : undefined) {
      begun += 1
      next()
    }
    if (begun > 0) setTimeout(step, STEP_MS)
    else isStepping = false
  }
  let isStepping = false
  return () =>
    new Promise((resolve) => {
      if (!isStepping) {
        isStepping = true
        setTimeout(step, STEP_MS)
      }
      if (begun < BEGUN_MAX && waiting.length === 0) {
        begun += 1
        resolve()
      } else waiting.push(resolve)
    })
}

interface ConnectTarget {
  readonly host: string
  readonly port: number
  readonly ca: string | null
  readonly endsAtMs: number
}

/** The first of some addresses that answers. */
async function connectToOne(addresses: readonly string[], target: ConnectTarget): Promise<Socket> {
  for (const address of addresses.slice(0, ADDRESSES_MAX)) {
    const connected = await connectTo(address, target)
    if (connected === 'tls_failed') throw new NotConnected('tls_failed')
    if (connected !== 'connect_failed') return connected
  }
  throw new NotConnected('connect_failed')
}

function connectTo(
  address: string,
  { host, port, ca, endsAtMs }: ConnectTarget,
): Promise<Socket | 'connect_failed' | 'tls_failed'> {
  return new Promise((resolve) => {
    const servername = isIP(host) === 0 ? { servername: host } : {}
    const trust = ca === null ? {} : { ca }
    const socket = connectTls({ host: address, port, ALPNProtocols: ['http/1.1'], ...servername, ...trust })
    let isTcpUp = false
    const fail = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(isTcpUp ? 'tls_failed' : 'connect_failed')
    }
    const timer = setTimeout(fail, Math.max(1, endsAtMs - performance.now()))
    socket.setNoDelay(true)
    socket.once('connect', () => {
      isTcpUp = true
    })
    // Stays after a failure: a destroyed socket may still report its error.
    socket.on('error', fail)
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      socket.off('error', fail)
      resolve(socket)
    })
  })
}

/** The addresses of the host, each of which may be connected to. Rejects with NotConnected. Spec webhook.private */
async function findAddresses(
  { resolver, privateNetworksAllowed }: PosterDeps,
  host: string,
  fresh: boolean,
): Promise<readonly string[]> {
  const addresses = await addressesOf(resolver, host, fresh)
  if (addresses === null) throw new NotConnected('dns_error')
  if (!addresses.every((address) => isPublicAddress(address, privateNetworksAllowed)))
    throw new NotConnected('private_address')
  return addresses
}

/** Every address of a host, IPv4 first; null where none is known. `localhost` is the loopback (RFC 6761 6.3). */
async function addressesOf(resolver: Resolver, host: string, fresh: boolean): Promise<readonly string[] | null> {
  if (isIP(host) !== 0) return [host]
  if (host === 'localhost' || host.endsWith('.localhost')) return ['127.0.0.1']
  const [v4, v6] = await Promise.all([resolver.look('A', host, { fresh }), resolver.look('AAAA', host, { fresh })])
  const found = [v4, v6].flatMap((answer) => (answer.status === 'ok' ? answer.records : []))
  return found.length === 0 ? null : found
}

/** Connections made so far. */
interface Made {
  connections: number
}

interface AttemptTime {
  readonly made: Made
  readonly endsAtMs: number
  readonly signal: AbortSignal
}

/** One request, from its dispatch to the head of its answer. */
function attempt(agent: Agent, input: PostInput, time: AttemptTime): Promise<PostOutcome | typeof STALE> {
  return new Promise((resolve) => {
    const { origin, pathname, search } = new URL(input.url)
    const watch = new AnswerWatch(time, resolve)
    const { headers, body } = input
    agent.dispatch({ origin, path: pathname + search, method: 'POST', headers, body }, watch)
  })
}

/** Hears what becomes of a request; undici's handler. */
class AnswerWatch implements Dispatcher.DispatchHandler {
  private readonly settle: (outcome: PostOutcome | typeof STALE) => void
  private readonly time: AttemptTime
  private readonly timer: NodeJS.Timeout
  private controller: Dispatcher.DispatchController | null = null
  private isSettled = false
  private readonly madeBefore: number
  /** It went out over a connection that was open already. */
  private isReused = false
  private answer: PostOutcome | null = null
  private bodyTimer: NodeJS.Timeout | undefined
  private bytes = 0

  constructor(time: AttemptTime, settle: (outcome: PostOutcome | typeof STALE) => void) {
    this.time = time
    this.settle = settle
    this.madeBefore = time.made.connections
    this.timer = setTimeout(() => this.late(), Math.max(1, time.endsAtMs - performance.now()))
    time.signal.addEventListener('abort', this.late, { once: true })
    if (time.signal.aborted) this.late()
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    // One that had to wait for a connection of its own would have seen it made.
    this.isReused = this.time.made.connections === this.madeBefore
    if (this.isSettled) controller.abort(new Error('Its time is over'))
  }

  onResponseStart(_controller: Dispatcher.DispatchController, statusCode: number): void {
    if (statusCode < 200) return
    this.answer =
      statusCode < 300
        ? { result: 'delivered', statusCode, error: null, final: false }
        : { ...failure(statusCode < 400 ? 'redirect' : `http_${statusCode}`), statusCode }
    this.bodyTimer = setTimeout(() => this.tell(), BODY_MS)
  }

  /** The body is read so that the connection can be used again, and only so far. */
  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length
    if (this.bytes <= ANSWER_BYTES_MAX) return
    this.tell()
    controller.abort(new Error('The answer is too long'))
  }

  onResponseEnd(): void {
    this.over()
    // The library takes its connection for free one turn later: an attempt before that would open another one.
    setImmediate(() => setImmediate(() => this.tell()))
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    this.over()
    if (this.answer !== null) this.tell()
    else if (error instanceof NotConnected)
      this.end({ ...failure(error.reason), final: error.reason === 'private_address' })
    else if (this.isReused) this.end(STALE)
    else this.end(failure('connect_failed'))
  }

  /** The head of the answer decides, whatever its body does. */
  private tell(): void {
    if (this.answer !== null) this.end(this.answer)
  }

  private readonly late = (): void => {
    this.tell()
    this.end(failure('timeout'))
    this.over()
    this.controller?.abort(new Error('Its time is over'))
  }

  private end(outcome: PostOutcome | typeof STALE): void {
    if (this.isSettled) return
    this.isSettled = true
    this.settle(outcome)
  }

  private over(): void {
    clearTimeout(this.timer)
    clearTimeout(this.bodyTimer)
    this.time.signal.removeEventListener('abort', this.late)
  }
}

function failure(error: NonNullable<PostOutcome['error']>): PostOutcome {
  return { result: 'failed', statusCode: null, error, final: false }
}
