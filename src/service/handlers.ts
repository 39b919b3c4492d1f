/**
 * handlers - the listeners of a process for its roles, and the handlers of their routes
 */

import type { Role } from '../../schemas/config.ts'
import { DOCS_PAGES, OPERATOR_PAGE_ROUTES, PAGE_ROUTES, type PageName } from '../../schemas/page-routes.ts'
import { ROUTES, type Route, type RouteName } from '../../schemas/routes.ts'
import type { InlineDeps } from '../dashboard/content-routes.ts'
import { dashboardHandlers } from '../dashboard/handlers.ts'
import type { LiveDeps } from '../dashboard/live.ts'
import { openDoors } from '../doors/doors.ts'
import { type DashboardEdge, makeDashboardEdge } from '../http/dashboard-edge.ts'
import type { Engine } from '../http/engine/engine.ts'
import type { KeyFinder } from '../http/key.ts'
import { type Listener, startListener } from '../http/listener.ts'
import { makeRate } from '../http/rate.ts'
import type { Handler, Handlers } from '../http/request.ts'
import { type CertificateWatch, watchCertificate } from '../process/certificate-watch.ts'
import { type Config, takeInheritedCount } from '../process/config.ts'
import { HeldBytes } from '../process/held-bytes.ts'
import { type InheritedSockets, readInheritedSockets } from '../process/listening/inherited-sockets.ts'
import type { Log } from '../process/log.ts'
import type { Records } from '../process/records.ts'
import { type MxDeps, startMx } from '../reception/open.ts'
import { startSubmission } from '../reception/submission/open.ts'
import { type PublicDeps, publicHandlers } from '../routes/handlers.ts'
import { type OperatorListenerDeps, operatorHandlers } from '../routes/operator/handlers.ts'
import { operatorPageHandlers, type PageDeps, pageHandlers } from '../routes/page-handlers.ts'
import { DESK_SHARD } from '../state/dashboard/desk.ts'
import type { Nodes } from '../store/nodes.ts'
import { openRequestLog } from '../store/requests/request-log.ts'
import { notingUse } from './operator-use.ts'

/** Dependencies of the handlers of all routes, and of mail reception. */
export type RouteDeps = PublicDeps & PageDeps & OperatorListenerDeps & LiveDeps & InlineDeps & MxDeps['handlers']

export interface ListenerDeps {
  readonly engine: Engine
  readonly handlers: RouteDeps
  readonly keys: KeyFinder
  readonly log: Log
  readonly records: Records
  /** Where the log of requests is written. */
  readonly nodes: Nodes
}

/** Routes of the operator listener that every process answers, with any roles. */
const OWN_ROUTES: readonly RouteName[] = ['readHealth', 'readReadiness', 'readMetrics']

/** Starts the listeners of a role; null if its settings open none. */
type Starter = (
  config: Config,
  deps: ListenerDeps & {
    readonly held: HeldBytes
    readonly openCertificate: () => CertificateWatch
    readonly sockets: InheritedSockets
  },
) => Promise<Pick<Listener, 'close'> | null>

/** The listener of each role. */
const STARTERS: Readonly<Partial<Record<Role, Starter>>> = {
  http: startPublic,
  mx: startMx,
  submission: startSubmission,
}

/**
 * Starts the listeners of the roles that this process runs and, unless its port is 0, the operator's. With the role
 * `http` that has all its routes, otherwise only those about this process. Throws Error if a port is taken.
 */
