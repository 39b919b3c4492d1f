/**
 * create-server - adds a server to an account, with its default stream, its first key, its names and its sweep.
 *
 * Keys: `names:<account>`, `servers:<account>`, `key:<sha256>`, `tokens:<server>`
 *
 * Spec server.create, server.limits
 */

import type { CommandType, Context, Due, Staged } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import { FIRST_KEY_NAME, type NewKey, newKeyOps, type StoredToken } from '../../state/api-key.ts'
import { auditOpsOf } from '../../state/audit.ts'
import { namesKey, serversKey } from '../../state/keys.ts'
import { type ServerChanges, type ServerMode, type ServerState, serverName, serverRef } from '../../state/server.ts'
import { makeDefaultStream, newStreamStaged } from '../../state/stream.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { type AccountOrderer, accountOfOrder } from '../authorization/server.ts'
import { sweepDue } from '../message/sweep.ts'

export interface CreateServerBody extends AccountOrderer {
  readonly server: NewServer
}

/** A server, and the data of its limits. */
export interface ServerReply {
  readonly kind: 'server'
  readonly server: ServerState
  readonly account: AccountState
  readonly accountCounters: AccountCounters | null
}

export interface CreateServerReply extends ServerReply {
  readonly created: CreatedServer
  /** Its first key. */
  readonly key: StoredToken
}

export const createServer: CommandType<CreateServerBody, CreateServerReply | Refused> = {
  name: 'create-server',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: ({ accountId }) => [accountOwner(accountId)],
  facts: ({ accountId, server }, _states, { shard }) => [
    { read: 'fields', key: namesKey(shard, accountId), fields: [serverName(server.name)] },
  ],
  decide(body, states, facts, context) {
    const account = accountOfOrder(body, states, { facts, context })
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

export interface NewServer {
  readonly name: string
  readonly mode: ServerMode
  readonly key: NewKey
  readonly perMinuteLimit?: number | null
  readonly monthlyCap?: number | null
}

export interface CreatedServer {
  readonly serverId: string
  readonly streamId: string
  readonly tokenId: string
}

/** Refuses limits of a server that are wider than its account's; null when they hold. Spec server.limits */
export function refuseLimits(
  { perMinuteLimit, monthlyCap }: ServerChanges,
  account: AccountState,
): ReturnType<typeof refuse> | null {
  if ((perMinuteLimit ?? 0) > account.perMinuteLimit) return refuse('limit_too_high', { max: account.perMinuteLimit })
  return (monthlyCap ?? 0) > account.monthlyCap ? refuse('limit_too_high', { max: account.monthlyCap }) : null
}

/** A server of the account, and the writes that make it. */
export function makeServer(
  { name, mode, key, perMinuteLimit = null, monthlyCap = null }: NewServer,
  accountId: string,
  context: Context,
): { server: ServerState; ids: CreatedServer; token: StoredToken; staged: Staged; due: Due } {
  const { shard, nowMs } = context
  const serverId = context.newId()
  const streamId = context.newId()
  const tokenId = context.newId()
  const server: ServerState = {
    serverId,
    accountId,
    name,
    mode,
    createdAtMs: nowMs,
    perMinuteLimit,
    monthlyCap,
    defaultStreamId: streamId,
    keys: [{ tokenId, hash: key.hash }],
  }
  const grant = { kind: 'server' as const, accountId, serverId, tokenId, mode, streamId, createdAtMs: nowMs }
  const stream = newStreamStaged(makeDefaultStream(streamId, serverId, nowMs), { shard, accountId })
  const staged: Staged = {
    events: [{ ref: serverRef(serverId), event: { type: 'created', server } }, ...stream.events],
    ops: [
      { key: namesKey(shard, accountId), write: 'HSET', args: [serverName(name), serverId] },
      ...stream.ops,
      { key: serversKey(shard, accountId), write: 'ZADD', args: [String(msOf(serverId)), serverId] },
      ...newKeyOps(shard, key, { ...grant, name: FIRST_KEY_NAME }),
    ],
  }
  const token = { name: FIRST_KEY_NAME, ...key, createdAtMs: nowMs, revokedAtMs: null }
  return { server, ids: { serverId, streamId, tokenId }, token, staged, due: sweepDue(serverId, nowMs) }
}
