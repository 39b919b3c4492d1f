/**
 * dispatch - one attempt from an address to its outcome: the route, a place at the site, the message, a mail thread
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
import { type MxRoute, relayRoute } from '../dns/mx-route.ts'
import { parseEnvelope } from '../mail/address.ts'
import { makeUnasked } from '../mail/classify.ts'
import { makeDeferred, makeReturned, type Outcome } from '../mail/outcome.ts'
import { type BudgetOrder, makeByteBudget } from './byte-budget.ts'
import type { Given, Sites } from './sites.ts'
import {
  bodyChars,
  type MailOutcome,
  makeUnperformed,
  type RunMail,
  TOO_LATE,
  type TransmitJob,
} from './thread/thread-job.ts'
import type { Way } from './thread/transmit.ts'

/** Attempts whose route is being looked up. */
const ROUTING_MAX = 1024
/** Attempts that are with the relay or wait there for one of its connections. */
const RELAY_ATTEMPTS_MAX = 256
/** A large message for whose bytes there is no room comes back after this. */
const NO_ROOM_MS = 1000
/**
 * Waiting, and the way to the final dot; with the ten minutes after it less than the claim of any lane that
 * dispatches.
 */
const WAIT_MS = 4 * 60_000
const TO_DOT_MS = 10 * 60_000

const RELAY_ROUTE = relayRoute(RELAY_ATTEMPTS_MAX)

export interface DispatchDeps {
  readonly sites: Sites
  /** Finds the route for a domain; null if all mail goes through the relay. */
  readonly findRoute: ((domain: string) => Promise<MxRoute | Outcome>) | null
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
}

/** The message to transmit; the dispatch adds the recipient and the route. */
export type Dispatched = Pick<TransmitJob, 'message'> & {
  readonly transmit: Omit<TransmitJob['transmit'], 'recipient' | 'way' | 'sharers' | 'pass'>
}

/** Reads the message once there is a place for it, or returns the outcome if there is no message to send. */
export type Prepare = (signal: AbortSignal) => Promise<Dispatched | MailOutcome>

export interface Dispatch {
  send(order: DispatchOrder, prepare: Prepare): Promise<MailOutcome>
  /** Attempts to a destination that may begin now. */
  room(destination: string): ReturnType<LaneType['room']>
}

/** Makes the dispatch of a process. */
export function makeDispatch({ sites, findRoute, run, after = afterMs }: DispatchDeps): Dispatch {
  const routing = new Map<string, number>()
  let routingAll = 0
  const budget = makeByteBudget()

  async function routeOf(destination: string, domain: string): Promise<MxRoute | Outcome> {
    if (findRoute === null) return RELAY_ROUTE
    routingAll += 1
    routing.set(destination, (routing.get(destination) ?? 0) + 1)
    const route = await findRoute(domain)
    routingAll -= 1
    const left = (routing.get(destination) ?? 1) - 1
    if (left === 0) routing.delete(destination)
    else routing.set(destination, left)
    return route
  }

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

  return {
    room: (destination) =>
      Math.min(ROUTING_MAX - routingAll, sites.room(destination) - (routing.get(destination) ?? 0)),
    async send({ address, destination, bytes, signal: parent, pass }, prepare) {
      const envelope = parseEnvelope(address)
      if (envelope === null) return { ...makeUnasked('bad-address'), sizeBytes: null }
      const [route, dnsMs] = await timed(() => routeOf(destination, envelope.domain))
      if ('result' in route) return { ...route, sizeBytes: null }
      const recipient = `${envelope.local}@${envelope.domain}`
      const attempt: TimedRun = (signal, underWay) =>
        sites.attempt(destination, {
          route,
          signal,
          run: async (given) => {
            const who = { site: route.site, isRelay: route.isRelay, isProven: given.isProven }
            const perform = async () => {
              const ready = await orCut(prepare(signal), signal)
              if ('result' in ready) return ready
              const way = wayOf(route, given, dnsMs)
              const transmit = { ...ready.transmit, recipient, way, sharers: given.sharers, pass }
              const job = { message: ready.message, transmit }
              // How long the texts are is known only now.
              return within({ ...who, bytes: bodyChars(ready.message) }, () => run(job, signal))
            }
            return underWay(() => within({ ...who, bytes }, perform))
          },
        })
      return withinTime(parent, attempt, after)
    },
  }
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

function wayOf({ isRelay, site, hosts, sts, isOwn, secureNames }: MxRoute, given: Given, dnsMs: number): Way | null {
  if (isRelay) return null
  const { limits, connections } = given
  return { site, hosts, limits, isVerified: sts === 'enforce', secureNames, isOwn, connections, mtaSts: sts, dnsMs }
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
