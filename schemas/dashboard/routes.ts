/**
 * routes - the dashboard's own routes, as data: the session that each needs, its body and its answer
 *
 * They are separate from the table of routes, because no published document names them. API routes that the dashboard
 * has too are derived from that table (`api-proxy.ts`).
 *
 * Spec session.origin, member.role
 */

import type { FromSchema, JSONSchema } from 'json-schema-to-ts'
import { ACCOUNT } from '../account.ts'
import { DOMAIN_CHECKED, PAGE_QUERY } from '../domain.ts'
import { EMAIL_ANSWER } from '../email.ts'
import { RECEIVED_MESSAGE } from '../inbound.ts'
import { type Level, type Method, type Route, route } from '../route.ts'
import { TOKEN_BODY, TOKEN_MADE } from '../token.ts'
import { ACT_LIST, APPLICATION_BODY, CHECKLIST, FIND_BODY, FOUND, SETTINGS_BODY } from './account.ts'
import { MESSAGE_CONTENT, SEND_AGAIN_BODY, TEST_MESSAGE_BODY } from './content.ts'
import { LINK, LINK_BODY, LINK_CONSUME_BODY, LINK_ORDERED, LINK_READ_BODY } from './link.ts'
import {
  ME,
  ME_PATCH_BODY,
  PASSKEY,
  PASSKEY_BODY,
  PASSKEY_MADE,
  PASSKEY_PATCH_BODY,
  PASSWORD_BODY,
  RECOVERY_CODES_MADE,
  SESSION_LIST,
  TOTP_BEGUN,
  TOTP_CONFIRM_BODY,
  TOTP_CONFIRMED,
} from './me.ts'
import { OVERVIEW } from './overview.ts'
import { INVITATION, INVITATION_BODY, INVITATION_LIST, MEMBER, MEMBER_LIST, MEMBER_PATCH_BODY } from './people.ts'
import {
  CONFIRM_BODY,
  PASSKEY_OPTIONS,
  PASSKEY_OPTIONS_BODY,
  PASSKEY_SIGN_IN_BODY,
  SESSION,
  SIGN_IN_ANSWER,
  SIGN_IN_BODY,
  SIGN_IN_CODE_BODY,
  SWITCH_ACCOUNT_BODY,
} from './session.ts'

/** The path of all dashboard routes. */
export const DASHBOARD_PATH = '/dashboard/api'
/** Whether images may be fetched. */
const FRAME_QUERY = {
  type: 'object',
  properties: { images: { enum: ['remote'] } },
  additionalProperties: false,
} as const
const BODY_BYTES_MAX = 1024 * 1024

type Rest<Body> = Partial<Pick<Route<string, never, Body>, 'body' | 'query' | 'takesLastEventId'>> & {
  readonly success: Route['success']
  /** The least its session must allow; null: it takes none. */
  readonly level: Level | null
  readonly confirms?: boolean
  /** Open to users who have yet to set up the second factor that their account requires. */
  readonly isBefore?: boolean
}

function own<const Name extends string, const Body = null>(
  name: Name,
  method: Method,
  path: string,
  { level, confirms = false, isBefore = level === null, ...rest }: Rest<Body>,
): Route<Name, never, NoInfer<Body>> {
  const session = { level, confirms, isBefore }
  const row = route<Name, never, Body>(name, method, `${DASHBOARD_PATH}${path}`, {
    ...rest,
    keys: [],
    session,
    bodyBytesMax: BODY_BYTES_MAX,
  })
  return row
}

/** A mail in a frame, the only page that is served here. It has none of our code. */
function mailFrame(): Route<'showMail', never, null> {
  const frame = own('showMail', 'GET', '/mail', {
    level: 'r',
    query: FRAME_QUERY,
    success: { status: 200, body: null, media: 'text/html' },
  })
  return { ...frame, path: '/dashboard/mail/{serverId}/{id}' }
}

const NOTHING = { status: 204, body: null } as const
/** Routes about the user, for any role. */
const OWN = { level: 'r', isBefore: true } as const
const FACTOR = { ...OWN, confirms: true } as const

