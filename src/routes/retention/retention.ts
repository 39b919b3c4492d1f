/**
 * retention - for how long text and HTML are kept: /v1/account/retention, /v1/servers/{serverId}/retention,
 * /v1/streams/{id}/retention
 *
 * Spec retention.settings
 */

import { homeShard, shardOf } from '../../../cluster/id.ts'
import type { PublicRouteName } from '../../../schemas/routes.ts'
import type {
  RetentionReply,
  SetServerRetentionBody,
  SetStreamRetentionBody,
} from '../../actors/retention/set-retention.ts'
import type { Handlers } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import type { Reader } from '../../views/key.ts'
import { readAccountOf, readServerOf, type SeenAccount } from '../../views/resource-access.ts'
import {
  formatAccountRetention,
  formatContentRetention,
  readInstallationMonths,
  readStreamOwners,
} from '../../views/retention.ts'
import { giveOrder, type Order, type OrderDeps } from '../answer.ts'

export interface RetentionDeps extends OrderDeps {
  readonly read: Reader
}

type RetentionRoute = Extract<PublicRouteName, `${string}Retention`>

const MISPLACED = {
  issues: [{ path: 'sentContentDays', message: 'Inbound streams have contentRetentionDays instead' }],
}

/** The handlers of the retention of accounts, servers and streams. */
export function retentionHandlers(deps: RetentionDeps): Pick<Handlers<PublicRouteName>, RetentionRoute> {
  const { read } = deps
  return {
    async readAccountRetention({ key }) {
      const seen = await readAccountOf(read, key, '')
      return typeof seen === 'string' ? refusalReply(seen) : answerAccount(read, seen)
    },
    patchAccountRetention({ key, body }) {
      const { accountId, hash } = key
      return orderRetention(deps, accountId, {
        name: 'set-account-retention',
        body: { accountId, keyHash: hash, changes: body },
      })
    },
    async readServerRetention({ key, params }) {
      const { accountId } = key
      const seen = await readServerOf(read, key, { accountId, serverId: params.serverId ?? '' })
      if (typeof seen === 'string') return refusalReply(seen)
      const { account, server } = seen
      if (server === null) return refusalReply('not_found')
      return { status: 200, json: formatContentRetention({ account, server }, null) }
    },
    patchServerRetention({ key, params, body }) {
      const { accountId, hash } = key
      const serverId = ownId(params.serverId ?? '', accountId)
      const order: SetServerRetentionBody = { accountId, serverId, keyHash: hash, changes: body }
      return orderRetention(deps, accountId, { name: 'set-server-retention', body: order })
    },
    async readStreamRetention({ key, params }) {
      const seen = await readStreamOwners(read, key, params.id ?? '')
      if (typeof seen === 'string') return refusalReply(seen)
      const { account, server, stream } = seen
      return { status: 200, json: formatContentRetention({ account, server }, stream) }
    },
    patchStreamRetention({ key, params, body }) {
      const { accountId, serverId, hash } = key
      const streamId = ownId(params.id ?? '', accountId, serverId)
      const order: SetStreamRetentionBody = { accountId, serverId, keyHash: hash, streamId, changes: body }
      return orderRetention(deps, accountId, { name: 'set-stream-retention', body: order })
    },
  }
}

/** The retention of an account that was read, also for operators. */
export async function answerAccount(read: Reader, { shard, account }: SeenAccount): Promise<Answer> {
  const months = await readInstallationMonths(read, shard)
  return months === undefined
    ? refusalReply('unavailable')
    : { status: 200, json: formatAccountRetention(account, months) }
}

/** Sends the order and answers with the resulting retention, also for operators. */
export async function orderRetention(deps: OrderDeps, accountId: string, order: Order): Promise<Answer> {
  const { reply, answer, refused } = await giveOrder<RetentionReply>(deps, homeShard(accountId), order)
  if (refused?.code === 'invalid_request') return refusalReply('invalid_request', MISPLACED)
  if (answer !== undefined) return answer
  const { months, account, server, stream } = reply
  const json =
    server === null ? formatAccountRetention(account, months) : formatContentRetention({ account, server }, stream)
  return { status: 200, json }
}

/** An id of another shard would name a key that does not lie here: another id of the account names no such object. */
function ownId(id: string, accountId: string, noSuch: string = accountId): string {
  const lower = id.toLowerCase()
  return shardOf(lower) === homeShard(accountId) ? lower : noSuch
}
