/**
 * retention - GET and PATCH /v1/operator/accounts/{accountId}/retention
 *
 * Spec retention.settings, operator.note
 */

import { shardOf } from '../../../cluster/id.ts'
import type { SetAccountRetentionBody } from '../../actors/retention/set-retention.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refuse } from '../../http/respond.ts'
import { readAccountOf } from '../../views/owned.ts'
import { formatAccountRetention } from '../../views/retention.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'
import { orderRetention } from '../retention/retention.ts'

/** GET /v1/operator/accounts/{accountId}/retention */
export function makeReadAccountRetention({ read }: OperatorDeps): HandlerOf<'readAccountRetentionAsOperator'> {
  return asOperator(read, async ({ params }) => {
    const seen = await readAccountOf(read, null, params.accountId ?? '')
    return typeof seen === 'string' ? refuse(seen) : { status: 200, json: formatAccountRetention(seen.account) }
  })
}

/** PATCH /v1/operator/accounts/{accountId}/retention */
export function makePatchAccountRetention(deps: OperatorDeps): HandlerOf<'patchAccountRetentionAsOperator'> {
  return asOperator(deps.read, ({ params, body }, by) => {
    const { note: _note, ...changes } = body
    const accountId = (params.accountId ?? '').toLowerCase()
    if (shardOf(accountId) === null) return refuse('not_found')
    const order: SetAccountRetentionBody = { accountId, keyHash: null, by, changes }
    return orderRetention(deps, accountId, { name: 'set-account-retention', body: order })
  })
}
