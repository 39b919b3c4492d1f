/**
 * routes - every route of the service as data: its keys, input and answer
 *
 * The edge registers them, tests walk them, documents are derived from them. Key kinds: S server key, A account key, O
 * operator key; without a kind the route takes no key.
 *
 * Spec route.table, refusal.order
 */

import type { FromSchema, JSONSchema } from 'json-schema-to-ts'

import { ACCOUNT } from './account.ts'
import {
  BROADCAST,
  BROADCAST_BODY,
  BROADCAST_LIST,
  BROADCAST_PREVIEW,
  BROADCAST_PREVIEW_BODY,
  BROADCAST_QUERY,
} from './broadcast.ts'
import { CHECKS, CHECKS_BODY } from './checks.ts'
import { OUTCOMES, OUTCOMES_BODY } from './counts/outcomes.ts'
import { DOMAIN, DOMAIN_BODY, DOMAIN_CHECKED, DOMAIN_LIST, PAGE_QUERY } from './domain.ts'
import { BATCH_ANSWER, BATCH_BODY, type BatchBody, EMAIL_ANSWER, EMAIL_BODY, type EmailBody } from './email.ts'
import { ERASURE, ERASURE_BODY } from './erasure.ts'
import { EXPORT_ROUTES } from './export/routes.ts'
import { RECEIVED_LIST, RECEIVED_MESSAGE, RECEIVED_SEARCH } from './inbound.ts'
import { BROADCAST_BODY_BYTES_MAX } from './limits.ts'
import { MESSAGE, MESSAGE_LIST, MESSAGE_PATCH, MESSAGE_SEARCH } from './message.ts'
import { OPERATOR_ROUTES } from './operator/routes.ts'
import { REPORT_ROUTES } from './report/routes.ts'
import { REQUEST_ENTRY, REQUEST_LIST, REQUEST_SEARCH } from './request-log.ts'
import { RETENTION_ROUTES } from './retention/routes.ts'
import { OPENAPI, type Route, route } from './route.ts'
import { SERVER, SERVER_BODY, SERVER_LIST, SERVER_MADE, SERVER_PATCH_BODY } from './server.ts'
import { STATS, STATS_QUERY } from './stats.ts'
import { STREAM, STREAM_BODY, STREAM_LIST, STREAM_PATCH_BODY, STREAM_QUERY } from './stream.ts'
import {
  SUPPRESSION,
  SUPPRESSION_LIST,
  SUPPRESSION_SEARCH,
  SUPPRESSIONS_ADDED,
  SUPPRESSIONS_BODY,
} from './suppression.ts'
import { TOKEN, TOKEN_BODY, TOKEN_LIST, TOKEN_MADE } from './token.ts'
import { WEBHOOK_ROUTES } from './webhook-routes.ts'

export type { KeyKind, Method, Route } from './route.ts'

/** Refusals of routes that send messages. Spec send.refusals */
const SEND_REFUSALS = [
  'payment_required',
  'account_paused',
  'stream_not_found',
  'stream_kind_not_allowed',
  'domain_not_verified',
  'message_too_large',
  'stream_archived',
  'stream_paused',
  'rate_limited',
  'cap_reached',
  'scheduled_limit',
] as const

/** Refusals of a broadcast, without those of the minute limit. Spec broadcast.create */
const BROADCAST_REFUSALS = [
  'payment_required',
  'account_paused',
  'stream_not_found',
  'stream_kind_not_allowed',
  'domain_not_verified',
  'message_too_large',
  'broadcast_too_large',
  'stream_archived',
  'stream_paused',
  'cap_reached',
] as const

