/**
 * relay - hands every message to one server of the operator's (smart host), over connections that are kept and used
 * again.
 *
 * Guarantees: at most `connectionsMax` connections, divided among the processes that deliver (at least one each); one
 * message at a time on each; a connection that proves dead before a message was begun on it, or that replies 421, is
 * replaced transparently. The relay may be in a private network: it was named by the operator, not by a sender. Over
 * any other network a password goes out encrypted or not at all.
 *
 * Spec delivery.relay, delivery.relay.password
 */

import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ConnectionOptions } from 'node:tls'
import { type AttemptRoute, unconnectedRoute } from '../../mail/attempt-route.ts'
import type { Outcome } from '../../mail/outcome.ts'
import { makeDeferred, makeReturned } from '../../mail/outcome.ts'
import { formatReply } from '../../mail/reply.ts'
import type { Contact } from '../../mail/site-pace.ts'
import { connect } from './connect.ts'
import type { Opened, OpenInput, SendInput, Sent, Session, SmtpTimeouts } from './converse.ts'
import { openSession } from './converse.ts'
import { isElsewhere, judgeFailure, judgeSent } from './judge.ts'
import type { RelayTarget } from './relay-target.ts'
import { CLEAR_PASSWORD } from './thread-job.ts'

/** A connection that was not used for this long is closed. */
const IDLE_MAX_MS = 5000
/** Messages that may wait for a connection; past that they are deferred. */
const WAITING_MAX = 10_000
const ADDRESSES_MAX = 5
const LOOKUP_TIMEOUT_MS = 5000

export interface RelayOptions {
  readonly target: RelayTarget
  readonly connectionsMax: number
  readonly ehloName: string
  readonly timeouts: SmtpTimeouts
  /** Authority for the certificate of an `smtps` relay instead of the system's (PEM); null = the system's. */
  readonly ca: string | null
  /** Whether the way to an address leaves the loopback and private networks. */
  isOutside(address: string): boolean
}

/** The outcome of a message, and the state of the relay. */
export interface Relayed {
  readonly outcome: Outcome
  readonly contact: Contact
  readonly route: AttemptRoute | null
}

/** A relay with no connection yet. */
export class Relay {
  private readonly options: RelayOptions
  private readonly idle = new Map<Session, NodeJS.Timeout>()
  /** Number of open sessions at the last check. */
  private readonly sessions = new Set<Session>()
  private readonly places: Places
  private isClosed = false

  constructor(options: RelayOptions) {
    this.options = options
    this.places = new Places(options.connectionsMax)
  }

  /** Connections that are open. */
  get open(): number {
    for (const session of this.sessions) if (!session.isOpen()) this.sessions.delete(session)
    return this.sessions.size
  }

  /** Waits for a free connection and hands a message over. `sharers` processes share the connections. Never rejects. */
  async send(input: SendInput, signal: AbortSignal, sharers = 1): Promise<Relayed> {
    this.places.limit(Math.max(1, Math.floor(this.options.connectionsMax / sharers)))
    const refusal = await this.places.take(signal)
    if (refusal !== null) return { outcome: refusal, contact: 'none', route: null }
    const relayed = await this.perform(input, signal)
    this.places.free()
    return relayed
  }

  /** Closes idle connections; connections in use close after their message. */
  close(): void {
    this.isClosed = true
    for (const [session, timer] of this.idle) {
      clearTimeout(timer)
      session.quit()
    }
    this.idle.clear()
  }

  private async perform(input: SendInput, signal: AbortSignal): Promise<Relayed> {
    for (let kept = this.takeIdle(); kept !== null; kept = this.takeIdle()) {
      const { sent, relayed } = await this.sendOver({ session: kept, isReused: true }, input, signal)
      // Nothing has happened, so the next connection may have it.
      if (!isElsewhere(sent, relayed.outcome)) return relayed
    }
    const opened = await openSessionTo(this.options, signal)
    if (!opened.ok && signal.aborted)
      return { outcome: makeReturned('abort', 'attempt was cut off'), contact: 'none', route: null }
    if (!opened.ok) {
      const outcome = judgeFailure(opened.failure, this.options.target.host)
      return { outcome, contact: contactOf(opened), route: unconnectedRoute(this.options.target.host, null, null) }
    }
    this.sessions.add(opened.session)
    return (await this.sendOver({ session: opened.session, isReused: false }, input, signal)).relayed
  }

  private async sendOver(
    { session, isReused }: { session: Session; isReused: boolean },
    input: SendInput,
    signal: AbortSignal,
  ): Promise<{ sent: Sent; relayed: Relayed }> {
    const { host } = this.options.target
    const opening = isReused ? { connectMs: null, tlsMs: null } : {}
    const facts = { ...session.facts(), ...opening, host, mtaSts: null, dane: null, isReused, dnsMs: null }
    const beganMs = performance.now()
    const sent = await session.send(input, signal)
    const route = { ...facts, transactionMs: performance.now() - beganMs }
    const outcome = judgeSent(sent, host)
    // After a refusal the server may still have the sender, so the session is reset or replaced. A server that replies
    // 421 is about to close.
    const mayGoOn = session.isOpen() && (sent.ok || (outcome.code !== 421 && (await session.reset())))
    if (mayGoOn) this.keepIdle(session)
    else {
      session.destroy()
      this.sessions.delete(session)
    }
    return { sent, relayed: { outcome, contact: 'answered', route } }
  }

