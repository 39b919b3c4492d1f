/**
 * handlers - which handler answers which route of the operator listener
 *
 * Guarantee: every route has a handler for the kind of key and the body of its row; otherwise the code does not
 * compile.
 */

import type { OperatorRouteName } from '../../../schemas/routes.ts'
import type { Handlers } from '../../http/request.ts'
import type { EventFeedDeps } from '../events.ts'
import { makeReadOperatorOpenapi } from '../openapi.ts'
import type { StreamDeps } from '../streams.ts'
import { makeOperatorLiftSuppression, makeOperatorSearchSuppressions, type SuppressionDeps } from '../suppressions.ts'
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
} from './accounts.ts'
import { makeReadAudit } from './audit.ts'
import { type ClusterDeps, makeReadEntity, makeReadShards } from './cluster.ts'
import { type EgressDeps, makeApplyEgress, makeExplainEgress, makeReadEgress } from './egress.ts'
import { makeReadEvents } from './events.ts'
import {
  type HealthDeps,
  makeExamineHealth,
  makeReadHealth,
  makeReadMetrics,
  makeReadReadiness,
  type OperatorHealthDeps,
} from './health.ts'
import { makeCreateOperatorKey, makeListOperatorKeys, makeRevokeOperatorKey } from './keys.ts'
import { makeCreateAccountLink, type OperatorLinkDeps } from './links.ts'
import { makeFindMessage, makeRevealMessage, type OperatorMessageDeps } from './messages.ts'
import {
  makeDropQueue,
  makeHoldQueue,
  makeListQueue,
  makeListQueueAccounts,
  makeListQueuedMessages,
  makeReleaseQueue,
  makeRetryQueue,
  type QueueDeps,
} from './queue.ts'
import { makeSearchRecipients, type RecipientDeps } from './recipients.ts'
import {
  makePatchAccountRetention,
  makePatchInstallationRetention,
  makeReadAccountRetention,
  makeReadInstallationRetention,
} from './retention.ts'
import { makeReadSecret, makeRotateSecret, type SecretDeps } from './secret.ts'
import {
  makeCreateServerAsOperator,
  makeCreateTokenAsOperator,
  makeListServersAsOperator,
  makeListTokensAsOperator,
  makeRevokeTokenAsOperator,
} from './servers.ts'
import {
  makeCreateDeskLink,
  makeEndSession,
  makeOpenSession,
  makeUseDeskLink,
  type OperatorSessionDeps,
} from './sessions.ts'
import { makePaceStream, makePauseStream, makeResumeStream } from './streams.ts'

/** Dependencies of the operator's handlers. */
export type OperatorListenerDeps = { readonly operatorUrl: string } & HealthDeps &
  OperatorAccountDeps &
  OperatorLinkDeps &
  OperatorSessionDeps &
  ClusterDeps &
  EgressDeps &
  OperatorHealthDeps &
  OperatorMessageDeps &
  EventFeedDeps &
  SuppressionDeps &
  QueueDeps &
  RecipientDeps &
  SecretDeps &
  StreamDeps

/** The handlers, by the names of their routes. */
export function operatorHandlers(deps: OperatorListenerDeps): Handlers<OperatorRouteName> {
  return {
    readOperatorOpenapi: makeReadOperatorOpenapi(deps),
    operatorSearchSuppressions: makeOperatorSearchSuppressions(deps),
    operatorLiftSuppression: makeOperatorLiftSuppression(deps),
    readHealth: makeReadHealth(),
    readReadiness: makeReadReadiness(deps),
    readMetrics: makeReadMetrics(deps),
    examineHealth: makeExamineHealth(deps),
    openOperatorSession: makeOpenSession(deps),
    useDeskLink: makeUseDeskLink(deps),
    endOperatorSession: makeEndSession(deps),
    createDeskLink: makeCreateDeskLink(deps),
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
    createAccountLink: makeCreateAccountLink(deps),
    listAccountTokensAsOperator: makeListTokensAsOperator(deps),
    createAccountToken: makeCreateTokenAsOperator(deps),
    revokeAccountTokenAsOperator: makeRevokeTokenAsOperator(deps),
    listServersAsOperator: makeListServersAsOperator(deps),
    createServerAsOperator: makeCreateServerAsOperator(deps),
    listServerTokensAsOperator: makeListTokensAsOperator(deps),
    createServerTokenAsOperator: makeCreateTokenAsOperator(deps),
    revokeServerTokenAsOperator: makeRevokeTokenAsOperator(deps),
    patchAccount: makePatchAccount(deps),
    readInstallationRetention: makeReadInstallationRetention(deps),
    patchInstallationRetention: makePatchInstallationRetention(deps),
    readAccountRetentionAsOperator: makeReadAccountRetention(deps),
    patchAccountRetentionAsOperator: makePatchAccountRetention(deps),
    readShards: makeReadShards(deps),
    readEntity: makeReadEntity(deps),
    listOperatorKeys: makeListOperatorKeys(deps),
    createOperatorKey: makeCreateOperatorKey(deps),
    revokeOperatorKey: makeRevokeOperatorKey(deps),
    readSecret: makeReadSecret(deps),
    rotateSecret: makeRotateSecret(deps),
    readEgress: makeReadEgress(deps),
    applyEgress: makeApplyEgress(deps),
    explainEgress: makeExplainEgress(deps),
    readAudit: makeReadAudit(deps),
    findMessage: makeFindMessage(deps),
    revealMessage: makeRevealMessage(deps),
    searchRecipients: makeSearchRecipients(deps),
    listQueue: makeListQueue(deps),
    listQueuedMessages: makeListQueuedMessages(deps),
    listQueueAccounts: makeListQueueAccounts(deps),
    retryQueue: makeRetryQueue(deps),
    holdQueue: makeHoldQueue(deps),
    releaseQueue: makeReleaseQueue(deps),
    dropQueue: makeDropQueue(deps),
  }
}
