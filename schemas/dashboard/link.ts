/**
 * link - links into the dashboard: that of the first start, those mailed for signing in or a new password, and
 * invitations
 *
 * A link's token is after `#` in its URL, so no server sees it there; the page reads and consumes it by POST.
 *
 * Spec link.purpose, link.once
 */

import type { FromSchema } from 'json-schema-to-ts'
import { LINK_TOKEN_CHARS_MAX, NAME_CHARS_MAX } from '../limits.ts'
import { NOTE } from '../operator/audit.ts'
import { INSTANT, strictObject, TEXT_OR_NULL } from '../shape.ts'
import { ROLE, SIGN_IN_ADDRESS, TRIED_PASSWORD } from './session.ts'

const LINK_EXAMPLE =
  'https://api.svc.example/dashboard/link#0e9f86d081884c7d659a2feaa0c55ad015.Lpo1b0Z5S9pVvQ2sJ0cO3tTjXk7m4hYdWq8uRzN6aEg'
const LINK_TOKEN = { type: 'string', minLength: 1, maxLength: LINK_TOKEN_CHARS_MAX } as const

export const LINK_PURPOSE = { enum: ['setup', 'invitation', 'sign-in', 'reset'] } as const

/** Body of POST /dashboard/api/links. */
export const LINK_BODY = strictObject({ address: SIGN_IN_ADDRESS, purpose: { enum: ['sign-in', 'reset'] } })

/** Answer of POST /dashboard/api/links, the same for every address. */
export const LINK_ORDERED = { type: 'object', properties: {}, additionalProperties: false } as const

/** Body of POST /dashboard/api/links/read. */
export const LINK_READ_BODY = strictObject({ token: LINK_TOKEN })

/**
 * The purpose of a link; `reset` also if the address of an operator's link has a user. `needsPassword`: `choose` a new
 * one, `enter` the user's own (or be signed in), null none. `address`: its recipient; null if the page asks for it.
 */
export const LINK = strictObject({
  purpose: LINK_PURPOSE,
  accountName: TEXT_OR_NULL,
  role: { enum: ['administrator', 'member', null] },
  address: TEXT_OR_NULL,
  needsPassword: { enum: ['choose', 'enter', null] },
})

/** Body of POST /dashboard/api/links/consume. */
export const LINK_CONSUME_BODY = {
  type: 'object',
  properties: {
    token: LINK_TOKEN,
    address: SIGN_IN_ADDRESS,
    name: { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX },
    password: TRIED_PASSWORD,
  },
  required: ['token'],
  additionalProperties: false,
} as const

/** Body of POST /v1/operator/accounts/{accountId}/link. */
export const OPERATOR_LINK_BODY = {
  type: 'object',
  properties: {
    address: SIGN_IN_ADDRESS,
    role: { ...ROLE, default: 'administrator' },
    removeFactors: {
      type: 'boolean',
      default: false,
      description: 'whether the link also removes authenticator, passkeys and recovery codes, for a user who lost them',
    },
    note: NOTE,
  },
  required: ['address'],
  additionalProperties: false,
} as const

/** Answer of POST /v1/operator/accounts/{accountId}/link, the only one with the URL. */
export const LINK_MADE = strictObject({
  url: { type: 'string', examples: [LINK_EXAMPLE] },
  expiresAt: INSTANT,
})

export type LinkBody = FromSchema<typeof LINK_BODY>

export type OperatorLinkBody = FromSchema<typeof OPERATOR_LINK_BODY>

export type LinkMade = FromSchema<typeof LINK_MADE>

export type LinkConsumeBody = FromSchema<typeof LINK_CONSUME_BODY>

export type Link = FromSchema<typeof LINK>

export type LinkPurpose = FromSchema<typeof LINK_PURPOSE>
