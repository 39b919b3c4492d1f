/**
 * account - the Account resource and what an operator may change of it
 *
 * Spec account.read, operator.account, operator.note
 */

import type { FromSchema } from 'json-schema-to-ts'

import { NOTE } from './audit.ts'
import { OPERATOR_INTEGER_MAX } from './limits.ts'
import { LIMIT_ENTRY } from './server.ts'
import { INSTANT, INTEGER_OR_NULL, UUID } from './shape.ts'

const FIGURE = { type: 'integer', minimum: 1, maximum: OPERATOR_INTEGER_MAX } as const

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

export const ACCOUNT = {
  type: 'object',
  properties: {
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
  },
  required: [
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
  ],
  additionalProperties: false,
} as const

export type AccountPatchBody = FromSchema<typeof ACCOUNT_PATCH_BODY>

export type Account = FromSchema<typeof ACCOUNT>
