/**
 * routes - the rows of the operator listener
 *
 * Every write takes a body with a note, and is in the audit log.
 *
 * Spec route.table, operator.listener, operator.note, operator.audit
 */

import {
  ACCOUNT,
  ACCOUNT_APPROVE_BODY,
  ACCOUNT_BODY,
  ACCOUNT_DETAIL,
  ACCOUNT_LIST,
  ACCOUNT_PATCH_BODY,
  ACCOUNT_PAUSE_BODY,
} from '../account.ts'
import { LINK_MADE, OPERATOR_LINK_BODY } from '../dashboard/link.ts'
import { PAGE_QUERY } from '../domain.ts'
import { EGRESS_BYTES_MAX } from '../limits.ts'
import { OPERATOR_RETENTION_ROUTES } from '../retention/routes.ts'
import { OPENAPI, type Route, route } from '../route.ts'
import { SERVER_BODY_AS_OPERATOR, SERVER_LIST, SERVER_MADE } from '../server.ts'
import { OPERATED_STREAM, STREAM_PACE_BODY } from '../stream.ts'
import { SUPPRESSION_LIST, SUPPRESSION_SEARCH_OF_SERVER } from '../suppression.ts'
import { TOKEN, TOKEN_BODY_AS_OPERATOR, TOKEN_LIST, TOKEN_MADE } from '../token.ts'
import { AUDIT_LIST, NOTE_BODY } from './audit.ts'
import { ENTITY, SHARD_LIST } from './cluster.ts'
import { EGRESS, EGRESS_BODY, EGRESS_EXPLAIN_QUERY, EGRESS_EXPLAINED } from './egress.ts'
import { HEALTH } from './health.ts'
import { FOUND_MESSAGE } from './message.ts'
import { OPERATOR_KEY, OPERATOR_KEY_BODY, OPERATOR_KEY_LIST, OPERATOR_KEY_MADE } from './operator-key.ts'
import {
  QUEUE,
  QUEUE_ACCOUNTS,
  QUEUE_ACCOUNTS_QUERY,
  QUEUE_BODY,
  QUEUE_ORDERED,
  QUEUE_QUERY,
  QUEUED_MESSAGES,
  QUEUED_MESSAGES_QUERY,
} from './queue.ts'
import { RECIPIENT_MESSAGES, RECIPIENT_SEARCH } from './recipient.ts'
import { ROTATION, SECRET } from './secret.ts'
import { DESK_LINK_BODY, OPERATOR_SESSION } from './session.ts'

function queueOrder<const Name extends string>(name: Name, order: string): Route<Name, 'O', typeof QUEUE_BODY> {
  return route(name, 'POST', `/v1/operator/queue/${order}`, {
    listener: 'operator',
    keys: ['O'],
    body: QUEUE_BODY,
    success: { status: 200, body: QUEUE_ORDERED },
  })
}

const PLAIN = { status: 200, body: null, media: 'text/plain' }
const EVENT_STREAM = { status: 200, body: null, media: 'text/event-stream' }

