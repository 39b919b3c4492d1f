/**
 * servers - the servers of an account: one by its id, and the list
 *
 * Keys: `servers:<account>`, `server:<id>`, `counters`, `sending:<account>`
 *
 * Spec server.list, list.page
 */

import type { Server, ServerList } from '../../schemas/server.ts'
import { sendingKey, serversKey } from '../state/keys.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../state/server.ts'
import { countersFact, entityFact, parseCounters, parseState } from './entity.ts'
import type { Reader } from './key.ts'
import { type Page, readNewest } from './newest.ts'
import type { SeenAccount } from './resource-access.ts'
import { formatServer } from './server.ts'

/** The resource of a server of the account; null when the store did not answer. */
export async function readServerResource(
  read: Reader,
  { shard, account, counters }: SeenAccount,
  { server, serverCounters, nowMs }: { server: ServerState; serverCounters: ServerCounters | null; nowMs: number },
): Promise<Server | null> {
  const seen = await read(shard, [{ read: 'hash', key: sendingKey(shard, account.accountId) }])
  if (seen === null) return null
  const sending = seen[0]
  return formatServer(server, { counters: serverCounters, account, accountCounters: counters, sending, nowMs })
}

/** A page of the account's servers, newest first; null when the store did not answer. */
export async function listServers(
  read: Reader,
  { shard, account, counters }: SeenAccount,
  { limit, after, nowMs }: Page & { nowMs: number },
): Promise<ServerList | null> {
  const { accountId } = account
  const found = await readNewest(read, [{ shard, key: serversKey(shard, accountId) }], { limit: limit + 1, after })
  if (found === null) return null
  const ids = found.slice(0, limit)
  const seen = await read(shard, [
    { read: 'hash', key: sendingKey(shard, accountId) },
    countersFact(shard, ids.map(serverOwner)),
    ...ids.map((id) => entityFact(shard, serverRef(id))),
  ])
  if (seen === null) return null
  const [sending, counts, ...states] = seen
  const all = parseCounters<ServerCounters>(counts)
  const servers = states.flatMap((state, place) => {
    const server = parseState<ServerState>(state)
    // Removed since the page was read.
    if (server === null || server.removedAtMs !== undefined) return []
    return [formatServer(server, { counters: all[place] ?? null, account, accountCounters: counters, sending, nowMs })]
  })
  return { servers, next: found.length > limit ? (ids.at(-1) ?? null) : null }
}
