/**
 * transmit - one attempt to hand one message to one recipient over the mail servers of a site.
 *
 * An open session is used if there is one; otherwise the servers are tried in their order, those that recently did not
 * answer last.
 *
 * Guarantees: always an outcome, never an exception; `bounced` only for a refusal by the recipient's side or a domain
 * that the DNS denies; a private address is never connected to; after the message was sent whole no other server is
 * tried, because the first may have taken it (RFC 5321 6.1).
 *
 * Spec delivery.mx, delivery.private, delivery.reuse, delivery.ipv6, delivery.dane
 */

import { hostAddresses } from '../../dns/host-addresses.ts'
import type { Resolver } from '../../dns/resolve.ts'
import { findTlsa } from '../../dns/tlsa.ts'
import { type AttemptRoute, unconnectedRoute } from '../../mail/attempt-route.ts'
import { makeUnasked } from '../../mail/classify.ts'
import { isPublicAddress } from '../../mail/ip-address.ts'
import type { Outcome } from '../../mail/outcome.ts'
import { makeDeferred, makeReturned } from '../../mail/outcome.ts'
import type { Contact } from '../../mail/site-pace.ts'
import { type AttemptDeps, attemptAddress, DANE_REFUSAL, type WaySource } from './attempt.ts'
import type { SendInput, Sent } from './converse.ts'
import type { DaneDemand } from './dane.ts'
import { asOfFamily, isElsewhere, judgeSent } from './judge.ts'
import type { Held, PoolAsk, SessionPool } from './session-pool.ts'
import { usableRecords } from './tlsa-match.ts'

/** Addresses connected to in one attempt, and servers that answer, with any reply. */
const ADDRESSES_MAX = 5
const SESSIONS_MAX = 2
/** How long an unreachable server is tried only after the others; longer if it did not answer at all. */
const REFUSED_AGE_MS = 2 * 60_000
const SILENT_AGE_MS = 15 * 60_000
const SHUNNED_MAX = 10_000

/** The way of a message to its site. */
export interface Way extends PoolAsk {
  /** Our own addresses are the right ones: we receive for the domain. */
  readonly isOwn: boolean
  readonly mtaSts: AttemptRoute['mtaSts']
  /** How long the lookup of the route took. */
  readonly dnsMs: number
  /** The address to send from; absent: the system chooses. */
  readonly source?: WaySource
}

export interface Transmission {
  readonly send: Pick<SendInput, 'recipient' | 'mailFrom' | 'message' | 'mayBegin' | 'mayFinish'>
  readonly way: Way
  /** The server wants the message: from now on it may take it. */
  onData(): void
}

export interface TransmitDeps extends AttemptDeps {
  readonly resolver: Resolver
  readonly pool: SessionPool
  /** Whether IPv6 addresses are connected to. */
  readonly usesIpv6: boolean
  /** Addresses that could not be connected to, until when they come last. */
  readonly shunned: Map<string, number>
  /** CIDRs that may be connected to although they are private. */
  readonly privateNetworksAllowed: readonly string[]
  /** This machine's own addresses: mail to them would come straight back. */
  readonly ownAddresses: readonly string[]
}

export interface Transmitted {
  readonly outcome: Outcome
  readonly contact: Contact
  /** The server at which it ended; null if none was tried. */
  readonly route: AttemptRoute | null
  /** With `returned`: when the site has a connection to spare again, milliseconds from now. */
  readonly afterMs: number | null
}

/** The result of one session, and whether it ends the attempt. */
interface Tried extends Omit<Transmitted, 'afterMs'> {
  readonly isFinal: boolean
}

/** Performs the attempt; the signal cuts it off (outcome `returned`, phase `abort`). */
export async function transmit(job: Transmission, deps: TransmitDeps, signal: AbortSignal): Promise<Transmitted> {
  const { way } = job
  for (let held = deps.pool.take(way); held !== null; held = deps.pool.take(way)) {
    const tried = await sendOver({ held, isReused: true, lookupMs: 0 }, job, { deps, signal })
    if (tried.isFinal) return { ...tried, afterMs: null }
  }
  const afterMs = await deps.pool.admit(way)
  if (afterMs > 0)
    return { outcome: makeReturned('site', 'too many new connections'), contact: 'none', route: null, afterMs }
  return { ...(await new Tour(job, deps, signal).run()), afterMs: null }
}

