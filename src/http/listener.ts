/**
 * listener - the HTTP listener: routing of paths, on either engine
 *
 * There is one wrapper for every path. It copies all needed data (the request is invalid when the callback returns),
 * then passes the body, piece by piece, to an exchange, which decides and answers. Guarantees: no route bypasses it; a
 * taken port is an error; a body is bounded in bytes, in time, and together with all others.
 *
 * Spec refusal.order, request.head, request.body.max, request.body.slow
 */

import type { Route } from '../../schemas/routes.ts'
import { HeldBytes } from '../process/held-bytes.ts'
import { listenFault } from '../process/listening/listen-at.ts'
import type { Records } from '../process/records.ts'
import { RequestTallies } from '../process/request-tally.ts'
import type { RequestLog } from '../store/requests/request-log.ts'
import { makeClientAddress } from './client-address.ts'
import type { DashboardEdge } from './dashboard-edge.ts'
import type { DoorDeadEnd, DoorRouteOptions } from './door.ts'
import type {
  Engine,
  EngineListener,
  EnginePlace,
  EngineRoute,
  Incoming,
  Open,
  ResponseSocket,
} from './engine/engine.ts'
import { Exchange } from './exchange.ts'
import { readHeaders } from './headers.ts'
import type { KeyFinder } from './key.ts'
import { KnownKeys } from './known-keys.ts'
import type { Rate } from './rate.ts'
import type { EdgeLog, Handler, ListenerContext, Target } from './request.ts'
import {
  formatPattern,
  makeClosedDoor,
  makeDoorDeadEnd,
  makeLargeHeld,
  makeNoMethod,
  makeNowhere,
  makeNowhereSignedIn,
  makeTarget,
} from './targets.ts'

/** A route and its handler. */
export interface RouteHandler {
  readonly route: Route
  readonly handle: Handler
  /** Present on a route of a door. */
  readonly at?: DoorRouteOptions
}

/** How a listener is made. */
export interface ListenerOptions extends EnginePlace {
  readonly engine: Engine
  /** The setting of the port. */
  readonly setting: 'HTTP_PORT' | 'OPERATOR_PORT'
  /** All of one listener, public or operator. */
  readonly routes: readonly RouteHandler[]
  /** Paths of doors that lead nowhere. */
  readonly deadEnds?: readonly DoorDeadEnd[]
  /** Paths of doors that are switched off. */
  readonly closed?: readonly string[]
  /** Absent: no rate. */
  readonly rate?: Rate
  /** CIDRs whose X-Forwarded-For is trusted. */
  readonly trustedProxies: readonly string[]
  /** Absent if no dashboard is served. */
  readonly dashboard?: DashboardEdge
  readonly keys: KeyFinder
  readonly log: EdgeLog
  /** How long a body may take, in ms. */
  readonly bodyMsMax?: number
  /** Counts bodies; if absent, the listener has a count of its own. */
  readonly held?: HeldBytes
  /** Called for refused and failed requests; optional. */
  readonly refused?: Records['refused']
  /** Keeps a log of requests; optional. */
  readonly requestLog?: Pick<RequestLog, 'note'>
  /** Counts answers; if absent, the listener has a count of its own. */
  readonly requests?: RequestTallies
}

/** A listener that listens. */
export interface Listener {
  readonly port: number
  /** Stops listening, waits for the requests in hand (5 s at most), ends the connections. */
  close(): Promise<void>
}

/** A body of 10 MB passes at 1.6 Mbit/s; one that trickles does not hold its place. */
const BODY_MS_MAX = 55_000
/** A large body, of 64 MB, has as much time as that bandwidth gives it. */
const LARGE_BODY_TIMES = 6.4
/** An ask lives for four seconds; requests still being received are cut without an answer. */
const CLOSE_MS_MAX = 5000
const CLOSE_POLL_MS = 10
/**
 * A request may be in transit while none is in hand, and cutting it would reset a sent request. Counted in polls, each
 * of which reads all available data, because after a standstill the time alone may be over without a read.
 */
const CLOSE_QUIET_POLLS = 25
/** Below it nothing is a page. */
const DASHBOARD_PATH = '/dashboard/api'

const METHODS = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})

