/**
 * handlers - which handler answers which route of the public listener
 *
 * Guarantee: every route has a handler for the kind of key and the body of its row; otherwise the code does not
 * compile.
 */

import type { PublicRouteName } from '../../schemas/routes.ts'
import type { Handlers } from '../http/request.ts'
import type { Scans } from '../http/scans.ts'
import type { MessageDeps } from '../views/message/message.ts'
import { makeListAccountTokens, makeReadAccount, makeRevokeAccountToken } from './account.ts'
import {
  type BroadcastDeps,
  makeCreateBroadcast,
  makeListBroadcasts,
  makeOrderBroadcast,
  makePreviewBroadcast,
  makeReadBroadcast,
} from './broadcasts.ts'
import { type CheckDeps, makeCheckMessage } from './content/checks.ts'
import { type MessageFilesDeps, messageFileHandlers } from './content/message-files.ts'
import { type DomainDeps, domainHandlers } from './domain/domains.ts'
import { type ReportDeps, reportHandlers } from './domain/reports.ts'
import { type EmailDeps, makeSendBatch, makeSendEmail } from './email.ts'
import { type ErasureDeps, makeCreateErasure, makeReadErasure } from './erasures.ts'
import { type EventFeedDeps, eventHandlers } from './events.ts'
import { type ExportDeps, exportHandlers } from './export/export.ts'
import {
  type InboundDeps,
  makeReadReceived,
  makeReadReceivedFile,
  makeReadReceivedRaw,
  makeSearchReceived,
} from './inbound.ts'
import { messageHandlers, type SearchMessagesDeps } from './messages.ts'
import { makeReadOpenapi } from './openapi.ts'
import { type RetentionDeps, retentionHandlers } from './retention/retention.ts'
import { type ScheduleDeps, scheduleHandlers } from './schedule.ts'
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
} from './servers.ts'
import { makeReadRequest, makeReadStats, makeSearchRequests } from './stats.ts'
import {
  makeArchiveStream,
  makeCreateStream,
  makeListStreams,
  makePatchStream,
  makeReadStream,
  type StreamDeps,
} from './streams.ts'
import { type SuppressionDeps, suppressionHandlers } from './suppressions.ts'
import { makeCreateToken, makeListTokens, makeRevokeToken } from './tokens.ts'
import type { WaitDeps } from './wait/waits.ts'
import {
  type DeliveryDeps,
  makeListDeliveries,
  makeReadDelivery,
  makeReplayDead,
  makeReplayDelivery,
  makeTestWebhook,
} from './webhook-deliveries.ts'
import {
  makeAddSecret,
  makeCreateWebhook,
  makeListWebhooks,
  makeReadWebhook,
  makeReadWebhookHealth,
  makeRemoveSecret,
  makeRemoveWebhook,
  makeSwitchWebhook,
} from './webhooks.ts'

/** Dependencies of the public handlers. */
export type PublicDeps = { readonly baseUrl: string; readonly scans: Scans } & StreamDeps &
  SearchMessagesDeps &
  EmailDeps &
  InboundDeps &
  DomainDeps &
  ReportDeps &
  ErasureDeps &
  ExportDeps &
  MessageDeps &
  RetentionDeps &
  MessageFilesDeps &
  CheckDeps &
  ScheduleDeps &
  DeliveryDeps &
  EventFeedDeps &
  WaitDeps &
  BroadcastDeps &
  SuppressionDeps

/** The handlers, by the names of their routes. */
export function publicHandlers(deps: PublicDeps): Handlers<PublicRouteName> {
  const { scans } = deps
  return {
    readOpenapi: makeReadOpenapi(deps),
    sendEmail: makeSendEmail(deps),
    sendBatch: makeSendBatch(deps),
    readServer: makeReadServer(deps),
    ...messageHandlers(deps),
    ...messageFileHandlers(deps),
    checkMessage: makeCheckMessage(deps),
    ...scheduleHandlers(deps),
    searchRequests: scans.limit(makeSearchRequests, deps),
    readRequest: makeReadRequest(deps),
    readStats: makeReadStats(deps),
    searchReceived: scans.limit(makeSearchReceived, deps),
    readReceived: makeReadReceived(deps),
    readReceivedRaw: makeReadReceivedRaw(deps),
    readReceivedFile: makeReadReceivedFile(deps),
    listStreams: makeListStreams(deps),
    createStream: makeCreateStream(deps),
    readStream: makeReadStream(deps),
    patchStream: makePatchStream(deps),
    archiveStream: makeArchiveStream(deps),
    createBroadcast: makeCreateBroadcast(deps),
    previewBroadcast: makePreviewBroadcast(deps),
    listBroadcasts: makeListBroadcasts(deps),
    readBroadcast: makeReadBroadcast(deps),
    cancelBroadcast: makeOrderBroadcast(deps, 'cancel'),
    pauseBroadcast: makeOrderBroadcast(deps, 'pause'),
    resumeBroadcast: makeOrderBroadcast(deps, 'resume'),
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
    ...domainHandlers(deps),
    ...reportHandlers(deps),
    createErasure: makeCreateErasure(deps),
    readErasure: makeReadErasure(deps),
    ...suppressionHandlers(deps),
    ...exportHandlers(deps),
    ...retentionHandlers(deps),
    ...eventHandlers(deps),
    createWebhook: makeCreateWebhook(deps),
    listWebhooks: makeListWebhooks(deps),
    readWebhookHealth: scans.limit(makeReadWebhookHealth, deps),
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
