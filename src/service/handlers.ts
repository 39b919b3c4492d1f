/**
 * listeners - which handler answers which route, and the listeners that a process opens for what it runs
 *
 * Every route of the table has its handler here; the compiler says so when one is missing.
 */

import type { Role } from '../../schemas/config.ts'
import { ROUTES, type Route, type RouteName } from '../../schemas/routes.ts'
import type { KeyFinder } from '../http/key.ts'
import { type Listener, startListener } from '../http/listener.ts'
import { makeRate } from '../http/rate.ts'
import type { EdgeLog, Handler } from '../http/request.ts'
import type { Config } from '../process/config.ts'
import { HeldBytes } from '../process/held-bytes.ts'
import { type MxDeps, startMx } from '../reception/open.ts'
import { startSubmission } from '../reception/submission/open.ts'
import { makeListAccountTokens, makeReadAccount, makeRevokeAccountToken } from '../routes/account.ts'
import {
  type DomainDeps,
  makeAddDomain,
  makeListDomains,
  makeReadDomain,
  makeRemoveDomain,
  makeRotateDkim,
  makeVerifyDomain,
} from '../routes/domains.ts'
import { type EmailDeps, makeSendBatch, makeSendEmail } from '../routes/email.ts'
import { type EventFeedDeps, makeListenToEvents } from '../routes/events.ts'
import {
  type InboundDeps,
  makeReadReceived,
  makeReadReceivedFile,
  makeReadReceivedRaw,
  makeSearchReceived,
} from '../routes/inbound.ts'
import { makeReadMessage, makeSearchMessages, type SearchMessagesDeps } from '../routes/messages.ts'
import { makeReadOpenapi, makeReadOperatorOpenapi } from '../routes/openapi.ts'
import {
  makeApproveAccount,
  makeCloseAccount,
  makeCreateAccount,
  makeListAccounts,
  makePatchAccount,
  makePauseAccount,
  makeReadAccountAsOperator,
  makeResumeAccount,
  type OperatorAccountDeps,
} from '../routes/operator/accounts.ts'
import { makeReadAudit } from '../routes/operator/audit.ts'
import { type ClusterDeps, makeReadEntity, makeReadShards } from '../routes/operator/cluster.ts'
import { makeReadEvents } from '../routes/operator/events.ts'
import {
  type HealthDeps,
  makeExamineHealth,
  makeReadHealth,
  makeReadMetrics,
  makeReadReadiness,
  type OperatorHealthDeps,
} from '../routes/operator/health.ts'
import {
  makeDropQueue,
  makeHoldQueue,
  makeListQueue,
  makeReleaseQueue,
  makeRetryQueue,
  type QueueDeps,
} from '../routes/operator/queue.ts'
import {
  makeCreateServerAsOperator,
  makeCreateTokenAsOperator,
  makeListServersAsOperator,
  makeListTokensAsOperator,
  makeRevokeTokenAsOperator,
} from '../routes/operator/servers.ts'
import { makePaceStream, makePauseStream, makeResumeStream } from '../routes/operator/streams.ts'
import {
  makeCreateServer,
  makeCreateServerToken,
  makeDeleteServer,
  makeListServers,
  makeListServerTokens,
  makePatchServer,
  makeReadAccountServer,
  makeReadServer,
  makeRevokeServerToken,
} from '../routes/servers.ts'
import {
  makeArchiveStream,
  makeCreateStream,
  makeListStreams,
  makePatchStream,
  makeReadStream,
  type StreamDeps,
} from '../routes/streams.ts'
import {
  makeAddSuppressions,
  makeLiftSuppression,
  makeOperatorLiftSuppression,
  makeOperatorSearchSuppressions,
  makeReadSuppression,
  makeSearchSuppressions,
  type SuppressionDeps,
} from '../routes/suppressions.ts'
import { makeCreateToken, makeListTokens, makeRevokeToken } from '../routes/tokens.ts'
import {
  type DeliveryDeps,
  makeListDeliveries,
  makeReadDelivery,
  makeReplayDead,
  makeReplayDelivery,
  makeTestWebhook,
} from '../routes/webhook-deliveries.ts'
import {
  makeAddSecret,
  makeCreateWebhook,
  makeListWebhooks,
  makeReadWebhook,
  makeRemoveSecret,
  makeRemoveWebhook,
  makeSwitchWebhook,
} from '../routes/webhooks.ts'
import type { MessageDeps } from '../views/message/message.ts'

