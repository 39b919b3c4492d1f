/**
 * session - the operator's view in a browser: a session in place of the key, and a link that opens one
 *
 * Spec operator.session, operator.link
 */

import type { FromSchema } from 'json-schema-to-ts'
import { LINK_TOKEN_CHARS_MAX } from '../limits.ts'
import { INSTANT, strictObject } from '../shape.ts'
import { NOTE } from './audit.ts'

/** Answer of POST /v1/operator/session and POST /v1/operator/session/link, the only ones with the token. */
export const OPERATOR_SESSION = strictObject({
  token: { type: 'string', examples: ['os_00Zr8KqX_3n7PqLwY0sVb2TfUe9RkXcHd5MjGaZi1Q4oCw'] },
  expiresAt: INSTANT,
})

/** Body of POST /v1/operator/session/link. */
export const DESK_LINK_BODY = {
  type: 'object',
  properties: { token: { type: 'string', minLength: 1, maxLength: LINK_TOKEN_CHARS_MAX }, note: NOTE },
  required: ['token'],
  additionalProperties: false,
} as const

export type OperatorSession = FromSchema<typeof OPERATOR_SESSION>
