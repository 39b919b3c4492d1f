/**
 * patch-server - changes a server's name and its own limits; they count from the next request.
 *
 * Spec server.change, server.limits
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { type AccountCounters, accountOwner } from '../../state/account.ts'
import { auditOpsOf, computeDifference } from '../../state/audit.ts'
import { namesKey } from '../../state/keys.ts'
import { type ServerChanges, type ServerCounters, serverName, serverOwner, serverRef } from '../../state/server.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { accountOfOrder, type ServerOrder, serverOfOrder, serverOrderEntities } from '../authorization/server.ts'
import { refuseLimits, type ServerReply } from './create-server.ts'

export interface PatchServerBody extends ServerOrder {
  /** Any subset. */
  readonly changes: ServerChanges
}

export interface PatchServerReply extends ServerReply {
  readonly counters: ServerCounters | null
}

export const patchServer: CommandType<PatchServerBody, PatchServerReply | Refused> = {
  name: 'patch-server',
  entities: serverOrderEntities,
  counters: ({ accountId, serverId }) => [accountOwner(accountId), serverOwner(serverId)],
  facts: ({ accountId, changes: { name } }, _states, { shard }) =>
    name === undefined ? [] : [{ read: 'fields', key: namesKey(shard, accountId), fields: [serverName(name)] }],
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states, { facts, context })
    if ('kind' in account) return account
    const server = serverOfOrder(body, states)
    if (server === null) return refuse('not_found')
    const { accountId, serverId, changes } = body
    const tooHigh = refuseLimits(changes, account)
    if (tooHigh !== null) return tooHigh
    const { name = server.name } = changes
    const names = namesKey(context.shard, accountId)
    const known = name === server.name ? null : facts.field(names, serverName(name))
    if (known !== null) return refuse('server_exists', { serverId: known })
    const changed = { ...server, ...changes }
    const ops: Op[] = auditOpsOf(context, body.by, {
      targets: { accountId, serverId },
      ...computeDifference(server, changed),
    })
    if (name !== server.name) {
      ops.push({ key: names, write: 'HDEL', args: [serverName(server.name)] })
      ops.push({ key: names, write: 'HSET', args: [serverName(name), serverId] })
    }
    return {
      kind: 'done',
      reply: {
        kind: 'server',
        server: changed,
        account,
        accountCounters: states.counter<AccountCounters>(accountOwner(accountId)),
        counters: states.counter<ServerCounters>(serverOwner(serverId)),
      },
      events:
        Object.keys(changes).length === 0 ? [] : [{ ref: serverRef(serverId), event: { type: 'patched', changes } }],
      ops,
    }
  },
}