/** What the handlers of all routes need. */
export type RouteDeps = { readonly baseUrl: string; readonly operatorUrl: string } & StreamDeps &
  SearchMessagesDeps &
  EmailDeps &
  DomainDeps &
  HealthDeps &
  MessageDeps &
  InboundDeps &
  MxDeps['handlers'] &
  OperatorAccountDeps &
  ClusterDeps &
  OperatorHealthDeps &
  DeliveryDeps &
  EventFeedDeps &
  SuppressionDeps &
  QueueDeps

export interface ListenerDeps {
  readonly handlers: RouteDeps
  readonly keys: KeyFinder
  readonly log: EdgeLog
}

/** Routes of the operator listener that every process answers, whatever it runs. */
const OWN_ROUTES: readonly RouteName[] = ['readHealth', 'readReadiness', 'readMetrics']

/** Starts the listeners of a role; null where its settings open none. */
type Starter = (
  config: Config,
  deps: ListenerDeps & { readonly held: HeldBytes },
) => Promise<Pick<Listener, 'close'> | null>

/** What each role listens with. */
const STARTERS: Readonly<Partial<Record<Role, Starter>>> = {
  http: startPublic,
  mx: startMx,
  submission: startSubmission,
}

/**
 * Starts the listeners of the roles that this process runs and, unless its port is 0, the operator's: with `http` all of
 * its routes, without it only those about this very process. Throws Error when a port is taken.
 */
