/**
 * retention - for how long content is kept, as account, server and streams say now
 *
 * Keys: `account:<id>`, `server:<id>`, `stream:<id>`
 *
 * Spec retention.settings
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { homeShard } from '../../cluster/id.ts'
import type { AccountRetention, ContentRetention } from '../../schemas/retention/retention.ts'
import { type AccountState, accountRef } from '../state/account.ts'
import { type ContentOwners, sentContentDays } from '../state/message/retention.ts'
import { type ServerState, serverRef } from '../state/server.ts'
import { type StreamState, streamRef } from '../state/stream.ts'
import { entityFact, stateOf, type Unseen } from './entity.ts'
import type { Reader, ServerKey } from './key.ts'
import { readStream } from './stream.ts'

/** The days of streams of a server; null: the store did not answer. */
export async function readContentDays(
  read: Reader,
  of: {
    readonly owner: Pick<ServerKey, 'accountId' | 'serverId' | 'mode'>
    readonly shard: number
    readonly streamIds: readonly string[]
  },
): Promise<((streamId: string) => number) | null> {
  const { owner, shard } = of
  const { accountId, serverId, mode } = owner
  const seen = await read(shard, [entityFact(shard, accountRef(accountId)), entityFact(shard, serverRef(serverId))])
  if (seen === null) return null
  const server = stateOf<ServerState>(seen[1]) ?? { mode }
  const owners = { account: stateOf<AccountState>(seen[0]), server }
  const inherited = sentContentDays(owners, null)
  if ((owners.server as ServerState).streamContentDays === undefined) return () => inherited
  const streamIds = [...new Set(of.streamIds)]
  const facts = streamIds.map((id): FactOf<'last'> => entityFact(shard, streamRef(id)))
  const streams = await read(shard, facts)
  if (streams === null) return null
  const days = new Map(streamIds.map((id, at) => [id, sentContentDays(owners, stateOf<StreamState>(streams[at]))]))
  return (streamId) => days.get(streamId) ?? inherited
}

/** A stream of the key's server with what its retention follows from. */
export async function readStreamOwners(
  read: Reader,
  owner: ServerKey,
  streamId: string,
): Promise<{ account: AccountState; server: ServerState; stream: StreamState } | Unseen | 'not_found'> {
  const stream = await readStream(read, owner, streamId)
  if (stream === null || typeof stream === 'string') return stream ?? 'not_found'
  const { accountId, serverId } = owner
  const shard = homeShard(accountId)
  const seen = await read(shard, [entityFact(shard, accountRef(accountId)), entityFact(shard, serverRef(serverId))])
  if (seen === null) return 'unavailable'
  const account = stateOf<AccountState>(seen[0])
  const server = stateOf<ServerState>(seen[1])
  return account === null || server === null ? 'unauthorized' : { account, server, stream }
}

/** The retention of a stream, or of a server. */
export function formatContentRetention(owners: ContentOwners, stream: StreamState | null): ContentRetention {
  const own = (stream ?? owners.server).sentContentDays ?? null
  return { sentContentDays: own, effective: { sentContentDays: sentContentDays(owners, stream) } }
}

/** The retention of an account, as it applies to live servers. */
export function formatAccountRetention(account: AccountState): AccountRetention {
  const days = sentContentDays({ account, server: { mode: 'live' } }, null)
  return { sentContentDays: account.sentContentDays ?? null, effective: { sentContentDays: days } }
}
