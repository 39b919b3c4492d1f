/**
 * audit - GET /v1/operator/audit
 *
 * Spec operator.audit
 */

import type { Handler } from '../edge/request.ts'
import { refuse } from '../edge/respond.ts'
import { readAudit } from '../views/audit.ts'
import { asOperator, type OperatorDeps } from './operator.ts'
import { pageOf } from './page.ts'

/** GET /v1/operator/audit */
export function makeReadAudit({ read, nowMs }: OperatorDeps): Handler {
  return asOperator(read, async ({ query }) => {
    const seen = await readAudit(read, pageOf(query), nowMs())
    return seen === null ? refuse('unavailable') : { status: 200, json: seen }
  })
}