export async function startListeners(config: Config, deps: ListenerDeps): Promise<{ close(): Promise<void> }> {
  const held = new HeldBytes()
  const open: Pick<Listener, 'close'>[] = []
  const close = async () => {
    await Promise.all(open.map((listener) => listener.close()))
  }
  try {
    for (const role of config.roles) {
      const start = STARTERS[role]
      const listener = start === undefined ? null : await start(config, { ...deps, held })
      if (listener !== null) open.push(listener)
    }
    if (config.operatorPort !== 0) open.push(await startOperator(config, deps))
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

function startPublic(config: Config, deps: Parameters<Starter>[1]): Promise<Listener> {
  const { httpHost: host, httpPort: port, trustedProxies, edgeRate, edgeBurst } = config
  const bucket = { perSecond: edgeRate, burst: edgeBurst, nowMs: () => performance.now() }
  // Without a rate nothing asks who the client is.
  const rate = edgeRate > 0 ? { rate: makeRate(bucket) } : {}
  const routes = routesOf('public', deps, ROUTE_NAMES)
  const { keys, log, held } = deps
  return startListener({ host, port, routes, ...rate, trustedProxies, keys, log, held })
}

function startOperator(config: Config, deps: ListenerDeps): Promise<Listener> {
  const { operatorHost: host, operatorPort: port, trustedProxies } = config
  const routes = routesOf('operator', deps, config.roles.includes('http') ? ROUTE_NAMES : OWN_ROUTES)
  return startListener({ host, port, routes, trustedProxies, keys: deps.keys, log: deps.log })
}

function makeHandlers(deps: RouteDeps): Record<RouteName, Handler> {
  return {
    readOpenapi: makeReadOpenapi(deps),
    readOperatorOpenapi: makeReadOperatorOpenapi(deps),
    sendEmail: makeSendEmail(deps),
    sendBatch: makeSendBatch(deps),
    readServer: makeReadServer(deps),
    searchMessages: makeSearchMessages(deps),
    readMessage: makeReadMessage(deps),
    searchReceived: makeSearchReceived(deps),
    readReceived: makeReadReceived(deps),
    readReceivedRaw: makeReadReceivedRaw(deps),
    readReceivedFile: makeReadReceivedFile(deps),
    listStreams: makeListStreams(deps),
    createStream: makeCreateStream(deps),
    readStream: makeReadStream(deps),
    patchStream: makePatchStream(deps),
    archiveStream: makeArchiveStream(deps),
    listTokens: makeListTokens(deps),
    createToken: makeCreateToken(deps),
    revokeToken: makeRevokeToken(deps),
    readAccount: makeReadAccount(deps),
    listAccountTokens: makeListAccountTokens(deps),
    revokeAccountToken: makeRevokeAccountToken(deps),
    listServers: makeListServers(deps),
    createServer: makeCreateServer(deps),
    readAccountServer: makeReadAccountServer(deps),
    patchServer: makePatchServer(deps),
    deleteServer: makeDeleteServer(deps),
    listServerTokens: makeListServerTokens(deps),
    createServerToken: makeCreateServerToken(deps),
    revokeServerToken: makeRevokeServerToken(deps),
    listDomains: makeListDomains(deps),
    addDomain: makeAddDomain(deps),
    readDomain: makeReadDomain(deps),
    deleteDomain: makeRemoveDomain(deps),
    verifyDomain: makeVerifyDomain(deps),
    rotateDkim: makeRotateDkim(deps),
    searchSuppressions: makeSearchSuppressions(deps),
    addSuppressions: makeAddSuppressions(deps),
    readSuppression: makeReadSuppression(deps),
    liftSuppression: makeLiftSuppression(deps),
    operatorSearchSuppressions: makeOperatorSearchSuppressions(deps),
    operatorLiftSuppression: makeOperatorLiftSuppression(deps),
    ...makeWebhookHandlers(deps),
    readHealth: makeReadHealth(),
    readReadiness: makeReadReadiness(deps),
    readMetrics: makeReadMetrics(deps),
    examineHealth: makeExamineHealth(deps),
    listenToEvents: makeListenToEvents(deps),
    readEvents: makeReadEvents(deps),
    pauseStream: makePauseStream(deps),
    resumeStream: makeResumeStream(deps),
    paceStream: makePaceStream(deps),
    listAccounts: makeListAccounts(deps),
    createAccount: makeCreateAccount(deps),
    readAccountAsOperator: makeReadAccountAsOperator(deps),
    approveAccount: makeApproveAccount(deps),
    pauseAccount: makePauseAccount(deps),
    resumeAccount: makeResumeAccount(deps),
    closeAccount: makeCloseAccount(deps),
    listAccountTokensAsOperator: makeListTokensAsOperator(deps),
    createAccountToken: makeCreateTokenAsOperator(deps),
    revokeAccountTokenAsOperator: makeRevokeTokenAsOperator(deps),
    listServersAsOperator: makeListServersAsOperator(deps),
    createServerAsOperator: makeCreateServerAsOperator(deps),
    listServerTokensAsOperator: makeListTokensAsOperator(deps),
    createServerTokenAsOperator: makeCreateTokenAsOperator(deps),
    revokeServerTokenAsOperator: makeRevokeTokenAsOperator(deps),
    patchAccount: makePatchAccount(deps),
    readShards: makeReadShards(deps),
    readEntity: makeReadEntity(deps),
    readAudit: makeReadAudit(deps),
    listQueue: makeListQueue(deps),
    retryQueue: makeRetryQueue(deps),
    holdQueue: makeHoldQueue(deps),
    releaseQueue: makeReleaseQueue(deps),
    dropQueue: makeDropQueue(deps),
  }
}

function makeWebhookHandlers(deps: DeliveryDeps) {
  return {
    createWebhook: makeCreateWebhook(deps),
    listWebhooks: makeListWebhooks(deps),
    readWebhook: makeReadWebhook(deps),
    deleteWebhook: makeRemoveWebhook(deps),
    enableWebhook: makeSwitchWebhook(deps, true),
    disableWebhook: makeSwitchWebhook(deps, false),
    addWebhookSecret: makeAddSecret(deps),
    deleteWebhookSecret: makeRemoveSecret(deps),
    listDeliveries: makeListDeliveries(deps),
    readDelivery: makeReadDelivery(deps),
    replayDelivery: makeReplayDelivery(deps),
    replayDead: makeReplayDead(deps),
    testWebhook: makeTestWebhook(deps),
  }
}

const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[]

function routesOf(listener: Route['listener'], deps: ListenerDeps, names: readonly RouteName[]) {
  const handlers = makeHandlers(deps.handlers)
  return names
    .filter((name) => ROUTES[name].listener === listener)
    .map((name) => ({ route: ROUTES[name], handle: handlers[name] }))
}
