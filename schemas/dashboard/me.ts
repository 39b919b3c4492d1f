/**
 * me - a user's own: name, password, sessions
 *
 * Spec session.list
 */

import type { FromSchema } from 'json-schema-to-ts'
import { NAME_CHARS_MAX, USER_SESSIONS_MAX } from '../limits.ts'
import { INSTANT, objectOf, TEXT_OR_NULL, UUID } from '../shape.ts'
import { NEW_PASSWORD, TRIED_PASSWORD } from './session.ts'

const USER_NAME = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX } as const

/** Answer of GET and PATCH /dashboard/api/me. */
export const ME = objectOf({
  userId: UUID,
  address: { type: 'string' },
  name: { type: 'string' },
  createdAt: INSTANT,
  hasPassword: { type: 'boolean' },
})

/** Body of PATCH /dashboard/api/me. */
export const ME_PATCH_BODY = { type: 'object', properties: { name: USER_NAME }, additionalProperties: false } as const

/** Body of POST /dashboard/api/me/password; 204, and the user's other sessions end. */
export const PASSWORD_BODY = objectOf({ current: TRIED_PASSWORD, password: NEW_PASSWORD })

/** Answer of GET /dashboard/api/me/sessions; a session ends by DELETE /dashboard/api/me/sessions/{sessionId}. */
export const SESSION_LIST = objectOf({
  sessions: {
    type: 'array',
    maxItems: USER_SESSIONS_MAX,
    items: objectOf({
      sessionId: UUID,
      accountId: UUID,
      accountName: TEXT_OR_NULL,
      createdAt: INSTANT,
      lastSeenAt: INSTANT,
      expiresAt: INSTANT,
      userAgent: { type: 'string' },
      current: { type: 'boolean' },
    }),
  },
})

export type Me = FromSchema<typeof ME>

export type SessionList = FromSchema<typeof SESSION_LIST>
