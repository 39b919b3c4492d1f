/**
 * audit - GET /v1/operator/audit
 *
 * Spec operator.audit
 */

import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { readAudit } from '../../views/operator/audit.ts'
import { parsePage } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

/** GET /v1/operator/audit */
export function makeReadAudit({ read, nowMs }: OperatorDeps): HandlerOf<'readAudit'> {
  return asOperator(read, async ({ query }) => {
    const seen = await readAudit(read, parsePage(query), nowMs())
    return seen === null ? refusalReply('unavailable') : { status: 200, json: seen }
  })
}
