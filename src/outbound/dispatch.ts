/**
 * dispatch - one attempt from an address to its outcome: the route, a source, a place at the site, the message, a mail
 * thread
 *
 * The message is asked for only when its site has a place: so that waiting attempts cost little.
 *
 * Guarantees: an attempt that waits for its site too long is returned. One that runs too long is cut and counts as
 * failed, but never after its final dot, which would make a duplicate: the server then has its ten minutes. All these
 * times are shorter than the claim.
 *
 * Spec delivery.attempt, delivery.bytes
 */

import type { LaneType } from '../../cluster/behaviour.ts'
import type { Pass } from '../../cluster/fence.ts'
import { NotPerformed } from '../../cluster/items/lane-runner.ts'
import { DEFAULT_EGRESS } from '../../schemas/operator/egress.ts'
import { type MxRoute, relayRoute } from '../dns/mx-route.ts'
import { parseEnvelope } from '../mail/address.ts'
import { makeUnasked } from '../mail/classify.ts'
import { makeDeferred, makeReturned, type Outcome } from '../mail/outcome.ts'
import { maskAddress } from '../mail/reply.ts'
import { sourceLimits } from '../mail/site.ts'
import { placeField } from '../state/egress.ts'
import { type BudgetOrder, makeByteBudget } from './byte-budget.ts'
import { attemptByPool, type UnitHolder } from './egress/failover.ts'
import type { EgressDoor } from './egress/open.ts'
import { ceilingsOf, choosePool, type MailOf, needsHosts, type Source } from './egress/plan.ts'
import { RELAY_LIMITS } from './relay-limits.ts'
import type { Given, Sites } from './sites.ts'
import {
  bodyChars,
  type MailOutcome,
  makeUnperformed,
  type RelayWay,
  type RunMail,
  TOO_LATE,
  type TransmitJob,
} from './thread/thread-job.ts'
import type { Way } from './thread/transmit.ts'

/** Attempts whose route is being looked up. */
const ROUTING_MAX = 1024
/** A large message for whose bytes there is no room comes back after this. */
const NO_ROOM_MS = 1000
/**
 * Waiting, and the way to the final dot; with the ten minutes after it less than the claim of any lane that
 * dispatches.
 */
const WAIT_MS = 4 * 60_000
const TO_DOT_MS = 10 * 60_000

const RELAY_ROUTE = relayRoute(RELAY_LIMITS)
/** Until the sources are known, or a ceiling answers again. */
const AGAIN_MS = 1000

export interface DispatchDeps {
  readonly sites: Sites
  /** Finds the route for a domain to its own servers. */
  readonly findRoute: (domain: string) => Promise<MxRoute | Outcome>
  readonly egress: Pick<EgressDoor, 'plan' | 'failover' | 'isHere'>
  readonly run: RunMail
  /** Calls `run` after `ms` milliseconds. Returns a function that cancels the call. */
  readonly after?: (ms: number, run: () => void) => () => void
}

export interface DispatchOrder {
  readonly address: string
  /** The name of its site: the domain, or `relay`. */
  readonly destination: string
  /** Bytes of the message's attachments. */
  readonly bytes: number
  readonly signal: AbortSignal
  readonly pass: Pass
  /** The part of the message that rules see; absent: mail of the service itself. */
  readonly mail?: OrderedMail
}

export interface OrderedMail extends Omit<MailOf, 'domain'> {
  readonly acceptedAtMs: number
}

/** The message to transmit; the dispatch adds the recipient and the route. */
export type Dispatched = Pick<TransmitJob, 'message'> & {
  readonly transmit: Omit<TransmitJob['transmit'], 'recipient' | 'way' | 'relay' | 'sharers' | 'pass'>
}

/** Reads the message once there is a place for it, or returns the outcome if there is no message to send. */
export type Prepare = (signal: AbortSignal) => Promise<Dispatched | MailOutcome>

export interface Dispatch {
  send(order: DispatchOrder, prepare: Prepare): Promise<MailOutcome>
  /** Attempts to a destination that may begin now. */
  room(destination: string): ReturnType<LaneType['room']>
}

