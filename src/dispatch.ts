/**
 * dispatch - one attempt from an address to its outcome: the route, a place at the site, the message, a mail thread
 *
 * The message is asked for only when its site has a place: what waits costs little.
 *
 * Guarantees: an attempt is cut before its claim ends, and one that is cut for its own length is a failed one.
 *
 * Spec delivery.attempt, delivery.bytes
 */

import type { LaneType } from '../cluster/behaviour.ts'
import { type BudgetOrder, makeByteBudget } from './byte-budget.ts'
import { type Route, relayRoute } from './effects/route.ts'
import { bodyChars, type MailOutcome, type TransmitJob } from './effects/thread-job.ts'
import type { Way } from './effects/transmit.ts'
import type { RunMail } from './lanes.ts'
import { makeUnasked } from './mail/classify.ts'
import { parseEnvelope } from './mail/envelope.ts'
import { makeDeferred, makeReturned, type Outcome } from './mail/outcome.ts'
import type { Sites } from './sites.ts'

/** Attempts whose route is being looked up. */
const ROUTING_MAX = 1024
/** Attempts that are with the relay or wait there for one of its connections. */
const RELAY_ATTEMPTS_MAX = 256
/** A large message for whose bytes there is no room comes back after this. */
const NO_ROOM_MS = 1000
/** Shorter than the claim of any lane that dispatches. */
const CUT_MS = 14 * 60_000

const RELAY_ROUTE = relayRoute(RELAY_ATTEMPTS_MAX)

export interface DispatchDeps {
  readonly sites: Sites
  /** The route for a domain; null where everything goes through the relay. */
  readonly findRoute: ((domain: string) => Promise<Route | Outcome>) | null
  readonly run: RunMail
}

export interface DispatchOrder {
  readonly address: string
  /** Under which name its site is remembered: the domain, or `relay`. */
  readonly destination: string
  /** Bytes of the message's attachments. */
  readonly bytes: number
  readonly signal: AbortSignal
}

/** What is transmitted; the dispatch adds the recipient and the way. */
export type Dispatched = Pick<TransmitJob, 'message'> & {
  readonly transmit: Omit<TransmitJob['transmit'], 'recipient' | 'way'>
}

/** Reads the message once there is a place for it, or says why there is none to send. */
export type Prepare = (signal: AbortSignal) => Promise<Dispatched | MailOutcome>

export interface Dispatch {
  send(order: DispatchOrder, prepare: Prepare): Promise<MailOutcome>
  /** Attempts to a destination that may begin now. */
  room(destination: string): ReturnType<LaneType['room']>
}

/** Makes the dispatch of a process. */
export function makeDispatch({ sites, findRoute, run }: DispatchDeps): Dispatch {
  const routing = new Map<string, number>()
  let routingAll = 0
  const budget = makeByteBudget()

  async function routeOf(destination: string, domain: string): Promise<Route | Outcome> {
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

  /** Performs while the bytes are within the budget; an attempt that finds no room goes back to its lane for a moment. */
  async function within(
    bytes: number,
    who: Omit<BudgetOrder, 'bytes'>,
    perform: () => Promise<MailOutcome>,
  ): Promise<MailOutcome> {
    const giveBack = budget.take({ bytes, ...who })
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
    async send({ address, destination, bytes, signal: parent }, prepare) {
      const envelope = parseEnvelope(address)
      if (envelope === null) return { ...makeUnasked('bad-address'), sizeBytes: null }
      const route = await routeOf(destination, envelope.domain)
      if ('result' in route) return { ...route, sizeBytes: null }
      const recipient = `${envelope.local}@${envelope.domain}`
      const attempt = (signal: AbortSignal) =>
        sites.attempt(destination, {
          route,
          signal,
          run: async (connections, isProven) => {
            const who = { site: route.site, isRelay: route.isRelay, isProven }
            return within(bytes, who, async () => {
              const ready = await prepare(signal)
              if ('result' in ready) return ready
              const transmit = { ...ready.transmit, recipient, way: wayOf(route, connections) }
              const job = { message: ready.message, transmit }
              // How long the texts are is known only now.
              return within(bodyChars(ready.message), who, () => run(job, signal))
            })
          },
        })
      return withinCut(parent, attempt)
    },
  }
}

function wayOf({ isRelay, site, hosts, limits, sts, isOwn }: Route, connections: number): Way | null {
  return isRelay ? null : { site, hosts, limits, isVerified: sts === 'enforce', isOwn, connections }
}

/** Runs an attempt under a signal that also cuts it off before its claim ends; the timer goes with the attempt. */
async function withinCut(
  parent: AbortSignal,
  run: (signal: AbortSignal) => Promise<MailOutcome>,
): Promise<MailOutcome> {
  const cut = new AbortController()
  const abort = () => cut.abort()
  const timer = setTimeout(abort, CUT_MS).unref()
  parent.addEventListener('abort', abort, { once: true })
  if (parent.aborted) abort()
  try {
    const outcome = await run(cut.signal)
    // Who is cut by nobody else has had his time: that is a failed attempt, or it would be made for ever.
    const isOver = outcome.phase === 'abort' && cut.signal.aborted && !parent.aborted
    return isOver
      ? { ...outcome, ...makeDeferred('abort', 'TransientFailure', '4.4.2 attempt took too long') }
      : outcome
  } finally {
    clearTimeout(timer)
    parent.removeEventListener('abort', abort)
  }
}