export async function startListeners(config: Config, deps: ListenerDeps): Promise<{ close(): Promise<void> }> {
  const held = new HeldBytes()
  const sockets = readInheritedSockets(takeInheritedCount())
  const open: Pick<Listener, 'close'>[] = []
  const certificates: CertificateWatch[] = []
  // One for both SMTP listeners, and none in a process without them.
  const openCertificate = (): CertificateWatch => {
    const [known] = certificates
    if (known !== undefined) return known
    const certificate = openSmtpCertificate(config, deps)
    certificates.push(certificate)
    return certificate
  }
  const close = async () => {
    for (const certificate of certificates) certificate.close()
    await Promise.all(open.map((listener) => listener.close()))
  }
  try {
    for (const role of config.roles) {
      const start = STARTERS[role]
      const listener = start === undefined ? null : await start(config, { ...deps, held, openCertificate, sockets })
      if (listener !== null) open.push(listener)
    }
    if (config.operatorPort !== 0) open.push(await startOperator(config, deps, sockets))
    requireUsed(sockets)
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

/** A socket that no one accepts from would let its clients wait for good. */
function requireUsed(sockets: InheritedSockets): void {
  const [port] = sockets.left()
  if (port === undefined) return
  throw new Error(`LISTEN_FDS: no listener of this process has port ${port}: its ROLES and *_PORT settings decide that`)
}

function openSmtpCertificate(config: Config, { handlers, log }: ListenerDeps): CertificateWatch {
  const { tlsCert, tlsKey, dataDir, smtpHostname: name } = config
  const certificate = watchCertificate({ tlsCert, tlsKey, dataDir, name }, { log })
  handlers.metrics.watchCertificate(() => certificate.expiresMs)
  return certificate
}

async function startPublic(config: Config, deps: Parameters<Starter>[1]): Promise<Pick<Listener, 'close'>> {
  const { httpHost: host, httpPort: port, trustedProxies, edgeRate, edgeBurst } = config
  const bucket = { perSecond: edgeRate, burst: edgeBurst, nowMs: () => performance.now() }
  // Without a rate nothing asks who the client is.
  const rate = edgeRate > 0 ? { rate: makeRate(bucket) } : {}
  const edge = makeDashboardEdge(config.baseUrl, port, deps.handlers.nowMs)
  const { baseUrl, nowMs } = deps.handlers
  const doors = openDoors(config.compatibleApis, { handlers: publicHandlers(deps.handlers), baseUrl, nowMs })
  const routes = [
    ...makeRoutes('public', deps, ROUTE_NAMES),
    ...doors.routes,
    ...makePages(deps, { baseUrl: config.baseUrl, hasDocs: config.docs === 'on' }),
    ...makeDashboard(deps, edge),
  ]
  const { engine, keys, held, sockets } = deps
  const of = {
    engine,
    host,
    port,
    fd: sockets.take(port),
    isShared: config.httpPortShared,
    setting: 'HTTP_PORT',
    routes,
    deadEnds: doors.deadEnds,
    closed: doors.closed,
    ...rate,
    trustedProxies,
    dashboard: edge,
    keys,
    held,
  } as const
  const requestLog = openRequestLog(deps.nodes, (fault) => deps.log.error({ fault: String(fault) }, REQUESTS_LOST))
  const listener = await startListener({ ...of, requestLog, ...told(deps) }).catch(async (error) => {
    await requestLog.close()
    throw error
  })
  return {
    async close() {
      await listener.close()
      await requestLog.close()
    },
  }
}

const REQUESTS_LOST = 'Part of the request log is lost'

function startOperator(config: Config, deps: ListenerDeps, sockets: InheritedSockets): Promise<Listener> {
  const { ask, newCmdId, nowMs } = deps.handlers
  const note = (tokenId: string) => ask(DESK_SHARD, { name: 'note-operator-use', cmdId: newCmdId(), body: { tokenId } })
  const { operatorHost: host, operatorPort: port, trustedProxies } = config
  const hasAll = config.roles.includes('http')
  const routes = [
    ...makeRoutes('operator', deps, hasAll ? ROUTE_NAMES : OWN_ROUTES),
    ...(hasAll ? operatorPages() : []),
  ]
  const { engine } = deps
  const keys = notingUse(deps.keys, { note, nowMs })
  const place = { host, port, fd: sockets.take(port) }
  return startListener({ engine, ...place, setting: 'OPERATOR_PORT', routes, trustedProxies, keys, ...told(deps) })
}

/** Log and metrics of the answers of a listener. */
function told({ log, records, handlers }: ListenerDeps) {
  return { log, refused: records.refused, requests: handlers.metrics.requests }
}

const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[]

function makeRoutes(listener: Route['listener'], deps: ListenerDeps, names: readonly RouteName[]) {
  const handlers: Handlers = { ...publicHandlers(deps.handlers), ...operatorHandlers(deps.handlers) }
  return (
    names
      .filter((name) => ROUTES[name].listener === listener)
      // The edge hands over only requests with a key and a body that the route takes.
      .map((name) => ({ route: ROUTES[name], handle: handlers[name] as Handler }))
  )
}

function operatorPages() {
  const { showDesk, showDeskFile } = operatorPageHandlers()
  return [
    { route: OPERATOR_PAGE_ROUTES.showDesk, handle: showDesk },
    { route: OPERATOR_PAGE_ROUTES.showDeskFile, handle: showDeskFile },
  ]
}

function makePages(deps: ListenerDeps, own: { baseUrl: string; hasDocs: boolean }) {
  const handlers = pageHandlers(deps.handlers, own)
  const routes = Object.values(PAGE_ROUTES).filter(({ name }) => own.hasDocs || !DOCS_PAGES.includes(name))
  return routes.map((route) => ({ route, handle: handlers[route.name as PageName] }))
}

/** The dashboard also calls the API handlers, with commands that name their author. */
function makeDashboard({ handlers, log }: ListenerDeps, edge: DashboardEdge) {
  const handlersWith = (ask: RouteDeps['ask']) => publicHandlers({ ...handlers, ask })
  return dashboardHandlers({ ...handlers, log, edge, handlersWith })
}
