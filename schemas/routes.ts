/**
 * routes - every route of the service as data: who may call it, what it takes, what it answers
 *
 * The edge registers them, tests walk them, documents are made of them. Key kinds: S server key, A account key,
 * O operator key; no kind at all means that the route takes no key.
 *
 * Spec route.table, refusal.order
 */

import { ACCOUNT, ACCOUNT_PATCH_BODY } from './account.ts'
import { AUDIT_LIST, NOTE_BODY } from './audit.ts'
import { DOMAIN, DOMAIN_BODY, DOMAIN_CHECKED, DOMAIN_LIST, PAGE_QUERY } from './domain.ts'
import { BATCH_ANSWER, BATCH_BODY, EMAIL_ANSWER, EMAIL_BODY } from './email.ts'
import { HEALTH } from './health.ts'
import { BODY_BYTES_MAX } from './limits.ts'
import { MESSAGE } from './message.ts'
import { QUEUE, QUEUE_BODY, QUEUE_ORDERED, QUEUE_QUERY } from './queue.ts'
import { SERVER } from './server.ts'
import {
  OPERATED_STREAM,
  STREAM,
  STREAM_BODY,
  STREAM_LIST,
  STREAM_PACE_BODY,
  STREAM_PATCH_BODY,
  STREAM_QUERY,
} from './stream.ts'
import {
  SUPPRESSION,
  SUPPRESSION_LIST,
  SUPPRESSION_SEARCH,
  SUPPRESSION_SEARCH_OF_SERVER,
  SUPPRESSIONS_ADDED,
  SUPPRESSIONS_BODY,
} from './suppression.ts'
import { TOKEN, TOKEN_BODY, TOKEN_LIST, TOKEN_MADE } from './token.ts'

export type KeyKind = 'S' | 'A' | 'O'

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/** One route. */
export interface Route {
  /** Short name, for logs and handlers. */
  readonly name: string
  /** Which listener serves it. */
  readonly listener: 'public' | 'operator'
  readonly method: Method
  /** Path with `{parameter}` segments. */
  readonly path: string
  /** Kinds of key it takes; empty: none needed. */
  readonly keys: readonly KeyKind[]
  /** Schema of the body; null: any body is ignored. */
  readonly body: object | null
  /** Schema of the query; null: no parameter is known. */
  readonly query: object | null
  /** Status of success, and the schema of that answer (null: no JSON body). */
  readonly success: { readonly status: number; readonly body: object | null }
  readonly bodyBytesMax: number
  /** True where Idempotency-Key is honoured. */
  readonly isIdempotent: boolean
}

type Rest = Partial<Pick<Route, 'listener' | 'keys' | 'body' | 'query' | 'isIdempotent'>> & Pick<Route, 'success'>

function route(name: string, method: Method, path: string, rest: Rest): Route {
  return {
    name,
    method,
    path,
    listener: 'public',
    keys: ['S'],
    body: null,
    query: null,
    bodyBytesMax: BODY_BYTES_MAX,
    isIdempotent: false,
    ...rest,
  }
}

function queueOrder(name: string, order: string): Route {
  return route(name, 'POST', `/v1/operator/queue/${order}`, {
    listener: 'operator',
    keys: ['O'],
    body: QUEUE_BODY,
    success: { status: 200, body: QUEUE_ORDERED },
  })
}

const PLAIN = { status: 200, body: null }

