/**
 * people - the members of an account and its invitations
 *
 * Spec member.role, member.last, invitation.send
 */

import type { FromSchema } from 'json-schema-to-ts'
import { INVITATIONS_MAX, MEMBERS_MAX } from '../limits.ts'
import { INSTANT, INSTANT_OR_NULL, strictObject, UUID } from '../shape.ts'
import { ROLE, SIGN_IN_ADDRESS } from './session.ts'

const READ_ONLY = { type: 'boolean' } as const

/** A user's place in an account. `lastSeenAt`: when a session of theirs here was last used, to some ten minutes. */
export const MEMBER = strictObject({
  userId: UUID,
  address: { type: 'string' },
  name: { type: 'string' },
  role: ROLE,
  readOnly: READ_ONLY,
  secondFactor: { type: 'boolean' },
  joinedAt: INSTANT,
  lastSeenAt: INSTANT_OR_NULL,
})

/** Answer of GET /dashboard/api/members, with all members. */
export const MEMBER_LIST = strictObject({ members: { type: 'array', maxItems: MEMBERS_MAX, items: MEMBER } })

/** Body of PATCH /dashboard/api/members/{userId}: any subset. */
export const MEMBER_PATCH_BODY = {
  type: 'object',
  properties: { role: ROLE, readOnly: READ_ONLY },
  additionalProperties: false,
} as const

/** Body of POST /dashboard/api/invitations. */
export const INVITATION_BODY = {
  type: 'object',
  properties: { address: SIGN_IN_ADDRESS, role: ROLE, readOnly: { ...READ_ONLY, default: false } },
  required: ['address', 'role'],
  additionalProperties: false,
} as const

/** An invitation that waits. */
export const INVITATION = strictObject({
  invitationId: UUID,
  address: { type: 'string' },
  role: ROLE,
  readOnly: READ_ONLY,
  createdAt: INSTANT,
  sentAt: INSTANT,
  expiresAt: INSTANT,
})

/** Answer of GET /dashboard/api/invitations, with all invitations. */
export const INVITATION_LIST = strictObject({
  invitations: { type: 'array', maxItems: INVITATIONS_MAX, items: INVITATION },
})

export type Member = FromSchema<typeof MEMBER>

export type MemberPatchBody = FromSchema<typeof MEMBER_PATCH_BODY>

export type InvitationBody = FromSchema<typeof INVITATION_BODY>

export type Invitation = FromSchema<typeof INVITATION>
