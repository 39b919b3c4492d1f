/**
 * refusals - every code a client may be refused with, in the order in which the reasons are looked at
 *
 * One table: where two reasons hold at once, the earlier row answers. The plain-text 429 and 413 of the edge come
 * before the first row. `fields` are the schemas of what the body holds beside `error` and `message`.
 *
 * Spec refusal.order, error.body
 */

import { INSTANT, UUID } from './shape.ts'

/** One row: what a code means on the wire. */
export interface Refusal {
  readonly code: string
  readonly status: number
  /** Extra fields of the body, each required unless named in `optional`. */
  readonly fields: Readonly<Record<string, object>>
  /** Extra fields that may be absent. */
  readonly optional: readonly string[]
  /** The sentence for a person where none is given. */
  readonly message: string
}

const COUNT = { type: 'integer', minimum: 0 } as const
const TEXT = { type: 'string' } as const
/** Of a batch alone: which message. Spec batch.answer */
const AT = { index: COUNT } as const
const LIMIT_FIELDS = {
  scope: { enum: ['account', 'server', 'test'] },
  limit: COUNT,
  used: COUNT,
  requested: COUNT,
  resetsAt: INSTANT,
} as const
const ISSUES = {
  type: 'array',
  minItems: 1,
  maxItems: 100,
  items: {
    type: 'object',
    properties: { path: TEXT, message: { type: 'string', minLength: 1 } },
    required: ['path', 'message'],
    additionalProperties: false,
  },
} as const

function row<Code extends string>(
  code: Code,
  status: number,
  message: string,
  fields: Record<string, object> = {},
  optional: readonly string[] = [],
) {
  return { code, status, message, fields, optional } satisfies Refusal
}

export const REFUSALS = [
  row('unauthorized', 401, 'API key missing, malformed or revoked'),
  row('method_not_allowed', 405, 'Method not allowed on this path: see the Allow header'),
  row('wrong_token_kind', 403, 'Wrong kind of key for this operation'),
  row('unsupported_media_type', 415, 'Body must be application/json without a Content-Encoding'),
  row('invalid_request', 400, 'Request does not match the route', { issues: ISSUES }, ['issues']),
  row('idempotency_key_reused', 422, 'Idempotency-Key was already used with a different request'),
  row('payment_required', 402, 'Account has no active subscription'),
  row('account_not_active', 403, 'Account is closed or not yet approved'),
  row('account_paused', 403, 'Account is paused'),
  row('not_found', 404, 'Not found'),
  row('content_expired', 410, 'Content is past its retention'),
  row('stream_not_found', 422, 'No such stream on this server', AT, ['index']),
  row('stream_kind_not_allowed', 422, 'Kind of stream not allowed here', AT, ['index']),
  row(
    'domain_not_verified',
    422,
    'Domain of the from address is not a verified sending domain',
    { domain: TEXT, ...AT },
    ['index'],
  ),
  row('message_too_large', 422, 'Message is too large as built', { sizeBytes: COUNT, max: COUNT, ...AT }, ['index']),
  row('broadcast_too_large', 422, 'Broadcast is too large as built', { sizeBytes: COUNT, max: COUNT }),
  row('limit_too_high', 422, 'Limit is higher than allowed', { max: COUNT }),
  row('domain_not_allowed', 422, 'Domain cannot be added as a sending domain', { domain: TEXT }),
  row('stream_archived', 409, 'Stream is archived', { streamId: UUID, ...AT }, ['index']),
  row('stream_paused', 409, 'Stream is paused', { streamId: UUID, pausedAt: INSTANT, ...AT }, ['index']),
  row('message_not_scheduled', 409, 'Message is not scheduled: an attempt has begun, or it was sent without sendAt'),
  row('webhook_exists', 409, 'Webhook exists already', { webhookId: UUID }),
  row('secret_limit', 409, 'Webhook holds all the secrets it may', { max: COUNT }),
  row('last_secret', 409, 'Last secret of a webhook cannot be deleted'),
  row('webhook_disabled', 409, 'Webhook is disabled'),
  row('suppression_not_liftable', 409, 'Only support lifts this suppression', { reason: TEXT }),
  row('stream_exists', 409, 'Stream of that name exists already', { streamId: UUID }),
  row('inbound_stream_exists', 409, 'Live inbound stream exists already', { streamId: UUID }),
  row('token_limit', 409, 'Owner holds all the live keys it may', { max: COUNT }),
  row('broadcast_not_open', 409, 'Broadcast is completed or cancelled'),
  row('default_stream', 409, 'Default stream cannot be archived'),
  row('server_exists', 409, 'Server of that name exists already', { serverId: UUID }),
  row('domain_exists', 409, 'Domain exists already in this account', { domainId: UUID }),
  row('server_limit', 409, 'Account holds all the servers it may', { max: COUNT }),
  row('link_not_valid', 410, 'This link was used, has expired, or never was one'),
  row('feed_limit', 409, 'As many feeds of events are open as may be', { max: COUNT }),
  row('server_in_use', 409, 'Server has an open broadcast'),
  row('account_not_pending', 409, 'Account is not pending'),
  row('account_closed', 409, 'Account is closed'),
  row('rate_limited', 429, 'Per-minute limit reached', { ...LIMIT_FIELDS, period: { const: 'minute' } }),
  row('cap_reached', 429, 'Monthly cap reached', { ...LIMIT_FIELDS, period: { const: 'month' } }),
  row('scheduled_limit', 429, 'Server has the maximum number of scheduled recipients', { max: COUNT, ...AT }, [
    'index',
  ]),
  row('internal_error', 500, 'Internal error: quote the Request-Id to support'),
  row('unavailable', 503, 'Service unavailable: nothing was accepted, try again'),
] as const

/** What the dashboard refuses with besides; its own codes are in no document of the interface. */
export const DASHBOARD_REFUSALS = [
  row('sign_in_failed', 401, 'Address, password or code is wrong'),
  row('cross_origin', 403, 'This request may only come from a page of the dashboard itself'),
  row('insecure_address', 403, 'Signing in takes HTTPS, or the loopback: set BASE_URL to an https address'),
  row('role_not_allowed', 403, 'Your role in this account does not allow this'),
  row('confirmation_required', 403, 'Confirm with your password, a code or a passkey first'),
  row('last_administrator', 409, 'An account keeps at least one administrator'),
  row('member_exists', 409, 'Already a member of this account', { userId: UUID }),
  row('member_limit', 409, 'Account has all the members or invitations it may', { max: COUNT }),
  row('account_limit', 409, 'You are in as many accounts as one person may be: leave one first', { max: COUNT }),
  row('second_factor_required', 409, 'This account takes a second factor: set one up first'),
  row('passkey_limit', 409, 'You have all the passkeys you may', { max: COUNT }),
  row('content_hidden', 403, 'This account shows no content in the dashboard'),
  row('too_many_tries', 429, 'Too many tries: wait until resetsAt', { resetsAt: INSTANT }),
] as const

export type RefusalCode = (typeof REFUSALS)[number]['code'] | (typeof DASHBOARD_REFUSALS)[number]['code']