export const DASHBOARD_ROUTES = {
  signIn: own('signIn', 'POST', '/session', {
    level: null,
    body: SIGN_IN_BODY,
    success: { status: 200, body: SIGN_IN_ANSWER },
  }),
  signInByCode: own('signInByCode', 'POST', '/session/code', {
    level: null,
    body: SIGN_IN_CODE_BODY,
    success: { status: 200, body: SESSION },
  }),
  beginPasskey: own('beginPasskey', 'POST', '/session/passkey/options', {
    level: null,
    body: PASSKEY_OPTIONS_BODY,
    success: { status: 200, body: PASSKEY_OPTIONS },
  }),
  signInByPasskey: own('signInByPasskey', 'POST', '/session/passkey', {
    level: null,
    body: PASSKEY_SIGN_IN_BODY,
    success: { status: 200, body: SESSION },
  }),
  readSession: own('readSession', 'GET', '/session', { ...OWN, success: { status: 200, body: SESSION } }),
  signOut: own('signOut', 'DELETE', '/session', { ...OWN, success: NOTHING }),
  switchAccount: own('switchAccount', 'POST', '/session/account', {
    ...OWN,
    body: SWITCH_ACCOUNT_BODY,
    success: { status: 200, body: SESSION },
  }),
  beginConfirmation: own('beginConfirmation', 'POST', '/session/confirm/options', {
    ...OWN,
    success: { status: 200, body: PASSKEY_OPTIONS },
  }),
  confirmSession: own('confirmSession', 'POST', '/session/confirm', {
    ...OWN,
    body: CONFIRM_BODY,
    success: { status: 200, body: SESSION },
  }),
  orderLink: own('orderLink', 'POST', '/links', {
    level: null,
    body: LINK_BODY,
    success: { status: 202, body: LINK_ORDERED },
  }),
  readLink: own('readLink', 'POST', '/links/read', {
    level: null,
    body: LINK_READ_BODY,
    success: { status: 200, body: LINK },
  }),
  consumeLink: own('consumeLink', 'POST', '/links/consume', {
    level: null,
    body: LINK_CONSUME_BODY,
    success: { status: 200, body: SIGN_IN_ANSWER },
  }),
  readMe: own('readMe', 'GET', '/me', { ...OWN, success: { status: 200, body: ME } }),
  patchMe: own('patchMe', 'PATCH', '/me', { ...OWN, body: ME_PATCH_BODY, success: { status: 200, body: ME } }),
  changePassword: own('changePassword', 'POST', '/me/password', { ...OWN, body: PASSWORD_BODY, success: NOTHING }),
  listSessions: own('listSessions', 'GET', '/me/sessions', { ...OWN, success: { status: 200, body: SESSION_LIST } }),
  deleteSession: own('deleteSession', 'DELETE', '/me/sessions/{sessionId}', { ...OWN, success: NOTHING }),
  beginTotp: own('beginTotp', 'POST', '/me/totp', { ...FACTOR, success: { status: 200, body: TOTP_BEGUN } }),
  confirmTotp: own('confirmTotp', 'POST', '/me/totp/confirm', {
    ...FACTOR,
    body: TOTP_CONFIRM_BODY,
    success: { status: 200, body: TOTP_CONFIRMED },
  }),
  deleteTotp: own('deleteTotp', 'DELETE', '/me/totp', { ...FACTOR, success: NOTHING }),
  beginPasskeyOfMe: own('beginPasskeyOfMe', 'POST', '/me/passkeys/options', {
    ...FACTOR,
    success: { status: 200, body: PASSKEY_OPTIONS },
  }),
  createPasskey: own('createPasskey', 'POST', '/me/passkeys', {
    ...FACTOR,
    body: PASSKEY_BODY,
    success: { status: 201, body: PASSKEY_MADE },
  }),
  patchPasskey: own('patchPasskey', 'PATCH', '/me/passkeys/{passkeyId}', {
    ...OWN,
    body: PASSKEY_PATCH_BODY,
    success: { status: 200, body: PASSKEY },
  }),
  deletePasskey: own('deletePasskey', 'DELETE', '/me/passkeys/{passkeyId}', { ...FACTOR, success: NOTHING }),
  createRecoveryCodes: own('createRecoveryCodes', 'POST', '/me/recovery-codes', {
    ...FACTOR,
    success: { status: 200, body: RECOVERY_CODES_MADE },
  }),
  listMembers: own('listMembers', 'GET', '/members', { level: 'r', success: { status: 200, body: MEMBER_LIST } }),
  patchMember: own('patchMember', 'PATCH', '/members/{userId}', {
    level: 'a',
    confirms: true,
    body: MEMBER_PATCH_BODY,
    success: { status: 200, body: MEMBER },
  }),
  deleteMember: own('deleteMember', 'DELETE', '/members/{userId}', { level: 'a', confirms: true, success: NOTHING }),
  listInvitations: own('listInvitations', 'GET', '/invitations', {
    level: 'a',
    success: { status: 200, body: INVITATION_LIST },
  }),
  createInvitation: own('createInvitation', 'POST', '/invitations', {
    level: 'a',
    confirms: true,
    body: INVITATION_BODY,
    success: { status: 201, body: INVITATION },
  }),
  resendInvitation: own('resendInvitation', 'POST', '/invitations/{id}/send', {
    level: 'a',
    confirms: true,
    success: { status: 200, body: INVITATION },
  }),
  deleteInvitation: own('deleteInvitation', 'DELETE', '/invitations/{id}', { level: 'a', success: NOTHING }),
  patchSettings: own('patchSettings', 'PATCH', '/account', {
    level: 'a',
    confirms: true,
    body: SETTINGS_BODY,
    success: { status: 200, body: ACCOUNT },
  }),
  applyForVolume: own('applyForVolume', 'POST', '/account/application', {
    level: 'a',
    body: APPLICATION_BODY,
    success: { status: 200, body: ACCOUNT },
  }),
  createAccountKey: own('createAccountKey', 'POST', '/account/tokens', {
    level: 'a',
    confirms: true,
    body: TOKEN_BODY,
    success: { status: 201, body: TOKEN_MADE },
  }),
  listActs: own('listActs', 'GET', '/audit', {
    level: 'a',
    query: PAGE_QUERY,
    success: { status: 200, body: ACT_LIST },
  }),
  readChecklist: own('readChecklist', 'GET', '/checklist', { level: 'r', success: { status: 200, body: CHECKLIST } }),
  readOverview: own('readOverview', 'GET', '/servers/{serverId}/overview', {
    level: 'r',
    success: { status: 200, body: OVERVIEW },
  }),
  readContent: own('readContent', 'GET', '/servers/{serverId}/messages/{id}/content', {
    level: 'r',
    success: { status: 200, body: MESSAGE_CONTENT },
  }),
  readReceivedContent: own('readReceivedContent', 'GET', '/servers/{serverId}/inbound/{id}/content', {
    level: 'r',
    success: { status: 200, body: RECEIVED_MESSAGE },
  }),
  showMail: mailFrame(),
  sendTestMessage: own('sendTestMessage', 'POST', '/servers/{serverId}/test-message', {
    level: 'w',
    body: TEST_MESSAGE_BODY,
    success: { status: 200, body: EMAIL_ANSWER },
  }),
  sendAgain: own('sendAgain', 'POST', '/servers/{serverId}/messages/{id}/send-again', {
    level: 'w',
    body: SEND_AGAIN_BODY,
    success: { status: 200, body: EMAIL_ANSWER },
  }),
  lookAtDomain: own('lookAtDomain', 'POST', '/domains/{id}/look', {
    level: 'w',
    success: { status: 200, body: DOMAIN_CHECKED },
  }),
  hearServer: own('hearServer', 'GET', '/servers/{serverId}/events', {
    level: 'r',
    takesLastEventId: true,
    success: { status: 200, body: null, media: 'text/event-stream' },
  }),
  find: own('find', 'POST', '/find', { level: 'r', body: FIND_BODY, success: { status: 200, body: FOUND } }),
} as const

export type DashboardRouteName = keyof typeof DASHBOARD_ROUTES

/** Type of a route's body after validation; undefined if it takes none. */
export type DashboardBodyOf<Name extends DashboardRouteName> = Name extends DashboardRouteName
  ? (typeof DASHBOARD_ROUTES)[Name]['body'] extends infer One extends JSONSchema
    ? FromSchema<One>
    : undefined
  : never
