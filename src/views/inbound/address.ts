/**
 * address - the stream that an address under INBOUND_DOMAIN names, with its server and its account, as they are
 * now
 *
 * The owner of a stream never changes, so it is cached. The states of stream, server and account are read each time,
 * so that a change takes effect at once.
 *
 * Keys: `stream:<id>`, `server:<id>`, `account:<id>`, `counters`
 *
 * Spec inbound.recipient
 */

import { shardOf } from '../../../cluster/id.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { countersFact, entityFact, parseCounters, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'

/** Maximum number of streams whose owner is cached. */
const REMEMBERED_MAX = 20_000

/** A stream with its server and account. */
export interface InboundAddressee {
  readonly shard: number
  readonly stream: StreamState
  readonly server: ServerState
  readonly account: AccountState
  readonly counters: AccountCounters | null
}

/**
 * Finds a stream by an id in lower case. Returns null if there is none, and `unavailable` if the store did not answer.
 */
export type AddresseeFinder = (streamId: string) => Promise<InboundAddressee | null | 'unavailable'>

/** Makes the finder. */
export function makeAddresseeFinder(read: Reader): AddresseeFinder {
  const remembered = new Map<string, Owners>()
  return async (streamId) => {
    const shard = shardOf(streamId)
    if (shard === null) return null
    const owners = remembered.get(streamId) ?? (await readOwners(read, shard, streamId))
    if (owners === null || owners === 'unavailable') return owners
    if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value as string)
    remembered.set(streamId, owners)
    const { serverId, accountId } = owners
    const seen = await read(shard, [
      entityFact(shard, streamRef(streamId)),
      entityFact(shard, serverRef(serverId)),
      entityFact(shard, accountRef(accountId)),
      countersFact(shard, [accountOwner(accountId)]),
    ])
    if (seen === null) return 'unavailable'
    const stream = parseState<StreamState>(seen[0])
    const server = parseState<ServerState>(seen[1])
    const account = parseState<AccountState>(seen[2])
    if (stream === null || server === null || account === null) return null
    return { shard, stream, server, account, counters: parseCounters<AccountCounters>(seen[3])[0] ?? null }
  }
}

interface Owners {
  readonly serverId: string
  readonly accountId: string
}

async function readOwners(read: Reader, shard: number, streamId: string): Promise<Owners | null | 'unavailable'> {
  const streams = await read(shard, [entityFact(shard, streamRef(streamId))])
  if (streams === null) return 'unavailable'
  const stream = parseState<StreamState>(streams[0])
  if (stream === null) return null
  const { serverId } = stream
  const servers = await read(shard, [entityFact(shard, serverRef(serverId))])
  if (servers === null) return 'unavailable'
  const server = parseState<ServerState>(servers[0])
  return server === null ? null : { serverId, accountId: server.accountId }
}
