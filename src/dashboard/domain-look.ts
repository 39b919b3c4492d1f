/**
 * domain-look - POST /dashboard/api/domains/{id}/look: the automatic check by the page of an unverified domain
 *
 * Like `POST /v1/domains/{id}/verify`, except for the log, because an open page checks every few seconds, and only
 * changes are logged, not checks.
 *
 * Spec member.audit, domain.verify
 */

import { ROUTES } from '../../schemas/routes.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import { type ApiProxyDeps, accountKeyOf } from './api-proxy.ts'
import { askAs, type DashboardHandler, sessionOf } from './deps.ts'

/** POST /dashboard/api/domains/{id}/look */
export function makeLookAtDomain(deps: ApiProxyDeps): DashboardHandler<'lookAtDomain'> {
  return (request) => {
    const route = ROUTES.verifyDomain
    const asked: EdgeRequest = Object.assign(Object.create(request), {
      key: accountKeyOf(sessionOf(request), request.route.session?.level ?? 'a'),
      route,
    })
    const { key, params } = request
    const handlers = deps.handlersWith(askAs(deps.ask, { key, params, route }, { isLook: true }))
    return (handlers.verifyDomain as Handler)(asked)
  }
}
