/**
 * audit - GET /v1/operator/audit
 *
 * Spec operator.audit
 */

import type { HandlerOf } from '../../http/request.ts'
import { refuse } from '../../http/respond.ts'
import { readAudit } from '../../views/operator/audit.ts'
import { pageOf } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** GET /v1/operator/audit */
export function makeReadAudit({ read, nowMs }: OperatorDeps): HandlerOf<'readAudit'> {
  return asOperator(read, async ({ query }) => {
    const seen = await readAudit(read, pageOf(query), nowMs())
    return seen === null ? refuse('unavailable') : { status: 200, json: seen }
  })
}
