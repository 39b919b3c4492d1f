/**
 * domain-look - POST /dashboard/api/domains/{id}/look: what the page of an unverified domain asks by itself
 *
 * It is `POST /v1/domains/{id}/verify`, but for the log: a page that is left open looks every few seconds, and what it
 * has changed is logged, not that it has looked.
 *
 * Spec member.audit, domain.verify
 */

import { ROUTES } from '../../schemas/routes.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import { askAs, type DashboardHandler, sessionOf } from './deps.ts'
import { accountKeyOf, type MirrorDeps } from './mirror.ts'

/** POST /dashboard/api/domains/{id}/look */
export function makeLookAtDomain(deps: MirrorDeps): DashboardHandler<'lookAtDomain'> {
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