/** One message over one session; a session that was kept may turn out to be gone, which is no end. */
async function sendOver(
  { held, isReused, lookupMs }: { held: Held; isReused: boolean; lookupMs: number },
  { send, way, onData }: Transmission,
  { deps, signal }: { deps: TransmitDeps; signal: AbortSignal },
): Promise<Tried> {
  const { session, host, address } = held
  const facts = session.facts()
  const opening = isReused ? { connectMs: null, tlsMs: null } : {}
  const beganMs = deps.nowMs()
  const sent = await session.send({ ...send, onData }, signal)
  const times = { ...opening, dnsMs: way.dnsMs + lookupMs, transactionMs: deps.nowMs() - beganMs }
  held.messages += 1
  const judged = judgeSent(sent, `${host}[${address}]:${deps.port}`)
  const outcome = held.isDual && address.includes(':') ? asOfFamily(judged) : judged
  // After a refusal the server may still have the sender, so the session is reset or replaced. A server that replies
  // 421 is about to close.
  const isOther = outcome !== judged
  const mayGoOn = session.isOpen() && !isOther && (sent.ok || (outcome.code !== 421 && (await session.reset())))
  if (mayGoOn) deps.pool.keep(way, held)
  else session.destroy()
  const route = { ...facts, ...times, host, address, mtaSts: way.mtaSts, dane: held.checked.dane, isReused }
  return { outcome, contact: contactOf(sent), route, isFinal: !isOther && !isElsewhere(sent, outcome) }
}

function contactOf(sent: Sent): Contact {
  return !sent.ok && (sent.failure.kind === 'abort' || sent.failure.kind === 'fence') ? 'none' : 'answered'
}

/** An address of a server; with `isDual` the server has addresses of both families. */
type Place = Pick<Held, 'host' | 'address' | 'isDual'> & {
  /** The demand of its TLSA records; null if it has none, undefined if they were not looked up. */
  readonly dane: DaneDemand | null | undefined
}

/** The walk through the servers' addresses, with its results so far. The first place is taken already. */
class Tour {
  private readonly job: Transmission
  private readonly deps: TransmitDeps
  private readonly signal: AbortSignal
  private readonly connectUntilMs: number
  /** Addresses that come after all others. */
  private readonly shunned: Place[] = []
  private readonly seen = { addresses: 0, sessions: 0, private: 0, failures: 0 }
  private hasPlace = true
  /** This minute's new connections are used up. */
  private isSpent = false
  private last: Tried | null = null
  /** How long the lookups of addresses took. */
  private lookupMs = 0

  constructor(job: Transmission, deps: TransmitDeps, signal: AbortSignal) {
    this.job = job
    this.deps = deps
    this.signal = signal
    this.connectUntilMs = deps.nowMs() + deps.timeouts.connectAllMs
  }

  /** The outcome that ended the attempt, or the final one after every server was tried. */
  async run(): Promise<Omit<Transmitted, 'afterMs'>> {
    const isDone = (await this.visitAll()) || (await this.visitShunned())
    if (!isDone && this.hasPlace) this.deps.pool.placed(this.job.way, null)
    if (this.last !== null) return this.last
    const [host] = this.job.way.hosts
    const route = host === undefined ? null : this.unconnected(host)
    return { outcome: judgeNoAddress(this.seen), contact: 'none', route }
  }

  /** Visits the servers' addresses in their order. True when the attempt has ended. */
  private async visitAll(): Promise<boolean> {
    const { deps, seen } = this
    for (const host of this.job.way.hosts)
      for (const place of await this.findPlaces(host)) {
        if (!this.mayConnect(place.address)) seen.private += 1
        else if ((deps.shunned.get(this.shunKey(place.address)) ?? 0) > deps.nowMs()) this.shunned.push(place)
        else if (this.isOver()) break
        else if (await this.visit(place)) return true
      }
    return false
  }

  /** The addresses of a server; none if its TLSA records cannot be looked up. */
  private async findPlaces(host: string): Promise<readonly Place[]> {
    const { deps, seen } = this
    const beganMs = deps.nowMs()
    const { addresses, isDual, hasFailed } = await hostAddresses(deps.resolver, host, this.families())
    this.lookupMs += deps.nowMs() - beganMs
    if (hasFailed) seen.failures += 1
    const dane = addresses.length === 0 ? undefined : await this.findDane(host)
    return dane === 'failed' ? [] : addresses.map((address) => ({ host, address, isDual, dane }))
  }

  /** The demand of the host's TLSA records. If they cannot be looked up, the host is not used (RFC 7672 2.2). */
  private async findDane(host: string): Promise<DaneDemand | null | undefined | 'failed'> {
    const { deps, job } = this
    const names = job.way.secureNames
    if (names === null) return undefined
    const beganMs = deps.nowMs()
    const found = await findTlsa(deps.resolver, { host, port: deps.port, usesIpv6: this.families().usesIpv6 })
    this.lookupMs += deps.nowMs() - beganMs
    if (found.kind === 'none') return null
    if (found.kind === 'found') return { base: found.base, records: usableRecords(found.records), names }
    const route = { ...this.unconnected(host), dane: 'failed' } as const
    const outcome = makeDeferred('dns', 'DNSFailure', found.text)
    this.note({ outcome, contact: 'none', route, isFinal: false })
    return 'failed'
  }

