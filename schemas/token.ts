/**
 * token - the Key resource (a token), with its value when it is made, its body and its list
 *
 * Spec key.create, key.revoke, key.list
 */

import type { FromSchema } from 'json-schema-to-ts'
import { NAME_CHARS_MAX, PAGE_MAX } from './limits.ts'
import { NOTE } from './operator/audit.ts'
import { INSTANT, INSTANT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

const NAME = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX } as const

/** Body of the routes that make a key. */
export const TOKEN_BODY = {
  type: 'object',
  properties: { name: NAME },
  required: ['name'],
  additionalProperties: false,
} as const

/** Body of the routes by which an operator makes a key. */
export const TOKEN_BODY_AS_OPERATOR = {
  type: 'object',
  properties: { name: NAME, note: NOTE },
  required: ['name'],
  additionalProperties: false,
} as const

const TOKEN_PROPERTIES = {
  tokenId: UUID,
  name: NAME,
  prefix: { type: 'string' },
  createdAt: INSTANT,
  revokedAt: INSTANT_OR_NULL,
} as const

const TOKEN_REQUIRED = ['tokenId', 'name', 'prefix', 'createdAt', 'revokedAt'] as const

/** A key as it is read. */
export const TOKEN = {
  type: 'object',
  properties: TOKEN_PROPERTIES,
  required: TOKEN_REQUIRED,
  additionalProperties: false,
} as const

/** A key in the answer of its creation, the only one with the value. */
export const TOKEN_MADE = {
  type: 'object',
  properties: { ...TOKEN_PROPERTIES, token: { type: 'string' } },
  required: [...TOKEN_REQUIRED, 'token'],
  additionalProperties: false,
} as const

/** Keys of an owner, live and revoked. */
export const TOKEN_LIST = {
  type: 'object',
  properties: { tokens: { type: 'array', maxItems: PAGE_MAX, items: TOKEN }, next: UUID_OR_NULL },
  required: ['tokens', 'next'],
  additionalProperties: false,
} as const

export type TokenBody = FromSchema<typeof TOKEN_BODY>

export type Token = FromSchema<typeof TOKEN>
