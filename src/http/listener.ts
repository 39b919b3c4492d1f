/**
 * http - the HTTP listener: the only file that knows uWebSockets.js
 *
 * One wrapper for every path: the abort handler first, then a copy of all that is needed (the request is gone when the
 * callback returns), then the body, piece by piece, into an exchange, which decides and answers.
 * Guarantees: no raw route; a taken port is an error; a body is bounded in bytes, in time, and with all others
 * together.
 *
 * Spec refusal.order, request.head, request.body.max, request.body.slow
 */

import './head-bytes.ts'

import {
  App,
  type HttpRequest,
  type HttpResponse,
  type TemplatedApp,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'

import type { Route } from '../../schemas/routes.ts'
import { HeldBytes } from '../process/held-bytes.ts'
import { listenFault } from '../process/listen-fault.ts'
import type { Records } from '../process/records.ts'
import { RequestTallies } from '../process/request-tally.ts'
import type { RequestLog } from '../store/request-log.ts'
import { makeClientAddress } from './client-address.ts'
import type { DashboardEdge } from './dashboard-edge.ts'
import { Exchange } from './exchange.ts'
import { readHeaders } from './headers.ts'
import type { KeyFinder } from './key.ts'
import { KnownKeys } from './known-keys.ts'
import type { Rate } from './rate.ts'
import type { Desk, EdgeLog, Handler, Target } from './request.ts'
import { makeLargeHeld, makeNoMethod, makeNowhere, makeNowhereSignedIn, makeTarget, patternOf } from './targets.ts'
import type { Wire } from './wire.ts'

/** A route and what answers it. */
export interface RouteHandler {
  readonly route: Route
  readonly handle: Handler
}

/** How a listener is made. */
export interface ListenerOptions {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The setting of the port. */
  readonly setting: 'HTTP_PORT' | 'OPERATOR_PORT'
  /** All of one listener, public or operator. */
  readonly routes: readonly RouteHandler[]
  /** Absent: no rate. */
  readonly rate?: Rate
  /** CIDRs whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
  /** Absent: no dashboard is served. */
  readonly dashboard?: DashboardEdge
  readonly keys: KeyFinder
  readonly log: EdgeLog
  /** How long a body may take, in ms. */
  readonly bodyMsMax?: number
  /** Where bodies are counted; absent: in a count of the listener's own. */
  readonly held?: HeldBytes
  /** Hears of requests that were refused, or failed; absent: nobody does. */
  readonly refused?: Records['refused']
  /** Keeps what was answered; absent: nothing is kept. */
  readonly requestLog?: Pick<RequestLog, 'note'>
  /** Where answers are counted; absent: in a count of the listener's own. */
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
/** An ask lives for four seconds; what is still being received is cut, and has no answer. */
const CLOSE_MS_MAX = 5000
const CLOSE_POLL_MS = 10
/**
 * A request may be on its way while none is in hand: cutting it would be a reset of something already sent. Counted in
 * polls, each of which reads what has come: after a standstill the time is over and nothing has been read.
 */
const CLOSE_QUIET_POLLS = 25
/** Makes a taken port an error: without it a second process shares the port. The types do not know it. */
const EXCLUSIVE_PORT = 1

type ExclusiveListen = (
  host: string,
  port: number,
  options: number,
  done: (socket: us_listen_socket | false) => void,
) => TemplatedApp

/** Below it nothing is a page. */
const DASHBOARD_PATH = '/dashboard/api'

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({})

/** Starts a listener. Throws Error when the port is taken or the address is not this machine's. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const desk: Desk = {
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
  const app = App()
  register(app, desk, options)
  const socket = listen(app, options)
  const bodyMsMax = options.bodyMsMax ?? BODY_MS_MAX
  const sweep = setInterval(() => cutSlow(desk, bodyMsMax), Math.min(1000, bodyMsMax)).unref()
  return {
    port: us_socket_local_port(socket as Parameters<typeof us_socket_local_port>[0]),
    async close() {
      if (desk.isClosing) return
      desk.isClosing = true
      us_listen_socket_close(socket)
      for (const end of [...desk.feeds]) end()
      await drain(desk)
      clearInterval(sweep)
      app.close()
    },
  }
}

function listen(app: TemplatedApp, { host, port, setting }: ListenerOptions): us_listen_socket {
  let listening: us_listen_socket | false = false
  const exclusiveListen = app.listen.bind(app) as unknown as ExclusiveListen
  exclusiveListen(host, port, EXCLUSIVE_PORT, (socket) => {
    listening = socket
  })
  if (listening === false) throw listenFault({ setting, host, port }, null)
  return listening
}

async function drain(desk: Desk): Promise<void> {
  const deadlineMs = performance.now() + CLOSE_MS_MAX
  let quiet = 0
  while (performance.now() < deadlineMs && quiet < CLOSE_QUIET_POLLS) {
    const opened = desk.opened
    await new Promise((resolve) => setTimeout(resolve, CLOSE_POLL_MS))
    quiet = desk.inHand > 0 || desk.opened !== opened ? 0 : quiet + 1
  }
}

// Spec request.body.slow
function cutSlow(desk: Desk, bodyMsMax: number): void {
  const nowMs = performance.now()
  for (const exchange of desk.receiving) {
    const msMax = exchange.isLarge ? bodyMsMax * LARGE_BODY_TIMES : bodyMsMax
    if (exchange.startedAtMs < nowMs - msMax) exchange.cut()
  }
}

function register(
  app: TemplatedApp,
  desk: Desk,
  { routes, requests = new RequestTallies() }: Pick<ListenerOptions, 'routes' | 'requests'>,
): void {
  const listener = routes[0]?.route.listener ?? 'public'
  const byPath = new Map<string, Route[]>()
  const large = makeLargeHeld(routes.map(({ route }) => route))
  for (const { route, handle } of routes) {
    if (route.listener !== listener) throw new Error(`Route of the other listener: ${route.name}`)
    const target = makeTarget(route, handle, { tally: requests.of(route), large })
    addMethod(app, route, (res, req) => open(desk, target, res, req))
    if (route.method === 'GET') app.head(patternOf(route.path), (res, req) => open(desk, target, res, req, true))
    byPath.set(route.path, [...(byPath.get(route.path) ?? []), route])
  }
  for (const [path, siblings] of byPath) {
    const target = makeNoMethod(listener, siblings, requests.of(null))
    app.any(patternOf(path), (res, req) => open(desk, target, res, req, isHead(req)))
  }
  if (desk.dashboard !== null) {
    const unknown = makeNowhereSignedIn(requests.of(null))
    app.any(`${DASHBOARD_PATH}/*`, (res, req) => open(desk, unknown, res, req, isHead(req)))
  }
  const nowhere = makeNowhere(listener, requests.of(null))
  app.any('/*', (res, req) => open(desk, nowhere, res, req, isHead(req)))
}

function isHead(req: HttpRequest): boolean {
  return req.getMethod() === 'head'
}

function addMethod(app: TemplatedApp, route: Route, handle: (res: HttpResponse, req: HttpRequest) => void): void {
  const pattern = patternOf(route.path)
  if (route.method === 'GET') app.get(pattern, handle)
  else if (route.method === 'POST') app.post(pattern, handle)
  else if (route.method === 'PATCH') app.patch(pattern, handle)
  else app.del(pattern, handle)
}

function open(desk: Desk, target: Target, res: HttpResponse, req: HttpRequest, hasNoBody = false): void {
  let exchange: Exchange | null = null
  res.onAborted(() => exchange?.abort())
  exchange = new Exchange(desk, res as unknown as Wire, target, {
    headers: readHeaders(req),
    isHead: hasNoBody,
    query: req.getQuery() ?? '',
    params: readParams(target.paramNames, req),
    // Only a rate asks who the client is, and the dashboard.
    peer:
      desk.rate === null && target.gate.session === null
        ? ''
        : Buffer.from(res.getRemoteAddressAsText()).toString('latin1'),
  })
  const started = exchange
  res.onData((chunk, isLast) => started.receive(chunk, isLast))
  started.start()
}

function readParams(names: readonly string[], req: HttpRequest): Readonly<Record<string, string>> {
  if (names.length === 0) return NO_PARAMS
  const read = (name: string, index: number) => (name === '*' ? req.getUrl() : (req.getParameter(index) ?? ''))
  return Object.fromEntries(names.map((name, index) => [name, read(name, index)]))
}