  /** A source reaches the addresses of its own family alone. */
  private families() {
    const { source } = this.job.way
    if (source === undefined) return this.deps
    const usesIpv6 = source.address.includes(':')
    return { usesIpv4: !usesIpv6, usesIpv6 }
  }

  /** An address that refuses one source may accept another. */
  private shunKey(address: string): string {
    const { source } = this.job.way
    return source === undefined ? address : `${source.address} ${address}`
  }

  private async visitShunned(): Promise<boolean> {
    for (const place of this.shunned) {
      if (this.isOver()) break
      if (await this.visit(place)) return true
    }
    return false
  }

  private isOver(): boolean {
    const { addresses, sessions } = this.seen
    if (this.isSpent || addresses >= ADDRESSES_MAX || sessions >= SESSIONS_MAX) return true
    return this.deps.nowMs() >= this.connectUntilMs
  }

  /** True when the attempt ends with this address. */
  private async visit({ host, address, isDual, dane }: Place): Promise<boolean> {
    const { deps, job, seen, signal } = this
    const { way } = job
    if (!this.hasPlace && (await deps.pool.admit(way)) > 0) {
      this.isSpent = true
      return false
    }
    this.hasPlace = false
    seen.addresses += 1
    const opened = await attemptAddress(
      { host, address, isVerified: way.isVerified, dane, ...(way.source && { source: way.source }) },
      deps,
      signal,
    )
    deps.pool.placed(way, opened.ok ? opened.session : null)
    if (!opened.ok) {
      this.shun(address, opened.contact)
      if (opened.contact === 'answered') seen.sessions += 1
      const isRefused = opened.outcome.response?.startsWith(DANE_REFUSAL)
      const result = isRefused ? ({ dane: 'failed' } as const) : {}
      const route = { ...this.unconnected(host), ...result, address, connectMs: opened.connectMs }
      this.note({ outcome: opened.outcome, contact: opened.contact, route, isFinal: signal.aborted })
      return signal.aborted
    }
    deps.shunned.delete(this.shunKey(address))
    seen.sessions += 1
    const { session, checked } = opened
    const held = { session, checked, host, address, isDual, openedAtMs: deps.nowMs(), messages: 0 }
    const tried = await sendOver({ held, isReused: false, lookupMs: this.lookupMs }, job, { deps, signal })
    this.note(tried)
    return tried.isFinal
  }

  private unconnected(host: string): AttemptRoute {
    const { mtaSts, dnsMs } = this.job.way
    return unconnectedRoute(host, mtaSts, dnsMs + this.lookupMs)
  }

  /** A server's reply is more useful than "could not connect to the last one"; an answer proves that the site works. */
  private note(tried: Tried): void {
    const { last } = this
    const contact = last?.contact === 'answered' ? 'answered' : tried.contact
    const isBetter = last === null || tried.isFinal || last.outcome.code === null || tried.outcome.code !== null
    this.last = { ...(isBetter ? tried : last), contact }
  }

  private shun(address: string, contact: Contact): void {
    if (contact !== 'refused' && contact !== 'silent') return
    const { shunned, nowMs } = this.deps
    const key = this.shunKey(address)
    shunned.delete(key)
    if (shunned.size >= SHUNNED_MAX) shunned.delete(shunned.keys().next().value as string)
    shunned.set(key, nowMs() + (contact === 'silent' ? SILENT_AGE_MS : REFUSED_AGE_MS))
  }

  /** Our own addresses count as private: our own listeners must not receive our outbound mail. */
  private mayConnect(address: string): boolean {
    const { privateNetworksAllowed, ownAddresses } = this.deps
    if (!isPublicAddress(address, privateNetworksAllowed)) return false
    return this.job.way.isOwn || !ownAddresses.includes(address) || privateNetworksAllowed.length > 0
  }
}

function judgeNoAddress(seen: { private: number; failures: number }): Outcome {
  if (seen.failures > 0) return makeDeferred('dns', 'DNSFailure', '4.4.3 address lookup of the mail servers failed')
  if (seen.private > 0) return makeUnasked('private-only')
  // The name exists and may get its address yet.
  return makeDeferred('dns', 'RoutingErrors', '4.4.4 mail servers of the domain have no address')
}
