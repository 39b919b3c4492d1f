/**
 * operator - what every operator route does first: the key is live now, and a write comes with who orders it
 *
 * An operator's key is no entity's, so it is looked up uncached: a revocation holds from its answer on.
 *
 * Spec key.revoke, operator.note, operator.audit
 */

import type { Ask } from '../../cluster/work.ts'
import type { RouteName } from '../../schemas/routes.ts'
import type { KeyOwner } from '../http/key.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import { type Answer, refuse } from '../http/respond.ts'
import type { OperatorAct } from '../state/audit.ts'
import { isOperatorLive } from '../views/account.ts'
import type { Reader } from '../views/key.ts'

/** What the operator routes need. */
export interface OperatorDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** Answers an operator's request. `by` goes into the body of every command that it gives. */
export type OperatorHandler = (request: EdgeRequest, by: OperatorAct) => Promise<Answer> | Answer

/** Makes the handler of an operator route. */
export function asOperator(read: Reader, handle: OperatorHandler): Handler {
  return async (request) => {
    const isLive = await isOperatorLive(read, request.key as KeyOwner)
    if (isLive === null) return refuse('unavailable')
    return isLive ? handle(request, actOf(request)) : refuse('unauthorized')
  }
}

function actOf({ key, route, body }: EdgeRequest): OperatorAct {
  const { note } = (body ?? {}) as { note?: string }
  return { actor: (key as KeyOwner).tokenId, act: route.name as RouteName, note: note ?? null }
}
