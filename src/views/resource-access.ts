/**
 * resource-access - the account, or the server of an account, that a request names, within the caller's access
 *
 * The caller is either an account key, which has access to its own account, or an operator, who has access to all; the
 * operator's key was checked earlier.
 *
 * Keys: `key:<sha256>`, `account:<id>`, `server:<id>`, `counters`
 *
 * Spec refusal.order, key.revoke
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../state/account.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef, shownServer } from '../state/server.ts'
import { countersFact, entityFact, parseCounters, parseState, type Unseen } from './entity.ts'
import { type AccountKey, keyFact, ownerOfRow, type Reader, type ServerKey } from './key.ts'
import { readTogether } from './read-together.ts'

export interface SeenAccount {
  readonly shard: number
  readonly account: AccountState
  readonly counters: AccountCounters | null
}

export interface SeenServer extends SeenAccount {
  /** Null if the account has no server with that id. */
  readonly server: ServerState | null
  readonly serverCounters: ServerCounters | null
}

/** The key's account, or for an operator (`owner` null) the account with that id. */
export function readAccountOf(
  read: Reader,
  owner: AccountKey | null,
  id: string,
): Promise<SeenAccount | Unseen | 'not_found'> {
  return readServerOf(read, owner, { accountId: owner?.accountId ?? id.toLowerCase(), serverId: null })
}

/** A server and its account. An operator names the server alone; a key sees its account in any case. */
export async function readServerOf(
  read: Reader,
  owner: AccountKey | null,
  { accountId, serverId }: { readonly accountId: string | null; readonly serverId: string | null },
): Promise<SeenServer | Unseen | 'not_found'> {
  const id = serverId?.toLowerCase() ?? null
  const known = accountId ?? (await accountOfServer(read, id ?? ''))
  if (known === 'unavailable' || known === null) return known ?? 'not_found'
  const shard = shardOf(known)
  if (shard === null) return 'not_found'
  // An id of another shard belongs to another account, and its key name would not be valid on this shard.
  const sought = id !== null && shardOf(id) === shard ? id : null
  const owners = [accountOwner(known), ...(sought === null ? [] : [serverOwner(sought)])]
  const seen = await readTogether(read, shard, [
    [entityFact(shard, accountRef(known)), countersFact(shard, owners)],
    sought === null ? [] : [entityFact(shard, serverRef(sought))],
    owner === null ? [] : [keyFact(shard, owner.hash)],
  ])
  if (seen === null) return 'unavailable'
  const [[states, counts], [found], [key]] = seen
  const account = parseState<AccountState>(states)
  if (owner !== null && (account === null || ownerOfRow(owner.hash, key) === null)) return 'unauthorized'
  if (account === null) return 'not_found'
  const [counters, serverCounters] = parseCounters<AccountCounters & ServerCounters>(counts)
  const server = sought === null ? null : shownServer(parseState<ServerState>(found), known)
  return { shard, account, counters: counters ?? null, server, serverCounters: serverCounters ?? null }
}

/** The account of a visible server; null if there is none. */
async function accountOfServer(read: Reader, serverId: string): Promise<string | null | 'unavailable'> {
  const shard = shardOf(serverId)
  if (shard === null) return null
  const seen = await read(shard, [entityFact(shard, serverRef(serverId))])
  if (seen === null) return 'unavailable'
  const server = parseState<ServerState>(seen[0])
  return server === null || server.removedAtMs !== undefined ? null : server.accountId
}

/**
 * Whether large content is worth writing for a key before its message is decided on: true when the key is live and its
 * account may send; null when the store did not answer. This is only a preliminary check, which the decision repeats
 * in full. It keeps a revoked key, a paused or a closed account from filling the store with content that no message
 * will claim.
 */
export async function maySend(read: Reader, owner: ServerKey): Promise<boolean | null> {
  const { accountId } = owner
  const shard = homeShard(accountId)
  const seen = await read(shard, [keyFact(shard, owner.hash), entityFact(shard, { kind: 'account', id: accountId })])
  if (seen === null) return null
  const account = parseState<AccountState>(seen[1])
  if (ownerOfRow(owner.hash, seen[0]) === null || account === null) return false
  return account.status === 'active' || (account.status === 'pending' && owner.mode === 'test')
}
