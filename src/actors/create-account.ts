/**
 * create-account - makes an account with its first servers, their default streams and their first keys.
 *
 * Keys come as hash and prefix; whoever ordered the account made the values and shows them.
 *
 * Spec account.create
 */

import type { CommandType, Context, Due, Op, Staged } from '../../cluster/behaviour.ts'
import { assert } from '../../cluster/fault.ts'
import { ACCOUNT_DEFAULTS, type AccountState, type AccountStatus, accountRef } from './account.ts'
import { FIRST_KEY_NAME, type NewKey, newKeyOps } from './api-key.ts'
import { accountsKey, namesKey } from './keyspace.ts'
import { firstPeopleDue } from './people.ts'
import { type ServerMode, type ServerState, serverRef } from './server.ts'
import { DEFAULT_STREAM_NAME, makeDefaultStream, streamRef } from './stream.ts'
import { sweepDue } from './sweep.ts'

export interface CreateAccountBody {
  readonly name: string
  readonly status: AccountStatus
  readonly accountKey: NewKey | null
  /** Only on shard 0, where the operator's keys live. */
  readonly operatorKey: NewKey | null
  readonly servers: readonly { readonly name: string; readonly mode: ServerMode; readonly key: NewKey }[]
}

export interface CreatedServer {
  readonly serverId: string
  readonly streamId: string
  readonly tokenId: string
}

export interface CreateAccountReply {
  readonly kind: 'created'
  readonly accountId: string
  /** Ids of the account's and the operator's key, where ordered. */
  readonly accountTokenId: string | null
  readonly operatorTokenId: string | null
  /** In the order of the command. */
  readonly servers: readonly CreatedServer[]
}

export const createAccount: CommandType<CreateAccountBody, CreateAccountReply> = {
  name: 'create-account',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide(body, _states, _facts, context) {
    assert(body.operatorKey === null || context.shard === 0, 'Operator keys live on shard 0', { shard: context.shard })
    const { shard, nowMs } = context
    const accountId = context.newId()
    const accountTokenId = body.accountKey === null ? null : context.newId()
    const operatorTokenId = body.operatorKey === null ? null : context.newId()
    const made = body.servers.map((server) => makeServer(server, accountId, context))
    const account = makeAccount(body, { accountId, accountTokenId, createdAtMs: nowMs })
    const ops: Op[] = [{ key: accountsKey(shard), write: 'ZADD', args: [String(nowMs), accountId] }]
    const owner = { name: FIRST_KEY_NAME, createdAtMs: nowMs, serverId: null, mode: null, streamId: null }
    if (body.accountKey !== null && accountTokenId !== null)
      ops.push(...newKeyOps(shard, body.accountKey, { ...owner, kind: 'account', accountId, tokenId: accountTokenId }))
    if (body.operatorKey !== null && operatorTokenId !== null) {
      const operator = { ...owner, kind: 'operator' as const, accountId: null, tokenId: operatorTokenId }
      ops.push(...newKeyOps(shard, body.operatorKey, operator))
    }
    return {
      kind: 'done',
      reply: { kind: 'created', accountId, accountTokenId, operatorTokenId, servers: made.map(({ ids }) => ids) },
      events: [
        { ref: accountRef(accountId), event: { type: 'created', account } },
        ...made.flatMap(({ staged }) => staged.events ?? []),
      ],
      ops: [...ops, ...made.flatMap(({ staged }) => staged.ops ?? [])],
      due: [firstPeopleDue(accountId, nowMs), ...made.map(({ due }) => due)],
    }
  },
}

function makeAccount(
  { name, status, accountKey }: CreateAccountBody,
  ids: { accountId: string; accountTokenId: string | null; createdAtMs: number },
): AccountState {
  const { accountId, accountTokenId, createdAtMs } = ids
  const keys =
    accountKey === null || accountTokenId === null ? [] : [{ tokenId: accountTokenId, hash: accountKey.hash }]
  return { ...ACCOUNT_DEFAULTS, accountId, name, status, createdAtMs, keys }
}

function makeServer(
  { name, mode, key }: CreateAccountBody['servers'][number],
  accountId: string,
  context: Context,
): { ids: CreatedServer; staged: Staged; due: Due } {
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
    perMinuteLimit: null,
    monthlyCap: null,
    defaultStreamId: streamId,
    keys: [{ tokenId, hash: key.hash }],
  }
  const owner = {
    kind: 'server' as const,
    accountId,
    serverId,
    tokenId,
    mode,
    streamId,
    name: FIRST_KEY_NAME,
    createdAtMs: nowMs,
  }
  const names = [`server/${name}`, serverId, `stream/${serverId}/${DEFAULT_STREAM_NAME}`, streamId]
  const staged: Staged = {
    events: [
      { ref: serverRef(serverId), event: { type: 'created', server } },
      { ref: streamRef(streamId), event: { type: 'created', stream: makeDefaultStream(streamId, serverId, nowMs) } },
    ],
    ops: [{ key: namesKey(shard, accountId), write: 'HSET', args: names }, ...newKeyOps(shard, key, owner)],
  }
  return { ids: { serverId, streamId, tokenId }, staged, due: sweepDue(serverId, nowMs) }
}
