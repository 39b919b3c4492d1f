/**
 * link-routes - links are ordered, read and consumed: /dashboard/api/links and below
 *
 * A link that makes a member of an account is bound to an address, or asks for it (first start). An existing user with
 * that address needs the password or a session, or sets a new password if an operator made the link; a new user sets a
 * name and a password.
 *
 * Spec link.once, link.purpose, link.mail, link.operator
 */

import { randomBytes } from 'node:crypto'
import { homeShard } from '../../cluster/id.ts'
import type { Link } from '../../schemas/dashboard/link.ts'
import { NAME_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from '../../schemas/limits.ts'
import type { EndLinksBody, MakeLinkBody, UseAccountLinkBody, UseUserLinkBody } from '../actors/dashboard/link.ts'
import type { AddUserBody, ChangeUserBody, UserChanged, UserReply } from '../actors/dashboard/user.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { giveOrder } from '../routes/answer.ts'
import { linkEndMs, type StoredLink } from '../state/dashboard/link.ts'
import { LINK_ID_BYTES, newLinkId, parseLinkToken } from '../state/dashboard/link-token.ts'
import { roleOf } from '../state/dashboard/member.ts'
import { hasFactor, NO_FACTORS, type User } from '../state/dashboard/user.ts'
import { bucketOfHmac } from '../state/hash-fraction.ts'
import { isVouchedStill, readLink, type SeenLink } from '../views/dashboard/link.ts'
import { readUser, readUserByLogin } from '../views/dashboard/user.ts'
import type { DashboardDeps, DashboardHandler, DashboardRequest } from './deps.ts'
import { endJoin, listAccount, undoJoin, useLink } from './join.ts'
import { noteLimit } from './login-audit.ts'
import { judgeTry } from './login-rate-limit.ts'
import { orderUserChange } from './me-routes.ts'
import { hashPassword } from './password.ts'
import { askFactor, enterOrAsk } from './second-step.ts'
import { tryPassword } from './session-routes.ts'
import { endOthers, endSessions, startSession } from './start-session.ts'

/** POST /dashboard/api/links, with the same answer for every address. */
export function makeOrderLink(deps: DashboardDeps): DashboardHandler<'orderLink'> {
  return async ({ body, client, cookies }) => {
    const { address, purpose } = body
    const refused = await judgeTry(deps, 'mailed-link', { client, address, cookies })
    if (refused !== null) {
      if (refused.isOfAddress) noteLimit(deps, address)
      return refused.answer
    }
    // Not awaited, because the time of the answer would show whether the address is known.
    mailLink(deps, { address, purpose }).catch(() => undefined)
    return { status: 202, json: {} }
  }
}

/**
 * Mails a link to the user with the address. If the store does not answer, no link is sent, and the user requests
 * another.
 */
async function mailLink(
  deps: DashboardDeps,
  { address, purpose }: { readonly address: string; readonly purpose: MakeLinkBody['link']['purpose'] },
): Promise<void> {
  const user = await readUserByLogin(deps.read, deps.secrets.loginHmac(address))
  if (user === null || user === 'unavailable') return
  const shard = homeShard(user.userId)
  const endsAtMs = linkEndMs(purpose, deps.nowMs())
  const bound = { ownerId: user.userId, invitationId: null, address: user.address, level: null }
  const body: MakeLinkBody = {
    linkId: newLinkId(shard, randomBytes(LINK_ID_BYTES)),
    link: { purpose, ...bound, endsAtMs },
    isMailed: true,
  }
  await giveOrder(deps, shard, { name: 'make-link', body })
}

/** POST /dashboard/api/links/read */
export function makeReadLink(deps: DashboardDeps): DashboardHandler<'readLink'> {
  return async ({ body }) => {
    const found = await findLink(deps, body.token)
    if (!('link' in found)) return found
    const { link, accountName } = found
    const known = await userOfLink(deps, link, link.address)
    if (known === 'unavailable') return refusalReply('unavailable')
    const json: Link = {
      purpose: isVouched(link) && known !== null ? 'reset' : link.purpose,
      accountName,
      role: link.level === null ? null : roleOf(link.level).role,
      address: link.address,
      needsPassword: needOf(link, known),
    }
    return { status: 200, json }
  }
}

function needOf({ purpose }: StoredLink, known: User | null): Link['needsPassword'] {
  if (purpose === 'sign-in') return null
  return purpose === 'invitation' && known !== null ? 'enter' : 'choose'
}

/** Whether an operator made the link for an address, so that its user needs no old password, and sets a new one. */
function isVouched({ purpose, address }: StoredLink): boolean {
  return purpose === 'setup' && address !== null
}

/** POST /dashboard/api/links/consume */
export function makeConsumeLink(deps: DashboardDeps): DashboardHandler<'consumeLink'> {
  return async (request) => {
    const found = await findLink(deps, request.body.token)
    if (!('link' in found)) return found
    const { purpose } = found.link
    return purpose === 'setup' || purpose === 'invitation' ? join(deps, found, request) : letIn(deps, found, request)
  }
}

/** Signs a user in by a mailed link, with or without a new password. */
async function letIn(deps: DashboardDeps, { linkId, link }: Found, request: Consuming): Promise<Answer> {
  const { body, userAgent, cookies } = request
  const isReset = link.purpose === 'reset'
  const issues = isReset ? passwordIssues(body.password) : []
  if (issues.length > 0) return refusalReply('invalid_request', { issues })
  const password = isReset ? await hashPassword(body.password ?? '', request.client) : null
  if (isReset && password === null) return refusalReply('unavailable')
  const userId = link.ownerId
  const unendedFirst = isReset ? await endOthers(deps, userId, null) : null
  if (unendedFirst !== null) return unendedFirst
  const order: UseUserLinkBody = { linkId, userId, password }
  const used = await giveOrder<UserChanged>(deps, homeShard(userId), { name: 'use-user-link', body: order })
  if (used.answer !== undefined) return used.answer
  const unended = await endSessions(deps, userId, used.reply.ended)
  if (unended !== null) return unended
  const user = await readUser(deps.read, userId)
  if (user === null || user === 'unavailable') return refusalReply('unavailable')
  return enterOrAsk(deps, { user, accountId: null, userAgent, cookies, isConfirmed: true, sinceMs: null })
}

/** A user joins an account, and enters it. */
async function join(deps: DashboardDeps, { linkId, link }: Found, request: Consuming): Promise<Answer> {
  const address = link.address ?? request.body.address
  if (address === undefined) return refusalReply('invalid_request', { issues: [missing('address')] })
  const joining = await whoJoins(deps, link, { address, request })
  if (!('user' in joining)) return joining
  const { user, newPassword } = joining
  const accountId = link.ownerId
  const { userAgent, cookies } = request
  const ownRow = request.key?.row.userId === user.userId ? request.key.row : null
  // A signed-in user is already verified, if the second factor was used in this session.
  const shown = ownRow !== null && (ownRow.factorMs > 0 || !hasFactor(user)) ? ownRow : null
  // A known user is asked for the rest first: that step makes the user a member.
  if (newPassword === null && hasFactor(user) && shown === null)
    return askFactor(deps, { user, accountId, linkId }, cookies)
  const member = await becomeMember(deps, { linkId, link }, { ...joining, address })
  if (!('userId' in member)) return member
  const entering = { user: member, accountId, userAgent, cookies, sinceMs: null }
  if (shown !== null) return startSession(deps, { ...entering, isConfirmed: false, factorMs: shown.factorMs })
  return enterOrAsk(deps, { ...entering, isConfirmed: true })
}

/** Uses up a link and makes a user a member of its account. Returns the updated user, or the refusal. */
async function becomeMember(
  deps: DashboardDeps,
  { linkId, link }: Pick<Found, 'linkId' | 'link'>,
  { user, newPassword, address }: Joining & { readonly address: string },
): Promise<User | Answer> {
  const { userId } = user
  const accountId = link.ownerId
  const begun = await listAccount(deps, { accountId, userId })
  if (!('kind' in begun)) return begun
  const body: UseAccountLinkBody = { linkId, accountId, userId, untilMs: begun.untilMs }
  const siblings = isVouched(link) ? await endSiblings(deps, address, link.madeAtMs) : null
  // A link by the operator is used up here, before a second factor is asked for, because its purpose, a new password,
  // is then done. If it was kept until that step, another reader of the mail could choose a password again in between.
  const unused = siblings ?? (await useLink(deps, body))
  if (unused !== null) return undoJoin(deps, user, { accountId, answer: unused })
  const changes = newPassword === null ? null : { password: newPassword, ...(link.removesFactors && NO_FACTORS) }
  const unchanged = changes === null ? null : await renew(deps, user, changes)
  const left = unchanged ?? (await endJoin(deps, body))
  if (left !== null) return left
  return { ...user, accounts: [accountId, ...user.accounts.filter((one) => one !== accountId)], ...changes }
}

/**
 * Ends the operator's links for an address, in all accounts. Takes the time at which the used link was made, or null.
 * Returns the refusal if one was used before, or no process answered.
 */
export async function endSiblings(
  deps: DashboardDeps,
  address: string,
  madeAtMs: number | null,
): Promise<Answer | null> {
  const hmac = deps.secrets.loginHmac(address)
  const body: EndLinksBody = { hmac, madeAtMs }
  const { answer } = await giveOrder(deps, bucketOfHmac(hmac), { name: 'end-links', body })
  return answer ?? null
}

/** Replaces the password of a user, whose sessions end. Returns the refusal if it did not. */
async function renew(deps: DashboardDeps, user: User, changes: ChangeUserBody['changes']): Promise<Answer | null> {
  const { userId, linkRound } = user
  const unended = await endOthers(deps, userId, null)
  if (unended !== null) return unended
  const order = {
    userId,
    changes: { ...changes, linkRound: linkRound + 1 },
    endsAllBut: null,
    tells: 'operator-link',
  } as const
  const { reply, answer } = await orderUserChange(deps, order)
  return answer ?? endSessions(deps, userId, reply.ended)
}

interface Joining {
  readonly user: User
  /** Hash of the new password, stored once the link is used; null to keep the present one. */
  readonly newPassword: string | null
}

/** The joining user, who is either a known one, verified or with an operator's link, or a new one. */
async function whoJoins(
  deps: DashboardDeps,
  link: StoredLink,
  { address, request }: { readonly address: string; readonly request: Consuming },
): Promise<Joining | Answer> {
  const known = await userOfLink(deps, link, address)
  if (known === 'unavailable') return refusalReply('unavailable')
  const { name, password } = request.body
  if (known === null) {
    const issues = [...(name === undefined ? [missing('name')] : []), ...passwordIssues(password)]
    if (issues.length > 0) return refusalReply('invalid_request', { issues })
    return joining(
      await makeUser(deps, { address, name: name ?? '', password: password ?? '', client: request.client }),
    )
  }
  if (isVouched(link)) {
    const issues = passwordIssues(password)
    if (issues.length > 0) return refusalReply('invalid_request', { issues })
    const newPassword = await hashPassword(password ?? '', request.client)
    return newPassword === null ? refusalReply('unavailable') : { user: known, newPassword }
  }
  if (request.key?.row.userId === known.userId) return joining(known)
  if (password === undefined) return refusalReply('invalid_request', { issues: [missing('password')] })
  const { client, cookies } = request
  return joining(await tryPassword(deps, { address, password, client, cookies }))
}

function joining(user: User | Answer): Joining | Answer {
  return 'userId' in user ? { user, newPassword: null } : user
}

async function makeUser(
  deps: DashboardDeps,
  { address, name, password, client }: Readonly<Record<'address' | 'name' | 'password' | 'client', string>>,
): Promise<User | Answer> {
  const hashed = await hashPassword(password, client)
  if (hashed === null) return refusalReply('unavailable')
  const hmac = deps.secrets.loginHmac(address)
  const body: AddUserBody = { hmac, address, name: name.slice(0, NAME_CHARS_MAX), password: hashed }
  const { reply, answer } = await giveOrder<UserReply>(deps, bucketOfHmac(hmac), { name: 'add-user', body })
  if (answer !== undefined) return answer
  // If two requests run at once, the other one has created the user, with another password.
  if (!reply.isNew) return refusalReply('sign_in_failed')
  const user = await readUser(deps.read, reply.userId)
  return user === null || user === 'unavailable' ? refusalReply('unavailable') : user
}

type Consuming = DashboardRequest<'consumeLink'>
type Found = SeenLink & { readonly linkId: string }

/** The link of a token while it works. */
async function findLink({ read, nowMs, secrets }: DashboardDeps, token: string): Promise<Found | Answer> {
  const parsed = parseLinkToken(token, secrets.linkKey)
  if (parsed === null) return refusalReply('link_not_valid')
  const seen = await readLink(read, { ...parsed, nowMs: nowMs() })
  if (seen === 'unavailable') return refusalReply('unavailable')
  if (seen === null) return refusalReply('link_not_valid')
  const { link } = seen
  const isThere = isVouched(link) ? await isVouchedStill(read, link, secrets.loginHmac(link.address ?? '')) : true
  if (isThere === null) return refusalReply('unavailable')
  return isThere ? { ...seen, linkId: parsed.linkId } : refusalReply('link_not_valid')
}

/** The user of a link, or of its address. */
async function userOfLink(
  { read, secrets }: DashboardDeps,
  { purpose, ownerId }: StoredLink,
  address: string | null,
): Promise<User | null | 'unavailable'> {
  if (purpose === 'sign-in' || purpose === 'reset') return readUser(read, ownerId)
  return address === null ? null : readUserByLogin(read, secrets.loginHmac(address))
}

function passwordIssues(password: string | undefined) {
  if (password === undefined) return [missing('password')]
  const { length } = [...password]
  if (length >= PASSWORD_CHARS_MIN && length <= PASSWORD_CHARS_MAX) return []
  return [{ path: 'password', message: `Must have ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters` }]
}

function missing(path: string) {
  return { path, message: 'Must be given' }
}
