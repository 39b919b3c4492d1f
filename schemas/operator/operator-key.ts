/**
 * operator-key - the keys of the operators, each with its name, its role and its last use
 *
 * Spec key.create, key.revoke, key.list, operator.audit
 */

import type { FromSchema } from 'json-schema-to-ts'
import { NAME_CHARS_MAX, PAGE_MAX } from '../limits.ts'
import { INSTANT_OR_NULL, UUID_OR_NULL } from '../shape.ts'
import { TOKEN } from '../token.ts'
import { NOTE } from './audit.ts'
import { OPERATOR_ROLES } from './role.ts'

const ROLE = {
  enum: OPERATOR_ROLES,
  description:
    '`readOnly` reads; `support` also retries mail, lifts suppressions, reveals messages and searches recipients; `admin` does all',
} as const

/** Body of POST /v1/operator/tokens. */
export const OPERATOR_KEY_BODY = {
  type: 'object',
  properties: { name: { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX }, role: ROLE, note: NOTE },
  required: ['name', 'role'],
  additionalProperties: false,
} as const

const PROPERTIES = {
  ...TOKEN.properties,
  role: ROLE,
  lastUsedAt: { ...INSTANT_OR_NULL, description: 'Time of its last request, to the hour; null: none is recorded' },
} as const
const REQUIRED = [...TOKEN.required, 'role', 'lastUsedAt'] as const

/** An operator's key as it is read. */
export const OPERATOR_KEY = {
  type: 'object',
  properties: PROPERTIES,
  required: REQUIRED,
  additionalProperties: false,
} as const

/** Response to its creation, the only one that contains the value. */
export const OPERATOR_KEY_MADE = {
  type: 'object',
  properties: { ...PROPERTIES, token: { type: 'string' } },
  required: [...REQUIRED, 'token'],
  additionalProperties: false,
} as const

/** Response of GET /v1/operator/tokens: active and revoked keys, newest first. */
export const OPERATOR_KEY_LIST = {
  type: 'object',
  properties: { tokens: { type: 'array', maxItems: PAGE_MAX, items: OPERATOR_KEY }, next: UUID_OR_NULL },
  required: ['tokens', 'next'],
  additionalProperties: false,
} as const

export type OperatorKeyBody = FromSchema<typeof OPERATOR_KEY_BODY>
export type OperatorKeyResource = FromSchema<typeof OPERATOR_KEY>
