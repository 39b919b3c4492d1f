/**
 * new-server - all that a server begins with: its state, its default stream, its first key, its names, its sweep.
 *
 * Keys: `names:<account>`, `servers:<account>`, `key:<sha256>`, `tokens:<server>`
 *
 * Spec server.create
 */

import type { Context, Due, Staged } from '../../cluster/behaviour.ts'
import { msOf } from '../../cluster/id.ts'
import { FIRST_KEY_NAME, type NewKey, newKeyOps, type Token } from '../state/api-key.ts'
import { namesKey, serversKey } from '../state/keys.ts'
import { type ServerMode, type ServerState, serverName, serverRef } from '../state/server.ts'
import { makeDefaultStream, newStreamStaged } from '../state/stream.ts'
import { sweepDue } from './message/sweep.ts'

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

/** A server of the account, and the writes that make it. */
export function makeServer(
  { name, mode, key, perMinuteLimit = null, monthlyCap = null }: NewServer,
  accountId: string,
  context: Context,
): { server: ServerState; ids: CreatedServer; token: Token; staged: Staged; due: Due } {
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
