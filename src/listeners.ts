/**
 * listeners - which handler answers which route, and the two listeners that serve them
 *
 * Every route of the table has its handler here; the compiler says so when one is missing.
 */

import { ROUTES, type Route, type RouteName } from '../schemas/routes.ts'
import type { Config } from './config.ts'
import { type Listener, startListener } from './edge/http.ts'
import type { KeyFinder } from './edge/key.ts'
import { makeRate } from './edge/rate.ts'
import type { EdgeLog, Handler } from './edge/request.ts'
import { makeReadAudit } from './routes/audit.ts'
import {
  type DomainDeps,
  makeAddDomain,
  makeListDomains,
  makeReadDomain,
  makeRemoveDomain,
  makeVerifyDomain,
} from './routes/domains.ts'
import { makeSendBatch, makeSendEmail } from './routes/email.ts'
import { type HealthDeps, makeReadHealth, makeReadMetrics, makeReadReadiness } from './routes/health.ts'
import { makeReadMessage } from './routes/messages.ts'
import type { OperatorDeps } from './routes/operator.ts'
import { makePatchAccount } from './routes/operator-accounts.ts'
import { makePaceStream, makePauseStream, makeResumeStream } from './routes/operator-streams.ts'
import type { SendDeps } from './routes/send.ts'
import { makeReadServer } from './routes/server.ts'
import {
  makeArchiveStream,
  makeCreateStream,
  makeListStreams,
  makePatchStream,
  makeReadStream,
  type StreamDeps,
} from './routes/streams.ts'
import { makeCreateToken, makeListTokens, makeRevokeToken } from './routes/tokens.ts'
import type { MessageDeps } from './views/message.ts'

/** What the handlers of all routes need. */
export type RouteDeps = StreamDeps & SendDeps & DomainDeps & HealthDeps & MessageDeps & OperatorDeps

export interface ListenerDeps {
  readonly handlers: RouteDeps
  readonly keys: KeyFinder
  readonly log: EdgeLog
}

/** Starts the public listener and, unless its port is 0, the operator's. Throws Error when a port is taken. */
export async function startListeners(config: Config, deps: ListenerDeps): Promise<{ close(): Promise<void> }> {
  const handlers = makeHandlers(deps.handlers)
  const common = { trustedProxies: config.trustedProxies, keys: deps.keys, log: deps.log }
  const rate = makeRate({ perSecond: config.edgeRate, burst: config.edgeBurst, nowMs: () => performance.now() })
  const open: Listener[] = []
  const close = async () => {
    await Promise.all(open.map((listener) => listener.close()))
  }
  try {
    const routes = routesOf('public', handlers)
    open.push(await startListener({ host: config.httpHost, port: config.httpPort, routes, rate, ...common }))
    if (config.operatorPort !== 0) {
      const operatorRoutes = routesOf('operator', handlers)
      const { operatorHost: host, operatorPort: port } = config
      open.push(await startListener({ host, port, routes: operatorRoutes, ...common }))
    }
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

function makeHandlers(deps: RouteDeps): Record<RouteName, Handler> {
  return {
    sendEmail: makeSendEmail(deps),
    sendBatch: makeSendBatch(deps),
    readServer: makeReadServer(deps),
    readMessage: makeReadMessage(deps),
    listStreams: makeListStreams(deps),
    createStream: makeCreateStream(deps),
    readStream: makeReadStream(deps),
    patchStream: makePatchStream(deps),
    archiveStream: makeArchiveStream(deps),
    listTokens: makeListTokens(deps),
    createToken: makeCreateToken(deps),
    revokeToken: makeRevokeToken(deps),
    listDomains: makeListDomains(deps),
    addDomain: makeAddDomain(deps),
    readDomain: makeReadDomain(deps),
    deleteDomain: makeRemoveDomain(deps),
    verifyDomain: makeVerifyDomain(deps),
    readHealth: makeReadHealth(),
    readReadiness: makeReadReadiness(deps),
    readMetrics: makeReadMetrics(deps),
    pauseStream: makePauseStream(deps),
    resumeStream: makeResumeStream(deps),
    paceStream: makePaceStream(deps),
    patchAccount: makePatchAccount(deps),
    readAudit: makeReadAudit(deps),
  }
}

function routesOf(listener: Route['listener'], handlers: Record<RouteName, Handler>) {
  return (Object.keys(ROUTES) as RouteName[])
    .filter((name) => ROUTES[name].listener === listener)
    .map((name) => ({ route: ROUTES[name], handle: handlers[name] }))
}
