/**
 * retention - for how long content and log are kept: bodies and answers of the routes that read and change it
 *
 * Spec retention.settings
 */

import type { FromSchema } from 'json-schema-to-ts'
import { SENT_CONTENT_DAYS_MAX } from '../limits.ts'
import { NOTE } from '../operator/audit.ts'

const DAYS = {
  type: ['integer', 'null'],
  minimum: 0,
  maximum: SENT_CONTENT_DAYS_MAX,
  description:
    'Days for which the text and HTML of sent mail are kept after acceptance; 0: until no delivery attempt is left; null: the value of the level above',
} as const

const EFFECTIVE_DAYS = {
  type: 'integer',
  minimum: 0,
  maximum: SENT_CONTENT_DAYS_MAX,
  description: 'Days that apply now; at most 7 on a test server',
} as const

/** Body of the PATCH of a server's and a stream's retention: any subset. */
export const CONTENT_RETENTION_BODY = {
  type: 'object',
  properties: { sentContentDays: DAYS },
  additionalProperties: false,
} as const

/** Retention of a server or a stream. */
export const CONTENT_RETENTION = {
  type: 'object',
  properties: {
    sentContentDays: DAYS,
    effective: {
      type: 'object',
      description: 'Values that apply now, inherited ones included',
      properties: { sentContentDays: EFFECTIVE_DAYS },
      required: ['sentContentDays'],
      additionalProperties: false,
    },
  },
  required: ['sentContentDays', 'effective'],
  additionalProperties: false,
} as const

/** Body of PATCH /v1/account/retention: any subset. */
export const ACCOUNT_RETENTION_BODY = CONTENT_RETENTION_BODY

/** Body of PATCH /v1/operator/accounts/{accountId}/retention: any subset. */
export const ACCOUNT_RETENTION_BODY_AS_OPERATOR = {
  type: 'object',
  properties: { ...ACCOUNT_RETENTION_BODY.properties, note: NOTE },
  additionalProperties: false,
} as const

/** Retention of an account. */
export const ACCOUNT_RETENTION = CONTENT_RETENTION

export type ContentRetention = FromSchema<typeof CONTENT_RETENTION>

export type AccountRetention = FromSchema<typeof ACCOUNT_RETENTION>
