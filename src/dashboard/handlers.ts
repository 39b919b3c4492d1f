/**
 * handlers - which handler answers which route of the dashboard; every route has one, the compiler says so when not
 */

import { DASHBOARD_ROUTES, type DashboardRouteName } from '../../schemas/dashboard/routes.ts'
import type { Handler } from '../http/request.ts'
import type { DashboardDeps, DashboardHandler } from './deps.ts'
import { makeConsumeLink, makeOrderLink, makeReadLink } from './link-routes.ts'
import { type MirrorDeps, mirrorHandlers } from './mirror.ts'
import { makeConfirmSession, makeReadSession, makeSignIn, makeSignOut, makeSwitchAccount } from './session-routes.ts'

type OwnHandlers = { readonly [Name in DashboardRouteName]: DashboardHandler<Name> }

/** All routes of the dashboard with their handlers. */
export function dashboardHandlers(deps: MirrorDeps) {
  const handlers = ownHandlers(deps)
  const own = Object.entries(DASHBOARD_ROUTES).map(([name, route]) => ({
    route,
    // The edge hands over only requests with a session and a body that the route takes.
    handle: handlers[name as DashboardRouteName] as unknown as Handler,
  }))
  return [...own, ...mirrorHandlers(deps)]
}

function ownHandlers(deps: DashboardDeps): OwnHandlers {
  return {
    signIn: makeSignIn(deps),
    readSession: makeReadSession(deps),
    signOut: makeSignOut(deps),
    switchAccount: makeSwitchAccount(deps),
    confirmSession: makeConfirmSession(deps),
    orderLink: makeOrderLink(deps),
    readLink: makeReadLink(deps),
    consumeLink: makeConsumeLink(deps),
  }
}
