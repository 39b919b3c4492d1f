/**
 * server - the Server resource and its limit entries, the bodies that create and change one, its list
 *
 * Spec server.read, server.create, server.change, server.list, limit.entry
 */

import type { FromSchema } from 'json-schema-to-ts'
import { NAME_CHARS_MAX, OPERATOR_INTEGER_MAX, PAGE_MAX } from './limits.ts'
import { NOTE } from './operator/audit.ts'
import { INSTANT, INSTANT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'
import { TOKEN_MADE } from './token.ts'

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

const NAME = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX } as const
const LIMIT_OR_NULL = { type: ['integer', 'null'], minimum: 1, maximum: OPERATOR_INTEGER_MAX } as const

/** Spec submission.reports */
const BOUNCE_MAIL = {
  type: 'boolean',
  description: 'Whether senders over SMTP get reports by mail; needs `SUBMISSION_DSN=on`',
} as const

const BODY_PROPERTIES = {
  name: NAME,
  mode: { enum: ['live', 'test'] },
  perMinuteLimit: { ...LIMIT_OR_NULL, default: null },
  monthlyCap: { ...LIMIT_OR_NULL, default: null },
} as const

/** Body of POST /v1/servers. */
export const SERVER_BODY = {
  type: 'object',
  properties: BODY_PROPERTIES,
  required: ['name', 'mode'],
  additionalProperties: false,
} as const

/** Body of POST /v1/operator/accounts/{accountId}/servers. */
export const SERVER_BODY_AS_OPERATOR = {
  type: 'object',
  properties: { ...BODY_PROPERTIES, note: NOTE },
  required: ['name', 'mode'],
  additionalProperties: false,
} as const

/** Body of PATCH /v1/servers/{serverId}: any subset; null takes a limit away. */
export const SERVER_PATCH_BODY = {
  type: 'object',
  properties: { name: NAME, perMinuteLimit: LIMIT_OR_NULL, monthlyCap: LIMIT_OR_NULL, bounceMail: BOUNCE_MAIL },
  additionalProperties: false,
} as const

const SERVER_PROPERTIES = {
  serverId: UUID,
  name: NAME,
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
  bounceMail: BOUNCE_MAIL,
} as const

const SERVER_REQUIRED = ['serverId', 'name', 'mode', 'createdAt', 'limits', 'sendingDomains', 'bounceMail'] as const

/** Answer of GET /v1/server and of every route that reads or changes one. */
export const SERVER = {
  type: 'object',
  properties: SERVER_PROPERTIES,
  required: SERVER_REQUIRED,
  additionalProperties: false,
} as const

/** A server in the answer of its creation, with its first key, whose value is in no other answer. */
export const SERVER_MADE = {
  type: 'object',
  properties: { ...SERVER_PROPERTIES, key: TOKEN_MADE },
  required: [...SERVER_REQUIRED, 'key'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/servers. */
export const SERVER_LIST = {
  type: 'object',
  properties: { servers: { type: 'array', maxItems: PAGE_MAX, items: SERVER }, next: UUID_OR_NULL },
  required: ['servers', 'next'],
  additionalProperties: false,
} as const

export type ServerBody = FromSchema<typeof SERVER_BODY>

export type ServerPatchBody = FromSchema<typeof SERVER_PATCH_BODY>

export type ServerList = FromSchema<typeof SERVER_LIST>

export type LimitEntry = FromSchema<typeof LIMIT_ENTRY>

export type Server = FromSchema<typeof SERVER>
