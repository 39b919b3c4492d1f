/**
 * server - the Server resource and its limit entries
 *
 * Spec server.read, limit.entry
 */

import type { FromSchema } from 'json-schema-to-ts'

import { NAME_CHARS_MAX } from './limits.ts'
import { INSTANT, INSTANT_OR_NULL, UUID } from './shape.ts'

export const LIMIT_ENTRY = {
  type: 'object',
  properties: {
    scope: { enum: ['account', 'server', 'test'] },
    period: { enum: ['minute', 'month'] },
    limit: { type: 'integer', minimum: 0 },
    used: { type: 'integer', minimum: 0 },
    resetsAt: INSTANT,
  },
  required: ['scope', 'period', 'limit', 'used', 'resetsAt'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/server. */
export const SERVER = {
  type: 'object',
  properties: {
    serverId: UUID,
    name: { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX },
    mode: { enum: ['live', 'test'] },
    createdAt: INSTANT,
    limits: { type: 'array', items: LIMIT_ENTRY },
    sendingDomains: {
      type: 'array',
      items: {
        type: 'object',
        properties: { domain: { type: 'string' }, failingSince: INSTANT_OR_NULL },
        required: ['domain', 'failingSince'],
        additionalProperties: false,
      },
    },
  },
  required: ['serverId', 'name', 'mode', 'createdAt', 'limits', 'sendingDomains'],
  additionalProperties: false,
} as const

export type LimitEntry = FromSchema<typeof LIMIT_ENTRY>

export type Server = FromSchema<typeof SERVER>
