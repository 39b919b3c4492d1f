/**
 * people-routes - members and invitations: /dashboard/api/members and /dashboard/api/invitations
 *
 * The account decides; the index of a user's accounts follows.
 *
 * Spec member.role, member.last, invitation.send
 */

import { randomBytes } from 'node:crypto'
import { homeShard, shardOf } from '../../cluster/id.ts'
import type { ChangeMemberBody, InvitationReply, InviteBody, MemberReply } from '../actors/dashboard/member.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { LINK_ID_BYTES, newLinkId } from '../state/dashboard/link-token.ts'
import { levelOf, membersFact, roleOf, unpackMember } from '../state/dashboard/member.ts'
import { STEP_MS } from '../state/dashboard/user-list.ts'
import { formatInvitation, readInvitations, readMember, readMembers } from '../views/dashboard/people.ts'
import { readUser, readUserByLogin } from '../views/dashboard/user.ts'
import type { SessionKey } from '../views/key.ts'
import { type DashboardDeps, type DashboardHandler, type DashboardRequest, orderAs, sessionOf } from './deps.ts'
import { announceLeave, leave } from './join.ts'
import { endSiblings } from './link-routes.ts'
import { noteSessionLimit } from './login-audit.ts'
import { refuseTry } from './login-rate-limit.ts'

/** GET /dashboard/api/members */
export function makeListMembers({ read }: DashboardDeps): DashboardHandler<'listMembers'> {
  return async (request) => {
    const members = await readMembers(read, sessionOf(request).accountId)
    return members === null ? refusalReply('unavailable') : { status: 200, json: { members } }
  }
}

/** PATCH /dashboard/api/members/{userId} */
export function makePatchMember(deps: DashboardDeps): DashboardHandler<'patchMember'> {
  return async (request) => {
    const { accountId } = sessionOf(request)
    const userId = (request.params.userId ?? '').toLowerCase()
    const shard = homeShard(accountId)
    const seen = await deps.read(shard, [membersFact(shard, accountId)])
    if (seen === null) return refusalReply('unavailable')
    const packed = seen[0].get(userId)
    if (packed === undefined) return refusalReply('not_found')
    const before = roleOf(unpackMember(packed).level)
    const { role = before.role, readOnly = before.readOnly } = request.body
    const changed = await changeMember(deps, request, { userId, level: levelOf(role, readOnly) })
    if (changed.answer !== undefined) return changed.answer
    const member = await readMember(deps.read, accountId, { userId, member: changed.reply.member })
    return member === null ? { close: true } : { status: 200, json: member }
  }
}

/**
 * DELETE /dashboard/api/members/{userId} first records the leave on the user's list and ends the operator's links for
 * the user, then ends the membership, then removes the account from the list. Until then, repeating the request
 * completes an interrupted one.
 */
export function makeDeleteMember(deps: DashboardDeps): DashboardHandler<'deleteMember'> {
  return async (request) => {
    const userId = (request.params.userId ?? '').toLowerCase()
    if (shardOf(userId) === null) return refusalReply('not_found')
    const cameMs = deps.nowMs()
    const user = await readUser(deps.read, userId)
    if (user === 'unavailable') return refusalReply('unavailable')
    const { accountId } = sessionOf(request)
    const isListed = user?.accounts.includes(accountId) === true
    const begun = user !== null && isListed ? await announceLeave(deps, user, accountId) : null
    // If the list could not be updated, the member is removed all the same; the rest is completed by a repeated
    // request.
    const untilMs = begun?.untilMs ?? cameMs + STEP_MS
    const { answer, refused } = await changeMember(deps, request, { userId, level: null, untilMs })
    if (answer !== undefined && (refused?.code !== 'not_found' || !isListed)) return answer
    if (user === null) return { status: 204 }
    const unended = begun === null ? await endSiblings(deps, user.address, null) : null
    return unended ?? (await leave(deps, user, accountId)) ?? { status: 204 }
  }
}

function changeMember(
  deps: DashboardDeps,
  request: DashboardRequest,
  change: Pick<ChangeMemberBody, 'userId' | 'level' | 'untilMs'>,
) {
  return orderAs<MemberReply>(deps, request, { name: 'change-member', body: change })
}

/** GET /dashboard/api/invitations */
export function makeListInvitations({ read, nowMs }: DashboardDeps): DashboardHandler<'listInvitations'> {
  return async (request) => {
    const invitations = await readInvitations(read, sessionOf(request).accountId, nowMs())
    return invitations === null ? refusalReply('unavailable') : { status: 200, json: { invitations } }
  }
}

/** POST /dashboard/api/invitations, with the same answer whether or not the address is known. */
export function makeCreateInvitation(deps: DashboardDeps): DashboardHandler<'createInvitation'> {
  return async (request) => {
    const { address, role, readOnly } = request.body
    const refused = await refuseInvitation(deps, request, address)
    if (refused !== null) return refused
    const known = await readUserByLogin(deps.read, deps.secrets.loginHmac(address))
    if (known === 'unavailable') return refusalReply('unavailable')
    const body: Pick<InviteBody, 'address' | 'level' | 'knownUserId' | 'linkId'> = {
      address,
      level: levelOf(role, readOnly),
      knownUserId: known?.userId ?? null,
      linkId: newLinkIdOf(sessionOf(request)),
    }
    const { reply, answer } = await orderAs<InvitationReply>(deps, request, { name: 'invite', body })
    return answer ?? answerInvitation(201, reply)
  }
}

/** POST /dashboard/api/invitations/{id}/send */
export function makeResendInvitation(deps: DashboardDeps): DashboardHandler<'resendInvitation'> {
  return async (request) => {
    const session = sessionOf(request)
    const invitationId = (request.params.id ?? '').toLowerCase()
    const invitations = await readInvitations(deps.read, session.accountId, deps.nowMs())
    if (invitations === null) return refusalReply('unavailable')
    const found = invitations.find((one) => one.invitationId === invitationId)
    if (found === undefined) return refusalReply('not_found')
    const refused = await refuseInvitation(deps, request, found.address)
    if (refused !== null) return refused
    const body = { invitationId, linkId: newLinkIdOf(session) }
    const { reply, answer } = await orderAs<InvitationReply>(deps, request, { name: 'send-invitation', body })
    return answer ?? answerInvitation(200, reply)
  }
}

/** DELETE /dashboard/api/invitations/{id} */
export function makeDeleteInvitation(deps: DashboardDeps): DashboardHandler<'deleteInvitation'> {
  return async (request) => {
    const body = { invitationId: (request.params.id ?? '').toLowerCase() }
    const { answer } = await orderAs(deps, request, { name: 'withdraw-invitation', body })
    return answer ?? { status: 204 }
  }
}

/**
 * Counts an invitation, of its client and of the address. If a limit refuses, it is logged for the member. If nothing
 * could be counted, no limit was reached.
 */
async function refuseInvitation(
  deps: DashboardDeps,
  request: DashboardRequest,
  address: string,
): Promise<Answer | null> {
  const refused = await refuseTry(deps, 'invitation', { client: request.client, address, cookies: '' })
  if (refused !== null && 'status' in refused && refused.status === 429) noteSessionLimit(deps, sessionOf(request))
  return refused
}

function newLinkIdOf({ accountId }: SessionKey): string {
  return newLinkId(homeShard(accountId), randomBytes(LINK_ID_BYTES))
}

function answerInvitation(status: number, { invitationId, invitation }: InvitationReply): Answer {
  return { status, json: formatInvitation(invitationId, invitation) }
}
