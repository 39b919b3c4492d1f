/**
 * remove-server - removes a server: its keys are revoked at once, its name is free again, it is shown no more.
 *
 * What is queued still goes out, and what it has stored leaves with its age: the sweep goes on.
 *
 * Spec server.remove
 */

import type { CommandType, Fact, Op } from '../../cluster/behaviour.ts'
import { accountRef } from './account.ts'
import { revokedKeyOps, unpackToken } from './api-key.ts'
import { auditOpsOf } from './audit.ts'
import { namesKey, serversKey, tokensKey } from './keyspace.ts'
import { type Refused, refuse } from './refusal.ts'
import { type ServerState, serverName, serverRef } from './server.ts'
import { accountOfOrder, type ServerOrder, serverOfOrder, serverOrderEntities } from './server-order.ts'

export const removeServer: CommandType<ServerOrder, { readonly kind: 'removed' } | Refused> = {
  name: 'remove-server',
  entities: serverOrderEntities,
  counters: () => [],
  facts: (body, states, { shard }) => {
    const server = states.get<ServerState | null>(serverRef(body.serverId))
    return server === null || server.keys.length === 0 ? [] : [tokensFact(shard, server)]
  },
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states)
    if ('kind' in account) return account
    const server = serverOfOrder(body, states)
    if (server === null) return refuse('not_found')
    const { accountId, serverId, name, mode } = server
    const { shard, nowMs } = context
    const ops: Op[] = server.keys.flatMap(({ tokenId }) => {
      const packed = facts.field(tokensKey(shard, serverId), tokenId)
      if (packed === null) return []
      return revokedKeyOps(shard, serverId, { tokenId, token: { ...unpackToken(packed), revokedAtMs: nowMs } })
    })
    ops.push({ key: namesKey(shard, accountId), write: 'HDEL', args: [serverName(name)] })
    ops.push({ key: serversKey(shard, accountId), write: 'ZREM', args: [serverId] })
    ops.push(...auditOpsOf(context, body.by, { targets: { accountId, serverId }, before: { name, mode }, after: null }))
    return {
      kind: 'done',
      reply: { kind: 'removed' },
      events: [
        { ref: serverRef(serverId), event: { type: 'removed', removedAtMs: nowMs } },
        { ref: accountRef(accountId), event: { type: 'patched', changes: { servers: account.servers - 1 } } },
      ],
      ops,
    }
  },
}

function tokensFact(shard: number, { serverId, keys }: ServerState): Fact {
  return { read: 'fields', key: tokensKey(shard, serverId), fields: keys.map(({ tokenId }) => tokenId) }
}