/** Starts a listener. Throws Error when the port is taken or the address is not this machine's. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const desk: ListenerContext = {
    keys: options.keys,
    knownKeys: new KnownKeys(),
    rate: options.rate ?? null,
    clientAddress: makeClientAddress(options.trustedProxies),
    dashboard: options.dashboard ?? null,
    log: options.log,
    requests: options.requestLog ?? null,
    refused: options.refused ?? (() => undefined),
    held: options.held ?? new HeldBytes(),
    inHand: 0,
    opened: 0,
    isClosing: false,
    feeds: new Set(),
    receiving: new Set(),
  }
  const listening = await listen(options, makeEngineRoutes(desk, options))
  const bodyMsMax = options.bodyMsMax ?? BODY_MS_MAX
  const sweep = setInterval(() => cutSlow(desk, bodyMsMax), Math.min(1000, bodyMsMax)).unref()
  return {
    port: listening.port,
    async close() {
      if (desk.isClosing) return
      desk.isClosing = true
      listening.stop()
      for (const end of [...desk.feeds]) end()
      await drain(desk)
      clearInterval(sweep)
      listening.end()
    },
  }
}

async function listen(
  { engine, host, port, fd = null, isShared = false, setting }: ListenerOptions,
  routes: readonly EngineRoute[],
): Promise<EngineListener> {
  if (fd !== null && !engine.takesSockets)
    throw new Error(`${setting}: uWebSockets.js cannot use the socket of LISTEN_FDS: set HTTP_ENGINE=node`)
  if (isShared && !engine.canShare)
    throw new Error('HTTP_PORT_SHARED: node:http shares a port on Linux with Node.js 22.12 or newer only')
  return engine.listen(routes, { host, port, fd, isShared }).catch((error: NodeJS.ErrnoException | null) => {
    throw listenFault({ setting, host, port }, error)
  })
}

async function drain(desk: ListenerContext): Promise<void> {
  const deadlineMs = performance.now() + CLOSE_MS_MAX
  let quiet = 0
  while (performance.now() < deadlineMs && quiet < CLOSE_QUIET_POLLS) {
    const opened = desk.opened
    await new Promise((resolve) => setTimeout(resolve, CLOSE_POLL_MS))
    quiet = desk.inHand > 0 || desk.opened !== opened ? 0 : quiet + 1
  }
}

// Spec request.body.slow
function cutSlow(desk: ListenerContext, bodyMsMax: number): void {
  const nowMs = performance.now()
  for (const exchange of desk.receiving) {
    const msMax = exchange.isLarge ? bodyMsMax * LARGE_BODY_TIMES : bodyMsMax
    if (exchange.startedAtMs < nowMs - msMax) exchange.cut()
  }
}

function makeEngineRoutes(
  desk: ListenerContext,
  {
    routes,
    requests = new RequestTallies(),
    deadEnds = [],
    closed = [],
  }: Pick<ListenerOptions, 'routes' | 'requests' | 'deadEnds' | 'closed'>,
): EngineRoute[] {
  const listener = routes[0]?.route.listener ?? 'public'
  const byPath = new Map<string, RouteHandler[]>()
  const large = makeLargeHeld(routes.map(({ route }) => route))
  const made: EngineRoute[] = []
  for (const one of routes) {
    const { route, handle, at } = one
    if (route.listener !== listener) throw new Error(`Route of the other listener: ${route.name}`)
    const target = makeTarget(route, handle, { tally: requests.of(route), large, ...(at && { at }) })
    const pattern = formatPattern(route.path)
    made.push({ method: METHODS[route.method], pattern, open: makeOpener(desk, target, false) })
    if (route.method === 'GET') made.push({ method: 'head', pattern, open: makeOpener(desk, target, true) })
    byPath.set(route.path, [...(byPath.get(route.path) ?? []), one])
  }
  for (const [path, siblings] of byPath) {
    const about = { tally: requests.of(null), door: siblings[0]?.at?.door ?? null }
    const target = makeNoMethod(
      listener,
      siblings.map(({ route }) => route),
      about,
    )
    made.push({ method: 'any', pattern: formatPattern(path), open: makeOpener(desk, target) })
  }
  for (const end of deadEnds)
    made.push({
      method: 'any',
      pattern: formatPattern(end.path),
      open: makeOpener(desk, makeDoorDeadEnd(end, requests.of(null))),
    })
  for (const path of closed)
    made.push({
      method: 'any',
      pattern: formatPattern(path),
      open: makeOpener(desk, makeClosedDoor(requests.of(null))),
    })
  if (desk.dashboard !== null) {
    const unknown = makeNowhereSignedIn(requests.of(null))
    made.push({ method: 'any', pattern: `${DASHBOARD_PATH}/*`, open: makeOpener(desk, unknown) })
  }
  const nowhere = makeNowhere(listener, requests.of(null))
  made.push({ method: 'any', pattern: '/*', open: makeOpener(desk, nowhere) })
  return made
}

/** `isHead` is whether the method is HEAD; if absent, it is read from the request. */
function makeOpener(desk: ListenerContext, target: Target, isHead?: boolean): Open {
  return (request, wire) => open(desk, target, { request, wire, isHead: isHead ?? request.getMethod() === 'head' })
}

function open(
  desk: ListenerContext,
  target: Target,
  { request, wire, isHead }: { request: Incoming; wire: ResponseSocket; isHead: boolean },
): Exchange {
  const { door } = target
  const headers = readHeaders(request, door?.headerNames)
  if (door !== null) headers.authorization = door.authorize(headers)
  return new Exchange(desk, wire, target, {
    headers,
    isHead,
    query: request.getQuery() ?? '',
    params: readParams(target.paramNames, request),
    // Only a rate asks who the client is, and the dashboard.
    peer: desk.rate === null && target.gate.session === null ? '' : wire.peer(),
  })
}

function readParams(names: readonly string[], request: Incoming): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_PARAMS
  const params: Record<string, string> = {}
  for (let index = 0; index < names.length; index += 1) {
    const name = names[index] as string
    params[name] = name === '*' ? request.getUrl() : (request.getParameter(index) ?? '')
  }
  return params
}
