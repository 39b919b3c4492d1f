/**
 * session - who is signed in where: signing in with a password, the session, its confirmation
 *
 * Spec session.sign-in, session.read, session.confirm
 */

import type { FromSchema } from 'json-schema-to-ts'
import { ACCOUNT_APPLICATION } from '../account.ts'
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, USER_ACCOUNTS_MAX } from '../limits.ts'
import { INSTANT, INSTANT_OR_NULL, objectOf, UUID } from '../shape.ts'

export const ROLE = { enum: ['administrator', 'member'] } as const
export const SIGN_IN_ADDRESS = { type: 'string', format: 'address' } as const
/** One that is chosen. */
export const NEW_PASSWORD = { type: 'string', minLength: PASSWORD_CHARS_MIN, maxLength: PASSWORD_CHARS_MAX } as const
/** One that is tried: whatever its length, it is only wrong. */
export const TRIED_PASSWORD = { type: 'string', maxLength: 1024 } as const

/** Body of POST /dashboard/api/session. */
export const SIGN_IN_BODY = objectOf({ address: SIGN_IN_ADDRESS, password: TRIED_PASSWORD })

/** Body of POST /dashboard/api/session/account. */
export const SWITCH_ACCOUNT_BODY = objectOf({ accountId: UUID })

/** Body of POST /dashboard/api/session/confirm. */
export const CONFIRM_BODY = objectOf({ password: TRIED_PASSWORD })

const USER = objectOf({ userId: UUID, address: { type: 'string' }, name: { type: 'string' } })

const SESSION_ACCOUNT = objectOf({
  accountId: UUID,
  name: { type: 'string' },
  status: { enum: ['pending', 'active', 'paused', 'closed'] },
  hideContent: { type: 'boolean' },
  application: ACCOUNT_APPLICATION,
})

/** A signed-in browser in one account. */
export const SESSION = objectOf({
  sessionId: UUID,
  user: USER,
  account: SESSION_ACCOUNT,
  accounts: {
    type: 'array',
    maxItems: USER_ACCOUNTS_MAX,
    items: objectOf({ accountId: UUID, name: { type: 'string' }, role: ROLE, readOnly: { type: 'boolean' } }),
  },
  role: ROLE,
  readOnly: { type: 'boolean' },
  confirmedUntil: INSTANT_OR_NULL,
  expiresAt: INSTANT,
})

export type SignInBody = FromSchema<typeof SIGN_IN_BODY>

export type ConfirmBody = FromSchema<typeof CONFIRM_BODY>

export type SignedIn = FromSchema<typeof SESSION>

export type MemberRole = FromSchema<typeof ROLE>