export const ROUTES = {
  readOpenapi: route('readOpenapi', 'GET', '/v1/openapi.json', {
    keys: [],
    success: { status: 200, body: OPENAPI },
  }),
  sendEmail: route('sendEmail', 'POST', '/v1/email', {
    body: EMAIL_BODY,
    success: { status: 200, body: EMAIL_ANSWER },
    isIdempotent: true,
    refusals: SEND_REFUSALS,
  }),
  sendBatch: route('sendBatch', 'POST', '/v1/email/batch', {
    body: BATCH_BODY,
    success: { status: 200, body: BATCH_ANSWER },
    isIdempotent: true,
    refusals: SEND_REFUSALS,
  }),
  readServer: route('readServer', 'GET', '/v1/server', { success: { status: 200, body: SERVER } }),
  searchMessages: route('searchMessages', 'POST', '/v1/messages/search', {
    body: MESSAGE_SEARCH,
    success: { status: 200, body: MESSAGE_LIST },
    refusals: ['stream_not_found'],
  }),
  searchOutcomes: route('searchOutcomes', 'POST', '/v1/messages/outcomes', {
    body: OUTCOMES_BODY,
    success: { status: 200, body: OUTCOMES },
    refusals: ['stream_not_found'],
  }),
  readMessage: route('readMessage', 'GET', '/v1/messages/{id}', {
    success: { status: 200, body: MESSAGE },
  }),
  readMessageRaw: route('readMessageRaw', 'GET', '/v1/messages/{id}/raw', {
    success: { status: 200, body: null, media: 'message/rfc822' },
    refusals: ['content_expired'],
  }),
  readMessageFile: route('readMessageFile', 'GET', '/v1/messages/{id}/attachments/{position}', {
    success: { status: 200, body: null, media: '*/*' },
    refusals: ['content_expired'],
  }),
  checkMessage: route('checkMessage', 'POST', '/v1/messages/{id}/checks', {
    body: CHECKS_BODY,
    success: { status: 200, body: CHECKS },
    refusals: ['content_expired'],
  }),
  patchMessage: route('patchMessage', 'PATCH', '/v1/messages/{id}', {
    body: MESSAGE_PATCH,
    success: { status: 200, body: MESSAGE },
    refusals: ['message_not_scheduled'],
  }),
  cancelMessage: route('cancelMessage', 'POST', '/v1/messages/{id}/cancel', {
    success: { status: 200, body: MESSAGE },
    refusals: ['message_not_scheduled'],
  }),
  readStats: route('readStats', 'GET', '/v1/stats', {
    query: STATS_QUERY,
    success: { status: 200, body: STATS },
    refusals: ['stream_not_found'],
  }),
  searchRequests: route('searchRequests', 'POST', '/v1/requests/search', {
    keys: ['S', 'A'],
    body: REQUEST_SEARCH,
    success: { status: 200, body: REQUEST_LIST },
  }),
  readRequest: route('readRequest', 'GET', '/v1/requests/{requestId}', {
    keys: ['S', 'A'],
    success: { status: 200, body: REQUEST_ENTRY },
  }),
  searchReceived: route('searchReceived', 'POST', '/v1/inbound/search', {
    body: RECEIVED_SEARCH,
    success: { status: 200, body: RECEIVED_LIST },
    refusals: ['stream_not_found'],
  }),
  readReceived: route('readReceived', 'GET', '/v1/inbound/{id}', {
    success: { status: 200, body: RECEIVED_MESSAGE },
    refusals: ['content_damaged'],
  }),
  readReceivedRaw: route('readReceivedRaw', 'GET', '/v1/inbound/{id}/raw', {
    success: { status: 200, body: null, media: 'message/rfc822' },
    refusals: ['content_expired', 'content_damaged'],
  }),
  readReceivedFile: route('readReceivedFile', 'GET', '/v1/inbound/{id}/attachments/{position}', {
    success: { status: 200, body: null, media: '*/*' },
    refusals: ['content_expired', 'content_damaged'],
  }),
  listStreams: route('listStreams', 'GET', '/v1/streams', {
    query: STREAM_QUERY,
    success: { status: 200, body: STREAM_LIST },
  }),
  createStream: route('createStream', 'POST', '/v1/streams', {
    body: STREAM_BODY,
    success: { status: 201, body: STREAM },
    refusals: ['stream_kind_not_allowed', 'stream_exists', 'inbound_stream_exists'],
  }),
  readStream: route('readStream', 'GET', '/v1/streams/{id}', { success: { status: 200, body: STREAM } }),
  patchStream: route('patchStream', 'PATCH', '/v1/streams/{id}', {
    body: STREAM_PATCH_BODY,
    success: { status: 200, body: STREAM },
    refusals: ['stream_exists'],
  }),
  archiveStream: route('archiveStream', 'POST', '/v1/streams/{id}/archive', {
    success: { status: 200, body: STREAM },
    refusals: ['default_stream'],
  }),
  createBroadcast: route('createBroadcast', 'POST', '/v1/broadcasts', {
    body: BROADCAST_BODY,
    bodyBytesMax: BROADCAST_BODY_BYTES_MAX,
    takesPieces: true,
    success: { status: 202, body: BROADCAST },
    isIdempotent: true,
    refusals: BROADCAST_REFUSALS,
  }),
  previewBroadcast: route('previewBroadcast', 'POST', '/v1/broadcasts/preview', {
    body: BROADCAST_PREVIEW_BODY,
    bodyBytesMax: BROADCAST_BODY_BYTES_MAX,
    takesPieces: true,
    success: { status: 200, body: BROADCAST_PREVIEW },
    refusals: ['stream_not_found', 'stream_kind_not_allowed', 'message_too_large'],
  }),
  listBroadcasts: route('listBroadcasts', 'GET', '/v1/broadcasts', {
    query: BROADCAST_QUERY,
    success: { status: 200, body: BROADCAST_LIST },
  }),
  readBroadcast: route('readBroadcast', 'GET', '/v1/broadcasts/{id}', { success: { status: 200, body: BROADCAST } }),
  cancelBroadcast: route('cancelBroadcast', 'POST', '/v1/broadcasts/{id}/cancel', {
    success: { status: 200, body: BROADCAST },
    refusals: ['broadcast_not_open'],
  }),
  pauseBroadcast: route('pauseBroadcast', 'POST', '/v1/broadcasts/{id}/pause', {
    success: { status: 200, body: BROADCAST },
    refusals: ['broadcast_not_open'],
  }),
  resumeBroadcast: route('resumeBroadcast', 'POST', '/v1/broadcasts/{id}/resume', {
    success: { status: 200, body: BROADCAST },
    refusals: ['broadcast_not_open'],
  }),
  listTokens: route('listTokens', 'GET', '/v1/tokens', {
    query: PAGE_QUERY,
    success: { status: 200, body: TOKEN_LIST },
  }),
  createToken: route('createToken', 'POST', '/v1/tokens', {
    body: TOKEN_BODY,
    success: { status: 201, body: TOKEN_MADE },
    refusals: ['token_limit'],
  }),
  revokeToken: route('revokeToken', 'POST', '/v1/tokens/{tokenId}/revoke', {
    success: { status: 200, body: TOKEN },
  }),
  readAccount: route('readAccount', 'GET', '/v1/account', {
    keys: ['A'],
    success: { status: 200, body: ACCOUNT },
  }),
  listAccountTokens: route('listAccountTokens', 'GET', '/v1/account/tokens', {
    keys: ['A'],
    query: PAGE_QUERY,
    success: { status: 200, body: TOKEN_LIST },
  }),
  revokeAccountToken: route('revokeAccountToken', 'POST', '/v1/account/tokens/{tokenId}/revoke', {
    keys: ['A'],
    success: { status: 200, body: TOKEN },
  }),
  listServers: route('listServers', 'GET', '/v1/servers', {
    keys: ['A'],
    query: PAGE_QUERY,
    success: { status: 200, body: SERVER_LIST },
  }),
  createServer: route('createServer', 'POST', '/v1/servers', {
    keys: ['A'],
    body: SERVER_BODY,
    success: { status: 201, body: SERVER_MADE },
    refusals: ['limit_too_high', 'server_exists', 'server_limit'],
  }),
  readAccountServer: route('readAccountServer', 'GET', '/v1/servers/{serverId}', {
    keys: ['A'],
    success: { status: 200, body: SERVER },
  }),
  patchServer: route('patchServer', 'PATCH', '/v1/servers/{serverId}', {
    keys: ['A'],
    body: SERVER_PATCH_BODY,
    success: { status: 200, body: SERVER },
    refusals: ['limit_too_high', 'server_exists'],
  }),
  deleteServer: route('deleteServer', 'DELETE', '/v1/servers/{serverId}', {
    keys: ['A'],
    success: { status: 204, body: null },
    refusals: ['server_in_use'],
  }),
  listServerTokens: route('listServerTokens', 'GET', '/v1/servers/{serverId}/tokens', {
    keys: ['A'],
    query: PAGE_QUERY,
    success: { status: 200, body: TOKEN_LIST },
  }),
  createServerToken: route('createServerToken', 'POST', '/v1/servers/{serverId}/tokens', {
    keys: ['A'],
    body: TOKEN_BODY,
    success: { status: 201, body: TOKEN_MADE },
    refusals: ['token_limit'],
  }),
  revokeServerToken: route('revokeServerToken', 'POST', '/v1/servers/{serverId}/tokens/{tokenId}/revoke', {
    keys: ['A'],
    success: { status: 200, body: TOKEN },
  }),
  listDomains: route('listDomains', 'GET', '/v1/domains', {
    keys: ['A'],
    query: PAGE_QUERY,
    success: { status: 200, body: DOMAIN_LIST },
  }),
  addDomain: route('addDomain', 'POST', '/v1/domains', {
    keys: ['A'],
    body: DOMAIN_BODY,
    success: { status: 201, body: DOMAIN },
    refusals: ['domain_not_allowed', 'domain_exists'],
  }),
  readDomain: route('readDomain', 'GET', '/v1/domains/{id}', {
    keys: ['A'],
    success: { status: 200, body: DOMAIN },
  }),
  deleteDomain: route('deleteDomain', 'DELETE', '/v1/domains/{id}', {
    keys: ['A'],
    success: { status: 204, body: null },
  }),
  rotateDkim: route('rotateDkim', 'POST', '/v1/domains/{id}/rotate-dkim', {
    keys: ['A'],
    success: { status: 200, body: DOMAIN },
  }),
  useDomainInTests: route('useDomainInTests', 'POST', '/v1/domains/{id}/test-use', {
    keys: ['A'],
    success: { status: 200, body: DOMAIN },
  }),
  verifyDomain: route('verifyDomain', 'POST', '/v1/domains/{id}/verify', {
    keys: ['A'],
    success: { status: 200, body: DOMAIN_CHECKED },
  }),
  createErasure: route('createErasure', 'POST', '/v1/erasures', {
    keys: ['A'],
    body: ERASURE_BODY,
    success: { status: 202, body: ERASURE },
  }),
  readErasure: route('readErasure', 'GET', '/v1/erasures/{id}', {
    keys: ['A'],
    success: { status: 200, body: ERASURE },
  }),
  searchSuppressions: route('searchSuppressions', 'POST', '/v1/suppressions/search', {
    body: SUPPRESSION_SEARCH,
    success: { status: 200, body: SUPPRESSION_LIST },
    refusals: ['stream_not_found'],
  }),
  addSuppressions: route('addSuppressions', 'POST', '/v1/suppressions', {
    body: SUPPRESSIONS_BODY,
    success: { status: 200, body: SUPPRESSIONS_ADDED },
    refusals: ['stream_not_found', 'stream_kind_not_allowed'],
  }),
  readSuppression: route('readSuppression', 'GET', '/v1/suppressions/{id}', {
    success: { status: 200, body: SUPPRESSION },
  }),
  liftSuppression: route('liftSuppression', 'DELETE', '/v1/suppressions/{id}', {
    success: { status: 204, body: null },
    refusals: ['suppression_not_liftable'],
  }),
  ...REPORT_ROUTES,
  ...EXPORT_ROUTES,
  ...RETENTION_ROUTES,
  ...WEBHOOK_ROUTES,
  ...OPERATOR_ROUTES,
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES
export type OperatorRouteName = keyof typeof OPERATOR_ROUTES
export type PublicRouteName = Exclude<RouteName, OperatorRouteName>

/** The kinds of key that a route takes; never: it takes none. */
export type KeysOf<Name extends RouteName> = (typeof ROUTES)[Name]['keys'][number]

/** Type of a route's body after validation; undefined if it takes none. */
export type BodyOf<Name extends RouteName> = Name extends RouteName ? Checked<(typeof ROUTES)[Name]['body']> : never

type Checked<Schema> = Schema extends typeof EMAIL_BODY
  ? EmailBody
  : Schema extends typeof BATCH_BODY
    ? BatchBody
    : Schema extends infer One extends JSONSchema
      ? FromSchema<One>
      : undefined
