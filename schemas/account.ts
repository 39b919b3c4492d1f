/**
 * account - the Account resource, and the orders of operators about accounts
 *
 * Spec account.read, account.states, operator.account, operator.note
 */

import type { FromSchema } from 'json-schema-to-ts'
import { ADMINISTRATORS_MAX, NAME_CHARS_MAX, OPERATOR_INTEGER_MAX, PAGE_MAX } from './limits.ts'
import { NOTE } from './operator/audit.ts'
import { LIMIT_ENTRY } from './server.ts'
import { INSTANT, INTEGER_OR_NULL, TEXT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

const FIGURE = { type: 'integer', minimum: 1, maximum: OPERATOR_INTEGER_MAX } as const

/** Body of POST /v1/operator/accounts. */
export const ACCOUNT_BODY = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX },
    administrators: { type: 'array', maxItems: ADMINISTRATORS_MAX, items: { type: 'string', format: 'address' } },
    note: NOTE,
  },
  required: ['name', 'administrators'],
  additionalProperties: false,
} as const

/**
 * Body of POST /v1/operator/accounts/{accountId}/approve; without `monthlyCap` the smallest of `APPROVED_CAPS` that
 * holds the volume applied for.
 */
export const ACCOUNT_APPROVE_BODY = {
  type: 'object',
  properties: { monthlyCap: FIGURE, perMinuteLimit: FIGURE, note: NOTE },
  additionalProperties: false,
} as const

/** Body of POST /v1/operator/accounts/{accountId}/pause. */
export const ACCOUNT_PAUSE_BODY = {
  type: 'object',
  properties: { hold: { type: 'boolean', default: true }, note: NOTE },
  additionalProperties: false,
} as const

/** Body of PATCH /v1/operator/accounts/{accountId}: any subset; `highestCap` null is the default multiple. */
export const ACCOUNT_PATCH_BODY = {
  type: 'object',
  properties: {
    perMinuteLimit: FIGURE,
    approvedCap: FIGURE,
    monthlyCap: FIGURE,
    highestCap: { type: ['integer', 'null'], minimum: 1, maximum: OPERATOR_INTEGER_MAX },
    serverLimit: FIGURE,
    testPerMinuteLimit: FIGURE,
    testMonthlyCap: FIGURE,
    inboundPerMinuteLimit: FIGURE,
    subscriptionActive: { type: 'boolean' },
    note: NOTE,
  },
  additionalProperties: false,
} as const

const ACCOUNT_PROPERTIES = {
  accountId: UUID,
  name: { type: 'string' },
  status: { enum: ['pending', 'active', 'paused', 'closed'] },
  createdAt: INSTANT,
  limits: { type: 'array', items: LIMIT_ENTRY },
  approvedCap: { type: 'integer' },
  monthlyCap: { type: 'integer' },
  highestCap: INTEGER_OR_NULL,
  serverLimit: { type: 'integer' },
  subscriptionActive: { type: 'boolean' },
} as const

const ACCOUNT_REQUIRED = [
  'accountId',
  'name',
  'status',
  'createdAt',
  'limits',
  'approvedCap',
  'monthlyCap',
  'highestCap',
  'serverLimit',
  'subscriptionActive',
] as const

export const ACCOUNT = {
  type: 'object',
  properties: ACCOUNT_PROPERTIES,
  required: ACCOUNT_REQUIRED,
  additionalProperties: false,
} as const

const COUNT = { type: 'integer', minimum: 0 } as const
const RATE = { type: ['number', 'null'], minimum: 0 } as const

/** The application of a pending account; null means none. */
export const ACCOUNT_APPLICATION = {
  type: ['object', 'null'],
  properties: {
    monthlyVolume: { type: 'integer' },
    purpose: { type: 'string' },
    website: TEXT_OR_NULL,
    at: INSTANT,
  },
  required: ['monthlyVolume', 'purpose', 'website', 'at'],
  additionalProperties: false,
} as const

/** An account as an operator reads it: whom to mail, and how its mail fared in the last 24 hours. */
export const ACCOUNT_DETAIL = {
  type: 'object',
  properties: {
    ...ACCOUNT_PROPERTIES,
    held: { type: 'boolean' },
    servers: COUNT,
    administrators: { type: 'array', items: { type: 'string' } },
    application: ACCOUNT_APPLICATION,
    last24Hours: {
      type: 'object',
      properties: { delivered: COUNT, bounced: COUNT, complained: COUNT, bounceRate: RATE, complaintRate: RATE },
      required: ['delivered', 'bounced', 'complained', 'bounceRate', 'complaintRate'],
      additionalProperties: false,
    },
  },
  required: [...ACCOUNT_REQUIRED, 'held', 'servers', 'administrators', 'application', 'last24Hours'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/accounts. */
export const ACCOUNT_LIST = {
  type: 'object',
  properties: { accounts: { type: 'array', maxItems: PAGE_MAX, items: ACCOUNT }, next: UUID_OR_NULL },
  required: ['accounts', 'next'],
  additionalProperties: false,
} as const

export type AccountBody = FromSchema<typeof ACCOUNT_BODY>

export type AccountApproveBody = FromSchema<typeof ACCOUNT_APPROVE_BODY>

export type AccountPauseBody = FromSchema<typeof ACCOUNT_PAUSE_BODY>

export type AccountDetail = FromSchema<typeof ACCOUNT_DETAIL>

export type AccountList = FromSchema<typeof ACCOUNT_LIST>

export type AccountPatchBody = FromSchema<typeof ACCOUNT_PATCH_BODY>

export type Account = FromSchema<typeof ACCOUNT>

export type AccountApplication = FromSchema<typeof ACCOUNT_APPLICATION>
