/**
 * suppression - the entries of a stream's suppression list: their shape, the search for them, and how they are added
 *
 * Spec suppression.entry, suppression.search, suppression.add, suppression.lift
 */

import type { FromSchema } from 'json-schema-to-ts'

import { SUPPRESSIONS_ADDED_MAX, SUPPRESSIONS_PAGE_DEFAULT, SUPPRESSIONS_PAGE_MAX } from './limits.ts'
import { INSTANT, INTEGER_OR_NULL, TEXT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

/** From the lightest to the worst. */
export const SUPPRESSION_REASONS = ['manual', 'hard_bounce', 'unsubscribe', 'spam_complaint'] as const

export const SUPPRESSION = {
  type: 'object',
  properties: {
    suppressionId: UUID,
    streamId: UUID,
    recipient: { type: 'string' },
    reason: { enum: SUPPRESSION_REASONS },
    messageId: UUID_OR_NULL,
    code: INTEGER_OR_NULL,
    response: TEXT_OR_NULL,
    liftable: { type: 'boolean' },
    createdAt: INSTANT,
  },
  required: [
    'suppressionId',
    'streamId',
    'recipient',
    'reason',
    'messageId',
    'code',
    'response',
    'liftable',
    'createdAt',
  ],
  additionalProperties: false,
} as const

/** Answer of the searches. */
export const SUPPRESSION_LIST = {
  type: 'object',
  properties: {
    suppressions: { type: 'array', maxItems: SUPPRESSIONS_PAGE_MAX, items: SUPPRESSION },
    next: UUID_OR_NULL,
  },
  required: ['suppressions', 'next'],
  additionalProperties: false,
} as const

const FILTERS = {
  streamId: UUID,
  recipient: { type: 'string', format: 'address' },
  reason: { enum: SUPPRESSION_REASONS },
  createdFrom: INSTANT,
  createdTo: INSTANT,
  limit: { type: 'integer', minimum: 1, maximum: SUPPRESSIONS_PAGE_MAX, default: SUPPRESSIONS_PAGE_DEFAULT },
  after: UUID,
} as const

/** Body of POST /v1/suppressions/search. */
export const SUPPRESSION_SEARCH = {
  type: 'object',
  properties: FILTERS,
  required: [],
  additionalProperties: false,
} as const

/** Body of POST /v1/operator/suppressions/search. */
export const SUPPRESSION_SEARCH_OF_SERVER = {
  type: 'object',
  properties: { serverId: UUID, ...FILTERS },
  required: ['serverId'],
  additionalProperties: false,
} as const

/** Body of POST /v1/suppressions. */
export const SUPPRESSIONS_BODY = {
  type: 'object',
  properties: {
    streamId: UUID,
    recipients: {
      type: 'array',
      minItems: 1,
      maxItems: SUPPRESSIONS_ADDED_MAX,
      items: { type: 'string', format: 'address' },
    },
    reason: {
      enum: SUPPRESSION_REASONS,
      default: 'manual',
      description:
        'Why the addresses are suppressed; an entry keeps the worse reason. Only the operator can lift the last two',
    },
  },
  required: ['streamId', 'recipients'],
  additionalProperties: false,
} as const

/** Answer of POST /v1/suppressions. */
export const SUPPRESSIONS_ADDED = {
  type: 'object',
  properties: { added: { type: 'integer', minimum: 0 }, existing: { type: 'integer', minimum: 0 } },
  required: ['added', 'existing'],
  additionalProperties: false,
} as const

export type SuppressionEntry = FromSchema<typeof SUPPRESSION>

export type SuppressionSearch = FromSchema<typeof SUPPRESSION_SEARCH>

export type SuppressionsBody = FromSchema<typeof SUPPRESSIONS_BODY>
