/**
 * operator-accounts - PATCH /v1/operator/accounts/{accountId}: what the operator changes of an account
 *
 * The change holds from its answer on: the next request is decided with it.
 *
 * Spec operator.account, operator.note
 */

import { shardOf } from '../../cluster/id.ts'
import type { AccountPatchBody } from '../../schemas/account.ts'
import type { AccountActReply } from '../actors/change-account.ts'
import type { PatchAccountBody } from '../actors/patch-account.ts'
import type { Refused } from '../actors/refusal.ts'
import type { Handler } from '../edge/request.ts'
import { refuse } from '../edge/respond.ts'
import { formatAccount } from '../views/account.ts'
import { answerOf, answerRefused } from './answer.ts'
import { asOperator, type OperatorDeps } from './operator.ts'

/** PATCH /v1/operator/accounts/{accountId} */
export function makePatchAccount(deps: OperatorDeps): Handler {
  return asOperator(deps.read, async ({ params, body }, by) => {
    const accountId = (params.accountId ?? '').toLowerCase()
    const shard = shardOf(accountId)
    if (shard === null) return refuse('not_found')
    const { note: _note, ...changes } = body as AccountPatchBody
    const order: PatchAccountBody = { accountId, changes, by }
    const result = await deps.ask(shard, { name: 'patch-account', cmdId: deps.newCmdId(), body: order })
    return answerOf<AccountActReply | Refused>(result, (reply) =>
      reply.kind === 'refused'
        ? answerRefused(reply, deps.nowMs())
        : { status: 200, json: formatAccount(reply.account, reply.counters, deps.nowMs()) },
    )
  })
}
