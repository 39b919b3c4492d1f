/**
 * refusals - every code a client may be refused with, in the order in which the reasons are looked at
 *
 * One table: where two reasons hold at once, the earlier row answers. The plain-text 429 and 413 of the edge come
 * before the first row. `fields` are the schemas of the body's fields apart from `error` and `message`.
 *
 * Spec refusal.order, error.body
 */

import { OPERATOR_ROLES } from './operator/role.ts'
import { INSTANT, UUID } from './shape.ts'

/** One row, with the meaning of a code in an answer. */
export interface RefusalRow {
  readonly code: string
  readonly status: number
  /** Extra fields of the body, each required unless named in `optional`. */
  readonly fields: Readonly<Record<string, object>>
  /** Extra fields that may be absent. */
  readonly optional: readonly string[]
  /** The default sentence for people. */
  readonly message: string
}

const COUNT = { type: 'integer', minimum: 0 } as const
const TEXT = { type: 'string' } as const
/** Only for a batch, the index of the message. Spec batch.answer */
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
  return { code, status, message, fields, optional } satisfies RefusalRow
}

export const REFUSALS = [
  row('unauthorized', 401, 'API key missing, malformed, unknown or revoked'),
  row('method_not_allowed', 405, 'Method not allowed on this path: see the Allow header'),
  row('wrong_token_kind', 403, 'This kind of key cannot be used for this operation'),
  row('role_not_allowed', 403, "The role of this operator's key does not include this operation", {
    role: { enum: OPERATOR_ROLES },
    required: { enum: OPERATOR_ROLES },
  }),
  row('unsupported_media_type', 415, 'Body must be application/json without a Content-Encoding'),
  row('invalid_request', 400, 'Request does not match the route', { issues: ISSUES }, ['issues']),
  row('idempotency_key_reused', 422, 'This Idempotency-Key was already used with a different request: use a new key'),
  row('payment_required', 402, 'The account has no active subscription'),
  row('account_not_active', 403, 'The account is closed or not approved yet'),
  row('account_paused', 403, 'Account is paused'),
  row('not_found', 404, 'Not found'),
  row('content_expired', 410, 'The content is no longer stored: its retention period has ended'),
  row('stream_not_found', 422, 'The server has no such stream', AT, ['index']),
  row('stream_kind_not_allowed', 422, 'This kind of stream cannot be used here', AT, ['index']),
  row(
    'domain_not_verified',
    422,
    'The domain of the from address is not a verified sending domain',
    { domain: TEXT, ...AT },
    ['index'],
  ),
  row('message_too_large', 422, 'The message is too large once built', { sizeBytes: COUNT, max: COUNT, ...AT }, [
    'index',
  ]),
  row('broadcast_too_large', 422, 'The broadcast is too large once built', { sizeBytes: COUNT, max: COUNT }),
  row('limit_too_high', 422, 'The limit is higher than the account allows', { max: COUNT }),
  row('domain_not_allowed', 422, 'This domain cannot be used as a sending domain', { domain: TEXT }),
  row('stream_archived', 409, 'Stream is archived', { streamId: UUID, ...AT }, ['index']),
  row('stream_paused', 409, 'Stream is paused', { streamId: UUID, pausedAt: INSTANT, ...AT }, ['index']),
  row('message_not_scheduled', 409, 'Message is not scheduled: an attempt has begun, or it was sent without sendAt'),
  row('webhook_exists', 409, 'This server already has a webhook with this URL', { webhookId: UUID }),
  row('secret_limit', 409, 'The webhook already has 2 signing secrets: delete one first', { max: COUNT }),
  row('last_secret', 409, 'The last signing secret of a webhook cannot be deleted: create a new one first'),
  row('webhook_disabled', 409, 'The webhook is disabled: enable it first'),
  row('suppression_not_liftable', 409, 'Only the operator can remove this suppression', { reason: TEXT }),
  row('stream_exists', 409, 'A stream with this name already exists', { streamId: UUID }),
  row('inbound_stream_exists', 409, 'The server already has an active inbound stream', { streamId: UUID }),
  row('token_limit', 409, 'There are already 2 active keys: revoke one first', { max: COUNT }),
  row('last_operator_key', 409, 'This is the last active admin key: create another one first'),
  row('rotation_in_progress', 409, 'The secret is being rotated: wait until that is done'),
  row(
    'secret_not_set',
    409,
    'No new secret is set: set SECRET_KEY to it and SECRET_KEY_PREVIOUS to the present one first',
  ),
  row('broadcast_not_open', 409, 'The broadcast is already completed or cancelled'),
  row('default_stream', 409, 'The default stream cannot be archived'),
  row('server_exists', 409, 'A server with this name already exists', { serverId: UUID }),
  row('domain_exists', 409, 'This domain already exists in the account', { domainId: UUID }),
  row('server_limit', 409, 'The account has reached its maximum number of servers', { max: COUNT }),
  row('link_not_valid', 410, 'This link is invalid, expired or already used'),
  row('feed_limit', 409, 'The maximum number of event feeds is open: close one first', { max: COUNT }),
  row('export_limit', 409, 'The maximum number of exports is running: wait until one ends', { max: COUNT }),
  row('server_in_use', 409, 'The server has an unfinished broadcast. Wait until it ends, or cancel it'),
  row('account_not_pending', 409, 'Account is not pending'),
  row('account_closed', 409, 'Account is closed'),
  row('rate_limited', 429, 'Per-minute limit reached', { ...LIMIT_FIELDS, period: { const: 'minute' } }),
  row('cap_reached', 429, 'Monthly cap reached', { ...LIMIT_FIELDS, period: { const: 'month' } }),
  row('scheduled_limit', 429, 'Server has the maximum number of scheduled recipients', { max: COUNT, ...AT }, [
    'index',
  ]),
  row('internal_error', 500, 'Internal error: quote the Request-Id to support'),
  row('data_damaged', 503, 'Stored data of this request is damaged: restore the store from a backup'),
  row('content_damaged', 503, 'The stored content is damaged or missing: restore the content store from a backup'),
  row('unavailable', 503, 'Service unavailable: nothing was accepted, try again'),
] as const

/** Codes that the dashboard uses too; its own codes are in no document of the interface. */
export const DASHBOARD_REFUSALS = [
  row('sign_in_failed', 401, 'Address, password or code is wrong'),
  row('cross_origin', 403, 'Only pages of the dashboard can send this request'),
  row('insecure_address', 403, 'Sign-in requires HTTPS or a loopback address: set BASE_URL to an https address'),
  row('role_not_allowed', 403, 'Your role in this account does not allow this'),
  row('confirmation_required', 403, 'Confirm with your password, a code or a passkey first'),
  row('last_administrator', 409, 'An account needs at least one administrator'),
  row('member_exists', 409, 'Already a member of the account', { userId: UUID }),
  row('member_limit', 409, 'The account has reached its maximum number of members or invitations', { max: COUNT }),
  row('account_limit', 409, 'You belong to the maximum number of accounts: leave one first', { max: COUNT }),
  row('second_factor_required', 409, 'This account requires a second factor: set one up first'),
  row('passkey_limit', 409, 'You have the maximum number of passkeys: delete one first', { max: COUNT }),
  row('content_hidden', 403, 'The dashboard does not show message content for this account'),
  row('too_many_tries', 429, 'Too many attempts: wait until resetsAt', { resetsAt: INSTANT }),
] as const

export type RefusalCode = (typeof REFUSALS)[number]['code'] | (typeof DASHBOARD_REFUSALS)[number]['code']
