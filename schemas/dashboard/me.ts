/**
 * me - a user's own: name, password, sessions, second factors
 *
 * Spec session.list, session.factor, session.passkey
 */

import type { FromSchema } from 'json-schema-to-ts'
import { NAME_CHARS_MAX, PASSKEYS_MAX, RECOVERY_CODES, USER_SESSIONS_MAX } from '../limits.ts'
import { INSTANT, INSTANT_OR_NULL, strictObject, TEXT_OR_NULL, UUID } from '../shape.ts'
import { CHALLENGE, CREDENTIAL, FACTOR_CODE, NEW_PASSWORD, TRIED_PASSWORD } from './session.ts'

const USER_NAME = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX } as const

/** A passkey as it is listed. */
export const PASSKEY = strictObject({
  passkeyId: UUID,
  name: USER_NAME,
  createdAt: INSTANT,
  lastUsedAt: INSTANT_OR_NULL,
})

/** Answer of GET and PATCH /dashboard/api/me. */
export const ME = strictObject({
  userId: UUID,
  address: { type: 'string' },
  name: { type: 'string' },
  createdAt: INSTANT,
  hasPassword: { type: 'boolean' },
  totp: { type: 'boolean' },
  recoveryCodesLeft: { type: 'integer', minimum: 0 },
  passkeys: { type: 'array', maxItems: PASSKEYS_MAX, items: PASSKEY },
})

/** Body of PATCH /dashboard/api/me. */
export const ME_PATCH_BODY = { type: 'object', properties: { name: USER_NAME }, additionalProperties: false } as const

/** Body of POST /dashboard/api/me/password; 204, and the user's other sessions end. */
export const PASSWORD_BODY = strictObject({ current: TRIED_PASSWORD, password: NEW_PASSWORD })

/** Answer of GET /dashboard/api/me/sessions; a session ends by DELETE /dashboard/api/me/sessions/{sessionId}. */
export const SESSION_LIST = strictObject({
  sessions: {
    type: 'array',
    maxItems: USER_SESSIONS_MAX,
    items: strictObject({
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

/**
 * Answer of POST /dashboard/api/me/totp: it takes effect once POST /dashboard/api/me/totp/confirm has got one of its
 * codes.
 */
export const TOTP_BEGUN = strictObject({
  secret: { type: 'string' },
  url: { type: 'string' },
  challenge: CHALLENGE,
})

/** Body of POST /dashboard/api/me/totp/confirm. */
export const TOTP_CONFIRM_BODY = strictObject({ challenge: CHALLENGE, code: FACTOR_CODE })

const CODES = { type: 'array', minItems: RECOVERY_CODES, maxItems: RECOVERY_CODES, items: { type: 'string' } } as const

/** Answer of POST /dashboard/api/me/recovery-codes, shown once. */
export const RECOVERY_CODES_MADE = strictObject({ recoveryCodes: CODES })

/** Answer of POST /dashboard/api/me/totp/confirm; null if the user already has recovery codes. */
export const TOTP_CONFIRMED = strictObject({ recoveryCodes: { anyOf: [CODES, { type: 'null' }] } })

/** Body of POST /dashboard/api/me/passkeys. */
export const PASSKEY_BODY = strictObject({ challenge: CHALLENGE, credential: CREDENTIAL, name: USER_NAME })

/** Answer of POST /dashboard/api/me/passkeys; no codes if the user already has some. */
export const PASSKEY_MADE = strictObject({ passkey: PASSKEY, recoveryCodes: { anyOf: [CODES, { type: 'null' }] } })

/** Body of PATCH /dashboard/api/me/passkeys/{passkeyId}. */
export const PASSKEY_PATCH_BODY = strictObject({ name: USER_NAME })

export type Me = FromSchema<typeof ME>

export type Passkey = FromSchema<typeof PASSKEY>

export type TotpBegun = FromSchema<typeof TOTP_BEGUN>

export type PasskeyMade = FromSchema<typeof PASSKEY_MADE>

export type SessionList = FromSchema<typeof SESSION_LIST>