  private takeIdle(): Session | null {
    for (const [session, timer] of this.idle) {
      clearTimeout(timer)
      this.idle.delete(session)
      if (session.isOpen()) return session
    }
    return null
  }

  private keepIdle(session: Session): void {
    const expire = () => {
      this.idle.delete(session)
      session.quit()
    }
    if (this.isClosed || this.places.isCrowded(this.idle.size)) session.quit()
    else this.idle.set(session, setTimeout(expire, IDLE_MAX_MS).unref())
  }
}

/** Places for connections; attempts without one wait in order. */
class Places {
  private readonly waiting = new Set<() => void>()
  private max: number
  private taken = 0

  constructor(max: number) {
    this.max = max
  }

  /** Changes the maximum: an increase applies at once, a decrease as connections become free. */
  limit(now: number): void {
    this.max = now
    while (this.taken < this.max && this.waiting.size > 0) {
      this.taken += 1
      for (const grant of [...this.waiting].slice(0, 1)) grant()
    }
  }

  /** Null with a place, otherwise the outcome that gives the reason. */
  async take(signal: AbortSignal): Promise<Outcome | null> {
    if (this.waiting.size >= WAITING_MAX)
      return makeDeferred('conn', 'TransientFailure', '4.3.2 too much is waiting for the relay')
    if (this.taken < this.max) {
      this.taken += 1
      return null
    }
    return new Promise((resolve) => {
      const grant = () => {
        signal.removeEventListener('abort', onAbort)
        this.waiting.delete(grant)
        resolve(null)
      }
      const onAbort = () => {
        this.waiting.delete(grant)
        resolve(makeReturned('abort', 'attempt was cut off'))
      }
      this.waiting.add(grant)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
    })
  }

  free(): void {
    const next = this.taken <= this.max ? this.waiting.values().next().value : undefined
    // The place is handed on, so the count stays.
    if (next) next()
    else this.taken -= 1
  }

  /** Whether the pool has no room for this number of idle connections. */
  isCrowded(idle: number): boolean {
    return idle + this.taken > this.max
  }
}

/** Whether the relay was there at all. */
function contactOf(opened: Opened & { ok: false }): Contact {
  const { kind, text } = opened.failure
  if (kind === 'abort') return 'none'
  if (kind === 'timeout' || text.startsWith('connect ETIMEDOUT')) return 'silent'
  return kind === 'lost' ? 'refused' : 'answered'
}

async function openSessionTo(options: RelayOptions, signal: AbortSignal): Promise<Opened> {
  const { target } = options
  let last: Opened = lost(`lookup failed for ${target.host}`)
  for (const address of await findAddresses(target.host)) {
    const hasPassword = target.auth !== null && options.isOutside(address)
    const mustEncrypt = !target.isImplicitTls && (hasPassword || target.isVerified === true)
    const tls = target.isImplicitTls ? 'implicit' : mustEncrypt ? 'required' : 'opportunistic'
    last = await openAt(options, address, signal, tls)
    const isTlsFault = !last.ok && last.failure.kind === 'handshake'
    if (isTlsFault && mustEncrypt && hasPassword) return refuseClear(last as Opened & { ok: false }, target.host)
    // Credentials never go out in the clear because a handshake was disturbed.
    const mayFallBack = isTlsFault && !target.isImplicitTls && target.auth === null && !mustEncrypt
    if (mayFallBack) last = await openAt(options, address, signal, 'none')
    if (last.ok || last.failure.kind === 'reply' || signal.aborted) return last
  }
  return last
}

/** Another address of the same relay is no better a place for the password. */
function refuseClear({ failure }: Opened & { ok: false }, host: string): Opened {
  const text = `${CLEAR_PASSWORD}: no TLS with`
  return { ok: false, failure: { ...failure, text: `${text} ${host} (${formatReply(failure.text)}),` } }
}

async function openAt(
  options: RelayOptions,
  address: string,
  signal: AbortSignal,
  tls: OpenInput['tls'],
): Promise<Opened> {
  const { target, timeouts, ehloName } = options
  const { host, port } = target
  const connected = await connect({ host, address, port, timeoutMs: timeouts.connectMs }, signal)
  if (!connected.ok) return lost(connected.text)
  const tlsOptions = formatTls(options)
  return openSession(
    { socket: connected.socket, host, ehloName, tls, tlsOptions, auth: target.auth, timeouts, connectMs: connected.ms },
    signal,
  )
}

/**
 * `smtps` is a promise, so the certificate must be valid; STARTTLS is used if it is offered, as for unknown servers.
 */
function formatTls({ target, ca }: RelayOptions): ConnectionOptions {
  return {
    rejectUnauthorized: target.isImplicitTls || target.isVerified === true,
    minVersion: 'TLSv1.2',
    ...(isIP(target.host) === 0 && { servername: target.host }),
    ...(ca !== null && { ca }),
  }
}

/** The system's own look-up, which knows the hosts file; empty when it fails or takes too long. */
async function findAddresses(host: string): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host]
  const controller = new AbortController()
  const late = delay(LOOKUP_TIMEOUT_MS, [], { signal: controller.signal }).catch(() => [])
  const found = lookup(host, { all: true }).catch(() => [])
  const addresses = await Promise.race([found, late])
  controller.abort()
  return addresses.slice(0, ADDRESSES_MAX).map((one) => one.address)
}

function lost(text: string): Opened {
  return { ok: false, failure: { kind: 'lost', phase: 'conn', text } }
}
