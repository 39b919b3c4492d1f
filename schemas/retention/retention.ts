/**
 * retention - for how long content and log are kept: bodies and answers of the routes that read and change it
 *
 * Spec retention.settings
 */

import type { FromSchema } from 'json-schema-to-ts'
import { LOG_RETENTION_MONTHS_MAX, LOG_RETENTION_MONTHS_MIN, SENT_CONTENT_DAYS_MAX } from '../limits.ts'
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

const MONTHS = {
  type: ['integer', 'null'],
  minimum: LOG_RETENTION_MONTHS_MIN,
  maximum: LOG_RETENTION_MONTHS_MAX,
  description:
    'Months for which messages, their recipients and events are kept, at least 31 days; the shorter of account and installation applies; null: the value of the level above',
} as const

const EFFECTIVE_MONTHS = {
  type: 'integer',
  minimum: LOG_RETENTION_MONTHS_MIN,
  maximum: LOG_RETENTION_MONTHS_MAX,
  description: 'Months that apply now; test servers keep 30 days in any case',
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
export const ACCOUNT_RETENTION_BODY = {
  type: 'object',
  properties: { sentContentDays: DAYS, logRetentionMonths: MONTHS },
  additionalProperties: false,
} as const

/** Body of PATCH /v1/operator/accounts/{accountId}/retention: any subset. */
export const ACCOUNT_RETENTION_BODY_AS_OPERATOR = {
  type: 'object',
  properties: { ...ACCOUNT_RETENTION_BODY.properties, note: NOTE },
  additionalProperties: false,
} as const

/** Retention of an account. */
export const ACCOUNT_RETENTION = {
  type: 'object',
  properties: {
    sentContentDays: DAYS,
    logRetentionMonths: MONTHS,
    effective: {
      type: 'object',
      description: 'Values that apply now, inherited ones included',
      properties: { sentContentDays: EFFECTIVE_DAYS, logRetentionMonths: EFFECTIVE_MONTHS },
      required: ['sentContentDays', 'logRetentionMonths'],
      additionalProperties: false,
    },
  },
  required: ['sentContentDays', 'logRetentionMonths', 'effective'],
  additionalProperties: false,
} as const

/** Body of PATCH /v1/operator/retention. */
export const INSTALLATION_RETENTION_BODY = {
  type: 'object',
  properties: { logRetentionMonths: MONTHS, note: NOTE },
  additionalProperties: false,
} as const

/** Retention of the installation. */
export const INSTALLATION_RETENTION = {
  type: 'object',
  properties: {
    logRetentionMonths: MONTHS,
    effective: {
      type: 'object',
      description: 'Values that apply now, for accounts that set none',
      properties: { logRetentionMonths: EFFECTIVE_MONTHS },
      required: ['logRetentionMonths'],
      additionalProperties: false,
    },
  },
  required: ['logRetentionMonths', 'effective'],
  additionalProperties: false,
} as const

export type ContentRetention = FromSchema<typeof CONTENT_RETENTION>

export type AccountRetention = FromSchema<typeof ACCOUNT_RETENTION>

export type InstallationRetention = FromSchema<typeof INSTALLATION_RETENTION>