/** Lookups of routes that are under way, by destination. */
function makeRouting(findRoute: DispatchDeps['findRoute']) {
  const routing = new Map<string, number>()
  let routingAll = 0
  return {
    room: (destination: string, places: number) =>
      Math.min(ROUTING_MAX - routingAll, places - (routing.get(destination) ?? 0)),
    async routeOf(destination: string, domain: string): Promise<MxRoute | Outcome> {
      routingAll += 1
      routing.set(destination, (routing.get(destination) ?? 0) + 1)
      const route = await findRoute(domain)
      routingAll -= 1
      const left = (routing.get(destination) ?? 1) - 1
      if (left === 0) routing.delete(destination)
      else routing.set(destination, left)
      return route
    },
  }
}

/** Makes the attempt with one source: a place at its site, the message, a mail thread. */
function makeLegs({ sites, run }: Pick<DispatchDeps, 'sites' | 'run'>) {
  const budget = makeByteBudget()

  /** Performs an attempt if its bytes fit the budget; otherwise the attempt returns to its lane for a moment. */
  async function within(order: BudgetOrder, perform: () => Promise<MailOutcome>): Promise<MailOutcome> {
    const giveBack = budget.take(order)
    if (giveBack === null)
      return { ...makeReturned('compose', 'no room for its bytes'), sizeBytes: null, afterMs: NO_ROOM_MS }
    try {
      return await perform()
    } finally {
      giveBack()
    }
  }

  return (source: Source, { order, recipient, prepare, route, dnsMs, unit }: Leg): TimedRun =>
    (signal, underWay) =>
      sites.attempt(order.destination, {
        route,
        signal,
        run: async (given) => {
          const none = await unit.renew()
          if (none !== null) return ceilingReached(none.why)
          const who = { site: route.site, isRelay: route.isRelay, isProven: given.isProven }
          const perform = async () => {
            const ready = await orCut(prepare(signal), signal)
            if ('result' in ready) return ready
            const relay = relayOf(source)
            const ways = { way: wayOf(route, given, { dnsMs, source }), ...(relay && { relay }) }
            const transmit = { ...ready.transmit, recipient, ...ways, sharers: given.sharers, pass: order.pass }
            const job = { message: ready.message, transmit }
            // How long the texts are is known only now.
            return within({ ...who, bytes: bodyChars(ready.message) }, () => run(job, signal))
          }
          return underWay(() => within({ ...who, bytes: order.bytes }, perform))
        },
      })
}

/** Makes the dispatch of a process. */
export function makeDispatch({ sites, findRoute, egress, run, after = afterMs }: DispatchDeps): Dispatch {
  const { room, routeOf } = makeRouting(findRoute)
  const attemptWith = makeLegs({ sites, run })
  return {
    room: (destination) => (egress.plan() === null ? 0 : room(destination, sites.room(destination))),
    async send(order, prepare) {
      const envelope = parseEnvelope(order.address)
      if (envelope === null) return { ...makeUnasked('bad-address'), sizeBytes: null }
      const plan = egress.plan()
      if (plan === null)
        return { ...makeReturned('compose', 'sources are not known yet'), sizeBytes: null, afterMs: AGAIN_MS }
      const { domain } = envelope
      const mail: MailOf = { ...(order.mail ?? SERVICE_MAIL), domain }
      const [found, dnsMs] = await timed(async () =>
        needsHosts(plan, mail) ? routeOf(order.destination, domain) : null,
      )
      // A relay may know a domain that the DNS does not.
      const isForRelays = choosePool(plan, mail, null).pool.members.every(({ source }) => source.isRelay)
      const isFault = found !== null && 'result' in found
      if (isFault && !(found.result === 'bounced' && isForRelays)) return { ...found, sizeBytes: null }
      const route = isFault ? null : found
      const { pool } = choosePool(plan, mail, route?.hosts ?? null)
      const recipient = `${envelope.local}@${domain}`
      const attempt: TimedRun = (signal, underWay) =>
        attemptByPool(egress.failover, {
          pool,
          hasDocument: plan.hasDocument,
          acceptedAtMs: order.mail?.acceptedAtMs ?? egress.failover.nowMs(),
          mayGoOn: () => !signal.aborted,
          siteOf: (source) => (source.isRelay || route === null ? RELAY_ROUTE.site : route.site),
          ceilingsOf: (source) => ceilingsOf(source, routeBy(source, route).limits, egress.failover.nowMs()),
          isHere: egress.isHere,
          mask: (text) => maskAddress(text, recipient),
          send: (source, unit) => {
            const leg = { order, recipient, prepare, route: routeBy(source, route), dnsMs, unit }
            return attemptWith(source, leg)(signal, underWay)
          },
        })
      return withinTime(order.signal, attempt, after)
    },
  }
}

