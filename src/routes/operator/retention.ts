/**
 * retention - GET and PATCH /v1/operator/retention and /v1/operator/accounts/{accountId}/retention
 *
 * The installation's months are written to every shard, and to the one that is read last: after a refusal or
 * without an answer some shards may have the new value, and the order is repeated.
 *
 * Spec retention.settings, operator.note
 */

import { SHARDS, shardOf } from '../../../cluster/id.ts'
import type {
  InstallationRetentionReply,
  SetAccountRetentionBody,
  SetInstallationRetentionBody,
} from '../../actors/retention/set-retention.ts'
import type { HandlerOf } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import { INSTALLATION_SHARD } from '../../state/log-retention.ts'
import { readAccountOf } from '../../views/resource-access.ts'
import { formatInstallationRetention, readInstallationMonths } from '../../views/retention.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'
import { answerAccount, orderRetention } from '../retention/retention.ts'

/** Shards that are written at once. */
const SHARDS_AT_ONCE = 32

/** GET /v1/operator/accounts/{accountId}/retention */
export function makeReadAccountRetention({ read }: OperatorDeps): HandlerOf<'readAccountRetentionAsOperator'> {
  return asOperator(read, async ({ params }) => {
    const seen = await readAccountOf(read, null, params.accountId ?? '')
    return typeof seen === 'string' ? refusalReply(seen) : answerAccount(read, seen)
  })
}

/** PATCH /v1/operator/accounts/{accountId}/retention */
export function makePatchAccountRetention(deps: OperatorDeps): HandlerOf<'patchAccountRetentionAsOperator'> {
  return asOperator(deps.read, ({ params, body }, by) => {
    const { note: _note, ...changes } = body
    const accountId = (params.accountId ?? '').toLowerCase()
    if (shardOf(accountId) === null) return refusalReply('not_found')
    const order: SetAccountRetentionBody = { accountId, keyHash: null, by, changes }
    return orderRetention(deps, accountId, { name: 'set-account-retention', body: order })
  })
}

/** GET /v1/operator/retention */
export function makeReadInstallationRetention({ read }: OperatorDeps): HandlerOf<'readInstallationRetention'> {
  return asOperator(read, async () => {
    const months = await readInstallationMonths(read, INSTALLATION_SHARD)
    return months === undefined
      ? refusalReply('unavailable')
      : { status: 200, json: formatInstallationRetention(months) }
  })
}

/** PATCH /v1/operator/retention */
export function makePatchInstallationRetention(deps: OperatorDeps): HandlerOf<'patchInstallationRetention'> {
  return asOperator(deps.read, async ({ body }, by) => {
    const { note: _note, ...changes } = body
    const write = async (shard: number): Promise<Answer | InstallationRetentionReply> => {
      const order: SetInstallationRetentionBody = { ...changes, by: shard === INSTALLATION_SHARD ? by : null }
      const command = { name: 'set-installation-retention', body: order }
      const { reply, answer } = await giveOrder<InstallationRetentionReply>(deps, shard, command)
      return answer ?? reply
    }
    const others = Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => shard !== INSTALLATION_SHARD)
    for (let from = 0; from < others.length; from += SHARDS_AT_ONCE) {
      const written = await Promise.all(others.slice(from, from + SHARDS_AT_ONCE).map(write))
      const failed = written.find((one) => !('kind' in one))
      if (failed !== undefined) return failed as Answer
    }
    const last = await write(INSTALLATION_SHARD)
    if (!('kind' in last)) return last
    return { status: 200, json: formatInstallationRetention(last.logRetentionMonths) }
  })
}