export const ROUTES = {
  sendEmail: route('sendEmail', 'POST', '/v1/email', {
    body: EMAIL_BODY,
    success: { status: 200, body: EMAIL_ANSWER },
    isIdempotent: true,
  }),
  sendBatch: route('sendBatch', 'POST', '/v1/email/batch', {
    body: BATCH_BODY,
    success: { status: 200, body: BATCH_ANSWER },
    isIdempotent: true,
  }),
  readServer: route('readServer', 'GET', '/v1/server', { success: { status: 200, body: SERVER } }),
  readMessage: route('readMessage', 'GET', '/v1/messages/{id}', { success: { status: 200, body: MESSAGE } }),
  listStreams: route('listStreams', 'GET', '/v1/streams', {
    query: STREAM_QUERY,
    success: { status: 200, body: STREAM_LIST },
  }),
  createStream: route('createStream', 'POST', '/v1/streams', {
    body: STREAM_BODY,
    success: { status: 201, body: STREAM },
  }),
  readStream: route('readStream', 'GET', '/v1/streams/{id}', { success: { status: 200, body: STREAM } }),
  patchStream: route('patchStream', 'PATCH', '/v1/streams/{id}', {
    body: STREAM_PATCH_BODY,
    success: { status: 200, body: STREAM },
  }),
  archiveStream: route('archiveStream', 'POST', '/v1/streams/{id}/archive', { success: { status: 200, body: STREAM } }),
  listTokens: route('listTokens', 'GET', '/v1/tokens', {
    query: PAGE_QUERY,
    success: { status: 200, body: TOKEN_LIST },
  }),
  createToken: route('createToken', 'POST', '/v1/tokens', {
    body: TOKEN_BODY,
    success: { status: 201, body: TOKEN_MADE },
  }),
  revokeToken: route('revokeToken', 'POST', '/v1/tokens/{tokenId}/revoke', { success: { status: 200, body: TOKEN } }),
  listDomains: route('listDomains', 'GET', '/v1/domains', {
    keys: ['A'],
    query: PAGE_QUERY,
    success: { status: 200, body: DOMAIN_LIST },
  }),
  addDomain: route('addDomain', 'POST', '/v1/domains', {
    keys: ['A'],
    body: DOMAIN_BODY,
    success: { status: 201, body: DOMAIN },
  }),
  readDomain: route('readDomain', 'GET', '/v1/domains/{id}', {
    keys: ['A'],
    success: { status: 200, body: DOMAIN },
  }),
  deleteDomain: route('deleteDomain', 'DELETE', '/v1/domains/{id}', {
    keys: ['A'],
    success: { status: 204, body: null },
  }),
  verifyDomain: route('verifyDomain', 'POST', '/v1/domains/{id}/verify', {
    keys: ['A'],
    success: { status: 200, body: DOMAIN_CHECKED },
  }),
  searchSuppressions: route('searchSuppressions', 'POST', '/v1/suppressions/search', {
    body: SUPPRESSION_SEARCH,
    success: { status: 200, body: SUPPRESSION_LIST },
  }),
  addSuppressions: route('addSuppressions', 'POST', '/v1/suppressions', {
    body: SUPPRESSIONS_BODY,
    success: { status: 200, body: SUPPRESSIONS_ADDED },
  }),
  readSuppression: route('readSuppression', 'GET', '/v1/suppressions/{id}', {
    success: { status: 200, body: SUPPRESSION },
  }),
  liftSuppression: route('liftSuppression', 'DELETE', '/v1/suppressions/{id}', {
    success: { status: 204, body: null },
  }),
  operatorSearchSuppressions: route('operatorSearchSuppressions', 'POST', '/v1/operator/suppressions/search', {
    listener: 'operator',
    keys: ['O'],
    body: SUPPRESSION_SEARCH_OF_SERVER,
    success: { status: 200, body: SUPPRESSION_LIST },
  }),
  operatorLiftSuppression: route('operatorLiftSuppression', 'DELETE', '/v1/operator/suppressions/{suppressionId}', {
    listener: 'operator',
    keys: ['O'],
    body: NOTE_BODY,
    success: { status: 204, body: null },
  }),
  readHealth: route('readHealth', 'GET', '/healthz', { listener: 'operator', keys: [], success: PLAIN }),
  readReadiness: route('readReadiness', 'GET', '/readyz', { listener: 'operator', keys: [], success: PLAIN }),
  readMetrics: route('readMetrics', 'GET', '/metrics', { listener: 'operator', keys: [], success: PLAIN }),
  examineHealth: route('examineHealth', 'GET', '/v1/operator/health', {
    listener: 'operator',
    keys: ['O'],
    success: { status: 200, body: HEALTH },
  }),
  patchAccount: route('patchAccount', 'PATCH', '/v1/operator/accounts/{accountId}', {
    listener: 'operator',
    keys: ['O'],
    body: ACCOUNT_PATCH_BODY,
    success: { status: 200, body: ACCOUNT },
  }),
  readAudit: route('readAudit', 'GET', '/v1/operator/audit', {
    listener: 'operator',
    keys: ['O'],
    query: PAGE_QUERY,
    success: { status: 200, body: AUDIT_LIST },
  }),
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
  listQueue: route('listQueue', 'GET', '/v1/operator/queue', {
    listener: 'operator',
    keys: ['O'],
    query: QUEUE_QUERY,
    success: { status: 200, body: QUEUE },
  }),
  retryQueue: queueOrder('retryQueue', 'retry'),
  holdQueue: queueOrder('holdQueue', 'hold'),
  releaseQueue: queueOrder('releaseQueue', 'release'),
  dropQueue: queueOrder('dropQueue', 'drop'),
} as const satisfies Record<string, Route>

export type RouteName = keyof typeof ROUTES
