/**
 * operator - what every operator route does first: the key is live now, and a write comes with who orders it
 *
 * An operator's key is no entity's, so it is looked up uncached: a revocation holds from its answer on.
 *
 * Spec key.revoke, operator.note, operator.audit
 */

import type { Ask } from '../../cluster/work.ts'
import type { RouteName } from '../../schemas/routes.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import { type Answer, refuse } from '../http/respond.ts'
import type { OperatorAct } from '../state/audit.ts'
import { isOperatorLive } from '../views/account.ts'
import type { OperatorKey, Reader } from '../views/key.ts'

/** What the operator routes need. */
export interface OperatorDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** A request of an operator. */
export type OperatorRequest<Body> = EdgeRequest<OperatorKey, Body>

/** Answers an operator's request. `by` goes into the body of every command that it gives. */
export type OperatorHandler<Body> = (request: OperatorRequest<Body>, by: OperatorAct) => Promise<Answer> | Answer

/** Makes the handler of an operator route. */
export function asOperator<Body>(read: Reader, handle: OperatorHandler<Body>): Handler<OperatorRequest<Body>> {
  return async (request) => {
    const isLive = await isOperatorLive(read, request.key)
    if (isLive === null) return refuse('unavailable')
    return isLive ? handle(request, actOf(request)) : refuse('unauthorized')
  }
}

function actOf({ key, route, body }: EdgeRequest<OperatorKey>): OperatorAct {
  const { note } = (body ?? {}) as { note?: string }
  return { actor: key.tokenId, act: route.name as RouteName, note: note ?? null }
}