/** Mail of the service itself, such as notices: no rule names its account. */
const SERVICE_MAIL = { accountId: null, serverId: null, streamId: null, streamKind: null } as const

/** The attempt with one source. */
interface Leg {
  readonly order: DispatchOrder
  readonly recipient: string
  readonly prepare: Prepare
  readonly route: MxRoute
  readonly dnsMs: number
  readonly unit: UnitHolder
}

/** The route by a source, which has limits of its own at the site. */
function routeBy({ name, isRelay, relay, limits }: Source, route: MxRoute | null): MxRoute {
  const found = isRelay || route === null ? RELAY_ROUTE : route
  if (name === DEFAULT_EGRESS) return found
  const site = placeField(name, found.site)
  const own = sourceLimits(found.limits, found.hosts, limits)
  // A relay takes as many connections as its source allows, which its own queue divides.
  return { ...found, site, limits: relay === null ? own : { ...own, connections: found.limits.connections } }
}

function relayOf({ name, relay, ehlo }: Source): RelayWay | null {
  return relay === null ? null : { source: name, ...relay, ehlo }
}

function ceilingReached(why: string): MailOutcome {
  return { ...makeReturned('compose', why), sizeBytes: null, afterMs: AGAIN_MS, isCeiling: true }
}

async function timed<Value>(run: () => Promise<Value>): Promise<[value: Value, ms: number]> {
  const beganMs = performance.now()
  return [await run(), performance.now() - beganMs]
}

/**
 * An attempt interrupted while the store was asked, or without its answer, returns to its lane like any interrupted
 * attempt.
 */
async function orCut(preparing: ReturnType<Prepare>, signal: AbortSignal): ReturnType<Prepare> {
  try {
    return await preparing
  } catch (error) {
    if (signal.aborted || error instanceof NotPerformed) return makeUnperformed('attempt was cut off')
    throw error
  }
}

function wayOf(
  { isRelay, site, hosts, sts, isOwn, secureNames }: MxRoute,
  { limits, connections }: Given,
  { dnsMs, source: { address, ehlo } }: { readonly dnsMs: number; readonly source: Source },
): Way | null {
  if (isRelay) return null
  const policies = { isVerified: sts === 'enforce', secureNames, mtaSts: sts }
  const way = { site, hosts, limits, ...policies, isOwn, connections, dnsMs }
  return address === null ? way : { ...way, source: { address, ehlo } }
}

/** An attempt; its work at the site runs within `underWay`. */
type TimedRun = (
  signal: AbortSignal,
  underWay: (perform: () => Promise<MailOutcome>) => Promise<MailOutcome>,
) => Promise<MailOutcome>

/** Runs an attempt under a signal that also cuts it off when its time is over; the timers go with the attempt. */
async function withinTime(
  parent: AbortSignal,
  run: TimedRun,
  after: NonNullable<DispatchDeps['after']>,
): Promise<MailOutcome> {
  const cut = new AbortController()
  let isUnderWay = false
  let isWaitOver = false
  let isLate = false
  const abort = () => cut.abort(parent.reason)
  const endWait = () => {
    isWaitOver = true
    if (!isUnderWay) cut.abort()
  }
  const stopWait = after(WAIT_MS, endWait)
  parent.addEventListener('abort', abort, { once: true })
  if (parent.aborted) abort()
  const underWay = async (perform: () => Promise<MailOutcome>) => {
    isUnderWay = true
    const stop = after(TO_DOT_MS, () => {
      isLate = true
      cut.abort(TOO_LATE)
    })
    try {
      return await perform()
    } finally {
      stop()
      isUnderWay = false
      if (isWaitOver) cut.abort()
    }
  }
  try {
    const outcome = await run(cut.signal, underWay)
    // It was cut by our own timer and counts as failed; otherwise it would repeat for ever.
    const isOver = outcome.phase === 'abort' && isLate && !parent.aborted
    return isOver
      ? { ...outcome, ...makeDeferred('abort', 'TransientFailure', '4.4.2 attempt took too long') }
      : outcome
  } finally {
    stopWait()
    parent.removeEventListener('abort', abort)
  }
}

function afterMs(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms).unref()
  return () => clearTimeout(timer)
}
