/**
 * as-operator - the first checks of every operator route: the key is active now and its role suffices, and a write
 * comes with the operator that orders it
 *
 * An operator's key belongs to no entity, so it is read without a cache, and a revocation holds from its answer on.
 *
 * Spec key.revoke, operator.session, operator.note, operator.audit
 */

import type { Ask } from '../../cluster/work.ts'
import { includesRole, roleOfRoute } from '../../schemas/operator/role.ts'
import type { RouteName } from '../../schemas/routes.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { OperatorAct } from '../state/audit.ts'
import { readActiveRole } from '../views/account.ts'
import type { OperatorKey, Reader } from '../views/key.ts'

/** Dependencies of the operator routes. */
export interface OperatorDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** A request of an operator. */
export type OperatorRequest<Body> = EdgeRequest<OperatorKey, Body>

/** The refusal of an operator session that would create something that outlives it. */
export const TAKES_A_KEY = refusalReply(
  'wrong_token_kind',
  {},
  'Wrong kind of key: this operation takes an operator key (ok_), not an operator session',
)

/** Answers an operator's request. `by` goes into the body of every command that it gives. */
export type OperatorHandler<Body> = (request: OperatorRequest<Body>, by: OperatorAct) => Promise<Answer> | Answer

/** Makes the handler of an operator route. */
export function asOperator<Body>(read: Reader, handle: OperatorHandler<Body>): Handler<OperatorRequest<Body>> {
  return async (request) => {
    const role = await readActiveRole(read, request.key)
    if (role === null) return refusalReply('unavailable')
    if (role === false) return refusalReply('unauthorized')
    const required = roleOfRoute(request.route)
    return includesRole(role, required)
      ? handle(request, actOf(request))
      : refusalReply('role_not_allowed', { role, required })
  }
}

/**
 * Makes the handler of a route that makes a key, a link or a session, or has one mailed: a session is refused, so that
 * a stolen one is useful only for its lifetime.
 */
export function withOwnKey<Body>(read: Reader, handle: OperatorHandler<Body>): Handler<OperatorRequest<Body>> {
  return asOperator(read, (request, by) => (isOwnKey(request.key) ? handle(request, by) : TAKES_A_KEY))
}

/** Whether it is a key itself, and no session of one. */
export function isOwnKey({ operatorHash }: OperatorKey): boolean {
  return operatorHash === null
}

function actOf({ key, route, body }: EdgeRequest<OperatorKey>): OperatorAct {
  const { note } = (body ?? {}) as { note?: string }
  return { actor: key.tokenId, act: route.name as RouteName, note: note ?? null }
}
