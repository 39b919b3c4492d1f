/**
 * create-server - adds a server to an account, with its default stream and its first key.
 *
 * Spec server.create, server.limits
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import type { Token } from '../../state/api-key.ts'
import { auditOpsOf } from '../../state/audit.ts'
import { namesKey } from '../../state/keys.ts'
import { type ServerChanges, type ServerState, serverName } from '../../state/server.ts'
import { type CreatedServer, makeServer, type NewServer } from '../new-server.ts'
import { type Refused, refuse } from '../order/refusal.ts'
import { type AccountOrderer, accountOfOrder } from '../order/server.ts'

export interface CreateServerBody extends AccountOrderer {
  readonly server: NewServer
}

/** A server and what its limits follow from. */
export interface ServerReply {
  readonly kind: 'server'
  readonly server: ServerState
  readonly account: AccountState
  readonly accountCounters: AccountCounters | null
}

export interface CreateServerReply extends ServerReply {
  readonly created: CreatedServer
  /** Its first key. */
  readonly key: Token
}

export const createServer: CommandType<CreateServerBody, CreateServerReply | Refused> = {
  name: 'create-server',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: ({ accountId }) => [accountOwner(accountId)],
  facts: ({ accountId, server }, _states, { shard }) => [
    { read: 'fields', key: namesKey(shard, accountId), fields: [serverName(server.name)] },
  ],
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states)
    if ('kind' in account) return account
    const { accountId } = account
    const tooHigh = refuseLimits(body.server, account)
    if (tooHigh !== null) return tooHigh
    const known = facts.field(namesKey(context.shard, accountId), serverName(body.server.name))
    if (known !== null) return refuse('server_exists', { serverId: known })
    if (account.servers >= account.serverLimit) return refuse('server_limit', { max: account.serverLimit })
    const { server, ids, token, staged, due } = makeServer(body.server, accountId, context)
    const { name, mode, perMinuteLimit, monthlyCap } = server
    const subject = {
      targets: { accountId, serverId: ids.serverId, tokenId: ids.tokenId },
      before: null,
      after: { name, mode, perMinuteLimit, monthlyCap },
    }
    const changes = { servers: account.servers + 1 }
    return {
      kind: 'done',
      reply: {
        kind: 'server',
        server,
        account: { ...account, ...changes },
        accountCounters: states.counter<AccountCounters>(accountOwner(accountId)),
        created: ids,
        key: token,
      },
      events: [{ ref: accountRef(accountId), event: { type: 'patched', changes } }, ...(staged.events ?? [])],
      ops: [...(staged.ops ?? []), ...auditOpsOf(context, body.by, subject)],
      due: [due],
    }
  },
}

/** Refuses limits of a server that are wider than its account's; null when they hold. Spec server.limits */
export function refuseLimits(
  { perMinuteLimit, monthlyCap }: ServerChanges,
  account: AccountState,
): ReturnType<typeof refuse> | null {
  if ((perMinuteLimit ?? 0) > account.perMinuteLimit) return refuse('limit_too_high', { max: account.perMinuteLimit })
  return (monthlyCap ?? 0) > account.monthlyCap ? refuse('limit_too_high', { max: account.monthlyCap }) : null
}
