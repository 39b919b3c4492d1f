/**
 * account - account settings of an administrator, the actions of members, the checklist, and the kind of an id
 *
 * Spec member.settings, member.application, member.audit, member.checklist, member.find
 */

import type { FromSchema } from 'json-schema-to-ts'
import { ADDRESS_CHARS_MAX, NAME_CHARS_MAX, OPERATOR_INTEGER_MAX, PAGE_MAX } from '../limits.ts'
import { INSTANT, strictObject, TEXT_OR_NULL, UUID, UUID_OR_NULL } from '../shape.ts'

const COUNT = { type: 'integer', minimum: 1, maximum: OPERATOR_INTEGER_MAX } as const

/** Body of PATCH /dashboard/api/account: any subset. */
export const SETTINGS_BODY = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX },
    monthlyCap: COUNT,
    requireSecondFactor: { type: 'boolean' },
    hideContent: { type: 'boolean' },
  },
  additionalProperties: false,
} as const

/** Body of POST /dashboard/api/account/application. */
export const APPLICATION_BODY = {
  type: 'object',
  properties: {
    monthlyVolume: COUNT,
    purpose: { type: 'string', minLength: 1, maxLength: 2000 },
    website: { type: ['string', 'null'], maxLength: 500, default: null },
  },
  required: ['monthlyVolume', 'purpose'],
  additionalProperties: false,
} as const

/**
 * An action of a member, also a refused one or a read. `act` is the name of a route, or `signIn`, `signInRefused`,
 * `limitReached`. `targets` are ids by the name of their field.
 */
export const ACT = strictObject({
  auditId: UUID,
  at: INSTANT,
  act: { type: 'string' },
  userId: UUID_OR_NULL,
  userName: TEXT_OR_NULL,
  targets: { type: 'object', additionalProperties: { type: 'string' } },
})

/** Answer of GET /dashboard/api/audit, newest first; query `limit`, `after`. */
export const ACT_LIST = strictObject({
  acts: { type: 'array', maxItems: PAGE_MAX, items: ACT },
  next: UUID_OR_NULL,
})

/** Answer of GET /dashboard/api/checklist, with the completed steps. */
export const CHECKLIST = strictObject({
  message: { type: 'boolean' },
  webhook: { type: 'boolean' },
  domain: { type: 'boolean' },
  liveKey: { type: 'boolean' },
  secondAdministrator: { type: 'boolean' },
})

/** Body of POST /dashboard/api/find, with an id of any object. */
export const FIND_BODY = strictObject({ text: { type: 'string', minLength: 1, maxLength: ADDRESS_CHARS_MAX } })

export const FOUND_KIND = {
  enum: ['message', 'received', 'server', 'stream', 'domain', 'webhook', 'broadcast', 'suppression', null],
} as const

/** Answer of POST /dashboard/api/find; all null if the text matches nothing in this account. */
export const FOUND = strictObject({ kind: FOUND_KIND, id: UUID_OR_NULL, serverId: UUID_OR_NULL })

export type SettingsBody = FromSchema<typeof SETTINGS_BODY>

export type ApplicationBody = FromSchema<typeof APPLICATION_BODY>

export type Act = FromSchema<typeof ACT>

export type Checklist = FromSchema<typeof CHECKLIST>

export type Found = FromSchema<typeof FOUND>
