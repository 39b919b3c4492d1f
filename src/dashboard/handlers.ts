/**
 * handlers - the handler of each route of the dashboard; a missing one does not compile
 */

import { DASHBOARD_ROUTES, type DashboardRouteName } from '../../schemas/dashboard/routes.ts'
import { NOT_SIGNED_IN } from '../http/dashboard-edge.ts'
import type { Handler } from '../http/request.ts'
import type { Answer } from '../http/respond.ts'
import { compressing } from '../routes/pages/compressed.ts'
import {
  makeApplyForVolume,
  makeCreateAccountKey,
  makeFind,
  makeListActs,
  makePatchSettings,
  makeReadChecklist,
} from './account-routes.ts'
import { type ApiProxyDeps, apiProxyHandlers } from './api-proxy.ts'
import { makeBeginConfirmation, makeConfirmSession } from './confirm-routes.ts'
import type { InlineDeps } from './content-routes.ts'
import {
  makeReadContent,
  makeReadReceivedContent,
  makeSendAgain,
  makeSendTestMessage,
  makeShowMail,
} from './content-routes.ts'
import type { DashboardDeps, DashboardHandler, DashboardRequest } from './deps.ts'
import { makeLookAtDomain } from './domain-look.ts'
import {
  makeBeginPasskeyOfMe,
  makeBeginTotp,
  makeConfirmTotp,
  makeCreatePasskey,
  makeCreateRecoveryCodes,
  makeDeletePasskey,
  makeDeleteTotp,
  makePatchPasskey,
} from './factor-routes.ts'
import { makeConsumeLink, makeOrderLink, makeReadLink } from './link-routes.ts'
import { type LiveDeps, makeHearServer } from './live.ts'
import { makeChangePassword, makeDeleteSession, makeListSessions, makePatchMe, makeReadMe } from './me-routes.ts'
import { makeReadOverview } from './overview.ts'
import {
  makeCreateInvitation,
  makeDeleteInvitation,
  makeDeleteMember,
  makeListInvitations,
  makeListMembers,
  makePatchMember,
  makeResendInvitation,
} from './people-routes.ts'
import { makeBeginPasskey, makeSignInByCode, makeSignInByPasskey } from './second-step.ts'
import { makeReadSession, makeSignIn, makeSignOut, makeSwitchAccount, touch } from './session-routes.ts'

type OwnHandlers = { readonly [Name in DashboardRouteName]: DashboardHandler<Name> }

/** All routes of the dashboard with their handlers. */
export function dashboardHandlers(deps: ApiProxyDeps & LiveDeps & InlineDeps) {
  const handlers = ownHandlers(deps)
  const own = Object.entries(DASHBOARD_ROUTES).map(([name, route]) => ({
    route,
    // The edge hands over only requests with a session and a body that the route takes.
    handle: compressing(
      inSession(deps, handlers[name as DashboardRouteName] as unknown as OwnHandler),
    ) as unknown as Handler,
  }))
  const mirrored = apiProxyHandlers(deps).map(({ route, handle }) => ({
    route,
    handle: compressing(handle) as Handler,
  }))
  return [...own, ...mirrored]
}

type OwnHandler = (request: DashboardRequest) => Promise<Answer> | Answer

/** Records the use of the session; one that ended in the meantime is refused. */
function inSession(deps: DashboardDeps, handle: OwnHandler): OwnHandler {
  return async (request) => {
    const isTaken = request.route.session?.level !== null
    if (isTaken && request.key !== null) touch(deps, request.key)
    const answer = await handle(request)
    return isTaken && 'json' in answer && isUnauthorized(answer.json) ? NOT_SIGNED_IN : answer
  }
}

function isUnauthorized(json: unknown): boolean {
  return (json as { readonly error?: string } | undefined)?.error === 'unauthorized'
}

function ownHandlers(deps: ApiProxyDeps & LiveDeps & InlineDeps): OwnHandlers {
  return {
    signIn: makeSignIn(deps),
    signInByCode: makeSignInByCode(deps),
    beginPasskey: makeBeginPasskey(deps),
    signInByPasskey: makeSignInByPasskey(deps),
    readSession: makeReadSession(deps),
    signOut: makeSignOut(deps),
    switchAccount: makeSwitchAccount(deps),
    beginConfirmation: makeBeginConfirmation(deps),
    confirmSession: makeConfirmSession(deps),
    orderLink: makeOrderLink(deps),
    readLink: makeReadLink(deps),
    consumeLink: makeConsumeLink(deps),
    readMe: makeReadMe(deps),
    patchMe: makePatchMe(deps),
    changePassword: makeChangePassword(deps),
    listSessions: makeListSessions(deps),
    deleteSession: makeDeleteSession(deps),
    beginTotp: makeBeginTotp(deps),
    confirmTotp: makeConfirmTotp(deps),
    deleteTotp: makeDeleteTotp(deps),
    beginPasskeyOfMe: makeBeginPasskeyOfMe(deps),
    createPasskey: makeCreatePasskey(deps),
    patchPasskey: makePatchPasskey(deps),
    deletePasskey: makeDeletePasskey(deps),
    createRecoveryCodes: makeCreateRecoveryCodes(deps),
    listMembers: makeListMembers(deps),
    patchMember: makePatchMember(deps),
    deleteMember: makeDeleteMember(deps),
    listInvitations: makeListInvitations(deps),
    createInvitation: makeCreateInvitation(deps),
    resendInvitation: makeResendInvitation(deps),
    deleteInvitation: makeDeleteInvitation(deps),
    patchSettings: makePatchSettings(deps),
    applyForVolume: makeApplyForVolume(deps),
    createAccountKey: makeCreateAccountKey(deps),
    listActs: makeListActs(deps),
    readChecklist: makeReadChecklist(deps),
    readOverview: makeReadOverview(deps),
    find: makeFind(deps),
    lookAtDomain: makeLookAtDomain(deps),
    hearServer: makeHearServer(deps),
    readContent: makeReadContent(deps),
    readReceivedContent: makeReadReceivedContent(deps),
    showMail: makeShowMail(deps),
    sendTestMessage: makeSendTestMessage(deps),
    sendAgain: makeSendAgain(deps),
  }
}
