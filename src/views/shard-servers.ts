/**
 * shard-servers - all servers of a shard, to find an object whose server is unknown
 *
 * An id names only its shard. The few that come from outside without a key (return paths, an operator's order) are
 * looked for on each server of the shard; there are some hundreds at most.
 *
 * Keys: `accounts`, `servers:<account>`, `names:<account>`
 */

import type { FactOf, ValueOf } from '../../cluster/behaviour.ts'
import { domainName } from '../state/domain.ts'
import { accountsKey, namesKey, serversKey } from '../state/keys.ts'
import type { Reader } from './key.ts'

/** Accounts of a shard, and servers of an account: far more than there are. */
const ACCOUNTS_MAX = 10_000
const SERVERS_MAX = 10_000

export interface ShardServer {
  readonly accountId: string
  readonly serverId: string
}

/** A server, and the id of the requested domain if its account has it. */
export interface DomainServer extends ShardServer {
  readonly domainId: string | null
}

/**
 * The servers of a shard's accounts; with `domain`, only of the accounts that have that domain. Null if the store did
 * not answer.
 */
export async function readShardServers(
  read: Reader,
  shard: number,
  domain: string | null = null,
): Promise<readonly DomainServer[] | null> {
  const accounts = await read(shard, [allOf(accountsKey(shard), ACCOUNTS_MAX)])
  if (accounts === null) return null
  const all = membersOf(accounts[0])
  const domainIds =
    domain === null ? all.map(() => null) : await readDomainIds(read, shard, { accountIds: all, domain })
  if (domainIds === null) return null
  const owners = all
    .map((accountId, index) => ({ accountId, domainId: domainIds[index] ?? null }))
    .filter(({ domainId }) => domain === null || domainId !== null)
  const servers = await read(
    shard,
    owners.map(({ accountId }) => allOf(serversKey(shard, accountId), SERVERS_MAX)),
  )
  if (servers === null) return null
  return owners.flatMap((owner, index) => membersOf(servers[index]).map((serverId) => ({ ...owner, serverId })))
}

async function readDomainIds(
  read: Reader,
  shard: number,
  { accountIds, domain }: { accountIds: readonly string[]; domain: string },
): Promise<readonly (string | null)[] | null> {
  const fields = [domainName(domain)]
  const seen = await read(
    shard,
    accountIds.map((accountId) => ({ read: 'fields', key: namesKey(shard, accountId), fields })),
  )
  return seen?.map(([id]) => id ?? null) ?? null
}

function allOf(key: string, count: number): FactOf<'sorted'> {
  return { read: 'sorted', key, min: 0, max: Number.MAX_SAFE_INTEGER, count }
}

function membersOf(value: ValueOf<FactOf<'sorted'>> | undefined): string[] {
  return (value ?? []).map(([member]) => member)
}