export const OPERATOR_ROUTES = {
  readOperatorOpenapi: route('readOperatorOpenapi', 'GET', '/v1/operator/openapi.json', {
    listener: 'operator',
    keys: [],
    success: { status: 200, body: OPENAPI },
  }),
  readHealth: route('readHealth', 'GET', '/healthz', { listener: 'operator', keys: [], success: PLAIN }),
  readReadiness: route('readReadiness', 'GET', '/readyz', { listener: 'operator', keys: [], success: PLAIN }),
  readMetrics: route('readMetrics', 'GET', '/metrics', { listener: 'operator', keys: [], success: PLAIN }),
  examineHealth: route('examineHealth', 'GET', '/v1/operator/health', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: HEALTH },
  }),
  openOperatorSession: route('openOperatorSession', 'POST', '/v1/operator/session', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 201, body: OPERATOR_SESSION },
    refusals: ['wrong_token_kind'],
  }),
  useDeskLink: route('useDeskLink', 'POST', '/v1/operator/session/link', {
    listener: 'operator',
    keys: [],
    body: DESK_LINK_BODY,
    success: { status: 201, body: OPERATOR_SESSION },
    refusals: ['link_not_valid'],
  }),
  endOperatorSession: route('endOperatorSession', 'DELETE', '/v1/operator/session', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 204, body: null },
    refusals: ['wrong_token_kind'],
  }),
  createDeskLink: route('createDeskLink', 'POST', '/v1/operator/link', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 201, body: LINK_MADE },
    refusals: ['wrong_token_kind'],
  }),
  readEvents: route('readEvents', 'GET', '/v1/operator/servers/{serverId}/events', {
    listener: 'operator',
    keys: ['O'],
    success: EVENT_STREAM,
  }),
  listAccounts: route('listAccounts', 'GET', '/v1/operator/accounts', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: ACCOUNT_LIST },
  }),
  createAccount: route('createAccount', 'POST', '/v1/operator/accounts', {
    listener: 'operator',
    keys: ['O'],
    body: ACCOUNT_BODY,
    success: { status: 201, body: ACCOUNT },
    refusals: ['wrong_token_kind'],
  }),
  readAccountAsOperator: route('readAccountAsOperator', 'GET', '/v1/operator/accounts/{accountId}', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: ACCOUNT_DETAIL },
  }),
  patchAccount: route('patchAccount', 'PATCH', '/v1/operator/accounts/{accountId}', {
    listener: 'operator',
    keys: ['O'],
    body: ACCOUNT_PATCH_BODY,
    success: { status: 200, body: ACCOUNT },
    refusals: ['limit_too_high', 'account_closed'],
  }),
  ...OPERATOR_RETENTION_ROUTES,
  approveAccount: route('approveAccount', 'POST', '/v1/operator/accounts/{accountId}/approve', {
    listener: 'operator',
    keys: ['O'],
    body: ACCOUNT_APPROVE_BODY,
    success: { status: 200, body: ACCOUNT },
    refusals: ['limit_too_high', 'account_not_pending', 'account_closed'],
  }),
  pauseAccount: route('pauseAccount', 'POST', '/v1/operator/accounts/{accountId}/pause', {
    listener: 'operator',
    keys: ['O'],
    body: ACCOUNT_PAUSE_BODY,
    success: { status: 200, body: ACCOUNT },
    refusals: ['account_not_active', 'account_closed'],
  }),
  resumeAccount: route('resumeAccount', 'POST', '/v1/operator/accounts/{accountId}/resume', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 200, body: ACCOUNT },
    refusals: ['account_not_active', 'account_closed'],
  }),
  closeAccount: route('closeAccount', 'POST', '/v1/operator/accounts/{accountId}/close', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 200, body: ACCOUNT },
    refusals: ['account_closed'],
  }),
  createAccountLink: route('createAccountLink', 'POST', '/v1/operator/accounts/{accountId}/link', {
    listener: 'operator',
    keys: ['O'],
    body: OPERATOR_LINK_BODY,
    success: { status: 201, body: LINK_MADE },
    refusals: ['wrong_token_kind', 'account_closed'],
  }),
  listAccountTokensAsOperator: route('listAccountTokensAsOperator', 'GET', '/v1/operator/accounts/{accountId}/tokens', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: TOKEN_LIST },
  }),
  createAccountToken: route('createAccountToken', 'POST', '/v1/operator/accounts/{accountId}/tokens', {
    listener: 'operator',
    keys: ['O'],
    body: TOKEN_BODY_AS_OPERATOR,
    success: { status: 201, body: TOKEN_MADE },
    refusals: ['wrong_token_kind', 'token_limit', 'account_closed'],
  }),
  revokeAccountTokenAsOperator: route(
    'revokeAccountTokenAsOperator',
    'POST',
    '/v1/operator/accounts/{accountId}/tokens/{tokenId}/revoke',
    {
      listener: 'operator',
      keys: ['O'],
      body: NOTE_BODY,
      success: { status: 200, body: TOKEN },
      refusals: ['account_closed'],
    },
  ),
  listServersAsOperator: route('listServersAsOperator', 'GET', '/v1/operator/accounts/{accountId}/servers', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: SERVER_LIST },
  }),
  createServerAsOperator: route('createServerAsOperator', 'POST', '/v1/operator/accounts/{accountId}/servers', {
    listener: 'operator',
    keys: ['O'],
    body: SERVER_BODY_AS_OPERATOR,
    success: { status: 201, body: SERVER_MADE },
    refusals: ['wrong_token_kind', 'limit_too_high', 'server_exists', 'server_limit', 'account_closed'],
  }),
  listServerTokensAsOperator: route('listServerTokensAsOperator', 'GET', '/v1/operator/servers/{serverId}/tokens', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: TOKEN_LIST },
  }),
  createServerTokenAsOperator: route('createServerTokenAsOperator', 'POST', '/v1/operator/servers/{serverId}/tokens', {
    listener: 'operator',
    keys: ['O'],
    body: TOKEN_BODY_AS_OPERATOR,
    success: { status: 201, body: TOKEN_MADE },
    refusals: ['wrong_token_kind', 'token_limit', 'account_closed'],
  }),
  revokeServerTokenAsOperator: route(
    'revokeServerTokenAsOperator',
    'POST',
    '/v1/operator/servers/{serverId}/tokens/{tokenId}/revoke',
    {
      listener: 'operator',
      keys: ['O'],
      body: NOTE_BODY,
      success: { status: 200, body: TOKEN },
      refusals: ['account_closed'],
    },
  ),
  pauseStream: route('pauseStream', 'POST', '/v1/operator/streams/{streamId}/pause', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 200, body: OPERATED_STREAM },
  }),
  resumeStream: route('resumeStream', 'POST', '/v1/operator/streams/{streamId}/resume', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 200, body: OPERATED_STREAM },
  }),
  paceStream: route('paceStream', 'PATCH', '/v1/operator/streams/{streamId}', {
    listener: 'operator',
    keys: ['O'],
    body: STREAM_PACE_BODY,
    success: { status: 200, body: OPERATED_STREAM },
  }),
  operatorSearchSuppressions: route('operatorSearchSuppressions', 'POST', '/v1/operator/suppressions/search', {
    listener: 'operator',
    keys: ['O'],
    body: SUPPRESSION_SEARCH_OF_SERVER,
    success: { status: 200, body: SUPPRESSION_LIST },
    refusals: ['not_found', 'stream_not_found'],
  }),
  operatorLiftSuppression: route('operatorLiftSuppression', 'DELETE', '/v1/operator/suppressions/{suppressionId}', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 204, body: null },
  }),
  listQueue: route('listQueue', 'GET', '/v1/operator/queue', {
    listener: 'operator',
    keys: ['O'],
    query: QUEUE_QUERY,
    success: { status: 200, body: QUEUE },
  }),
  listQueuedMessages: route('listQueuedMessages', 'GET', '/v1/operator/queue/messages', {
    listener: 'operator',
    keys: ['O'],
    query: QUEUED_MESSAGES_QUERY,
    success: { status: 200, body: QUEUED_MESSAGES },
  }),
  listQueueAccounts: route('listQueueAccounts', 'GET', '/v1/operator/queue/accounts', {
    listener: 'operator',
    keys: ['O'],
    query: QUEUE_ACCOUNTS_QUERY,
    success: { status: 200, body: QUEUE_ACCOUNTS },
  }),
  retryQueue: queueOrder('retryQueue', 'retry'),
  holdQueue: queueOrder('holdQueue', 'hold'),
  releaseQueue: queueOrder('releaseQueue', 'release'),
  dropQueue: queueOrder('dropQueue', 'drop'),
  readShards: route('readShards', 'GET', '/v1/operator/shards', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: SHARD_LIST },
  }),
  readEntity: route('readEntity', 'GET', '/v1/operator/entities/{kind}/{id}', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: ENTITY },
  }),
  findMessage: route('findMessage', 'GET', '/v1/operator/messages/{id}', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: FOUND_MESSAGE },
  }),
  revealMessage: route('revealMessage', 'POST', '/v1/operator/messages/{id}/reveal', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 200, body: FOUND_MESSAGE },
  }),
  searchRecipients: route('searchRecipients', 'POST', '/v1/operator/recipients/search', {
    listener: 'operator',
    keys: ['O'],
    body: RECIPIENT_SEARCH,
    success: { status: 200, body: RECIPIENT_MESSAGES },
  }),
  listOperatorKeys: route('listOperatorKeys', 'GET', '/v1/operator/tokens', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: OPERATOR_KEY_LIST },
  }),
  createOperatorKey: route('createOperatorKey', 'POST', '/v1/operator/tokens', {
    listener: 'operator',
    keys: ['O'],
    body: OPERATOR_KEY_BODY,
    success: { status: 201, body: OPERATOR_KEY_MADE },
    refusals: ['wrong_token_kind', 'token_limit'],
  }),
  revokeOperatorKey: route('revokeOperatorKey', 'POST', '/v1/operator/tokens/{tokenId}/revoke', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 200, body: OPERATOR_KEY },
    refusals: ['last_operator_key'],
  }),
  readSecret: route('readSecret', 'GET', '/v1/operator/secret', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: SECRET },
  }),
  rotateSecret: route('rotateSecret', 'POST', '/v1/operator/secret/rotate', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 202, body: ROTATION },
    refusals: ['wrong_token_kind', 'rotation_in_progress', 'secret_not_set'],
  }),
  readEgress: route('readEgress', 'GET', '/v1/operator/egress', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: EGRESS },
  }),
  applyEgress: route('applyEgress', 'PUT', '/v1/operator/egress', {
    listener: 'operator',
    keys: ['O'],
    body: EGRESS_BODY,
    bodyBytesMax: EGRESS_BYTES_MAX,
    success: { status: 200, body: EGRESS },
  }),
  explainEgress: route('explainEgress', 'GET', '/v1/operator/egress/explain', {
    listener: 'operator',
    keys: ['O'],
    query: EGRESS_EXPLAIN_QUERY,
    success: { status: 200, body: EGRESS_EXPLAINED },
  }),
  readAudit: route('readAudit', 'GET', '/v1/operator/audit', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: AUDIT_LIST },
  }),
} as const satisfies Record<string, Route>
