/**
 * session - who is signed in where: signing in with a password and a second factor, the session, its confirmation
 *
 * Spec session.sign-in, session.factor, session.passkey, session.read, session.confirm
 */

import type { FromSchema } from 'json-schema-to-ts'
import { ACCOUNT_APPLICATION } from '../account.ts'
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, USER_ACCOUNTS_MAX } from '../limits.ts'
import { INSTANT, INSTANT_OR_NULL, strictObject, UUID } from '../shape.ts'

export const ROLE = { enum: ['administrator', 'member'] } as const
export const SIGN_IN_ADDRESS = { type: 'string', format: 'address' } as const
/** One that is chosen. */
export const NEW_PASSWORD = { type: 'string', minLength: PASSWORD_CHARS_MIN, maxLength: PASSWORD_CHARS_MAX } as const
/** An entered password; one that is too long is just wrong. */
export const TRIED_PASSWORD = { type: 'string', maxLength: 1024 } as const

/** Proof of a completed step: made by this installation, bound to the browser, used once. */
export const CHALLENGE = { type: 'string', minLength: 1, maxLength: 4096 } as const
/** Six digits of an authenticator, or a recovery code. */
export const FACTOR_CODE = { type: 'string', minLength: 1, maxLength: 40 } as const
/** Characters of 1,023 bytes in base64url (WebAuthn 7.1 step 25). */
const CREDENTIAL_ID = { type: 'string', maxLength: 1364 } as const
/** The answer of a browser's passkey, in the browser's own JSON form; its verifier reads it. */
export const CREDENTIAL = { type: 'object', properties: { id: CREDENTIAL_ID, rawId: CREDENTIAL_ID } } as const

/** Body of POST /dashboard/api/session. */
export const SIGN_IN_BODY = strictObject({ address: SIGN_IN_ADDRESS, password: TRIED_PASSWORD })

/** Body of POST /dashboard/api/session/code. */
export const SIGN_IN_CODE_BODY = strictObject({ challenge: CHALLENGE, code: FACTOR_CODE })

/**
 * Body of POST /dashboard/api/session/passkey/options, of a second step; without it, the passkey identifies the user.
 */
export const PASSKEY_OPTIONS_BODY = {
  type: 'object',
  properties: { challenge: CHALLENGE },
  additionalProperties: false,
} as const

/** Answer of the routes that begin something with a passkey: `options` is what the browser's own call takes as JSON. */
export const PASSKEY_OPTIONS = strictObject({ options: { type: 'object' }, challenge: CHALLENGE })

/** Body of POST /dashboard/api/session/passkey. */
export const PASSKEY_SIGN_IN_BODY = strictObject({ challenge: CHALLENGE, credential: CREDENTIAL })

/** Body of POST /dashboard/api/session/account. */
export const SWITCH_ACCOUNT_BODY = strictObject({ accountId: UUID })

/** Body of POST /dashboard/api/session/confirm: a password, a code, or a passkey, of which the first counts. */
export const CONFIRM_BODY = {
  type: 'object',
  properties: { password: TRIED_PASSWORD, code: FACTOR_CODE, challenge: CHALLENGE, credential: CREDENTIAL },
  anyOf: [{ required: ['password'] }, { required: ['code'] }, { required: ['challenge', 'credential'] }],
  additionalProperties: false,
} as const

const USER = strictObject({ userId: UUID, address: { type: 'string' }, name: { type: 'string' } })

const SESSION_ACCOUNT = strictObject({
  accountId: UUID,
  name: { type: 'string' },
  status: { enum: ['pending', 'active', 'paused', 'closed'] },
  requireSecondFactor: { type: 'boolean' },
  hideContent: { type: 'boolean' },
  application: ACCOUNT_APPLICATION,
})

const FACTORS = { type: 'array', maxItems: 2, items: { enum: ['totp', 'passkey'] } } as const

/**
 * A signed-in browser in one account. `factors` are the second factors of its user. `needsFactor` means that the
 * account requires a second factor that the user has not set up; until then only the user's own routes answer.
 */
export const SESSION = strictObject({
  sessionId: UUID,
  user: USER,
  account: SESSION_ACCOUNT,
  accounts: {
    type: 'array',
    maxItems: USER_ACCOUNTS_MAX,
    items: strictObject({ accountId: UUID, name: { type: 'string' }, role: ROLE, readOnly: { type: 'boolean' } }),
  },
  role: ROLE,
  readOnly: { type: 'boolean' },
  needsFactor: { type: 'boolean' },
  factors: FACTORS,
  confirmedUntil: INSTANT_OR_NULL,
  expiresAt: INSTANT,
})

/** The state between a right password and the session. A recovery code replaces that of an authenticator. */
export const SECOND_FACTOR = strictObject({
  secondFactor: { ...FACTORS, minItems: 1 },
  challenge: CHALLENGE,
})

/** Answer of POST /dashboard/api/session. */
export const SIGN_IN_ANSWER = { anyOf: [SESSION, SECOND_FACTOR] } as const

export type SignInBody = FromSchema<typeof SIGN_IN_BODY>

export type ConfirmBody = FromSchema<typeof CONFIRM_BODY>

export type SecondFactor = FromSchema<typeof SECOND_FACTOR>

export type SignedIn = FromSchema<typeof SESSION>

export type MemberRole = FromSchema<typeof ROLE>
