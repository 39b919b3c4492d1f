/**
 * server - the Server resource of a server key, with its current limits and the domains that it may send from
 *
 * One step: key, states, counters and domains are of the same moment.
 *
 * Keys: `key:<sha256>`, `server:<id>`, `account:<id>`, `counters`, `sending:<account>`
 *
 * Spec server.read, limit.entry
 */

import { homeShard } from '../../cluster/id.ts'
import type { LimitEntry, Server } from '../../schemas/server.ts'
import { SIMULATOR_DOMAIN } from '../mail/simulator.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../state/account.ts'
import { sendingRows, unpackSending } from '../state/domain.ts'
import { sendingKey } from '../state/keys.ts'
import { limitsOfServer } from '../state/limit.ts'
import type { Limit } from '../state/quota.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../state/server.ts'
import { countersFact, entityFact, parseCounters, parseState } from './entity.ts'
import { formatInstant, formatInstantOrNull } from './instant.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from './key.ts'

/** The server of a key; or why it is not shown. */
export async function readServer(
  read: Reader,
  owner: ServerKey,
  nowMs: number,
): Promise<Server | 'unauthorized' | 'unavailable'> {
  const accountId = owner.accountId
  const serverId = owner.serverId
  const shard = homeShard(accountId)
  const seen = await read(shard, [
    keyFact(shard, owner.hash),
    entityFact(shard, serverRef(serverId)),
    entityFact(shard, accountRef(accountId)),
    countersFact(shard, [serverOwner(serverId), accountOwner(accountId)]),
    { read: 'hash', key: sendingKey(shard, accountId) },
  ])
  if (seen === null) return 'unavailable'
  const server = parseState<ServerState>(seen[1])
  const account = parseState<AccountState>(seen[2])
  if (ownerOfRow(owner.hash, seen[0]) === null || server === null || account === null) return 'unauthorized'
  const [serverCounters, counters] = parseCounters<ServerCounters & AccountCounters>(seen[3])
  return formatServer(server, {
    counters: serverCounters ?? null,
    account,
    accountCounters: counters ?? null,
    sending: seen[4],
    nowMs,
  })
}

/** The inputs of a server's resource apart from its own state. */
export interface ServerAround {
  readonly counters: ServerCounters | null
  readonly account: AccountState
  readonly accountCounters: AccountCounters | null
  /** Rows of the account's verified domains. */
  readonly sending: ReadonlyMap<string, string>
  readonly nowMs: number
}

/** The resource of a server. */
export function formatServer(server: ServerState, around: ServerAround): Server {
  const { counters, account, accountCounters, sending, nowMs } = around
  const limits = limitsOfServer(server, counters, { account, counters: accountCounters, nowMs })
  return {
    serverId: server.serverId,
    name: server.name,
    mode: server.mode,
    createdAt: formatInstant(server.createdAtMs),
    limits: limits.map(formatLimit),
    sendingDomains: formatSendingDomains(sending, server.mode),
    bounceMail: server.bounceMail ?? false,
  }
}

/** A limit entry. Spec limit.entry */
export function formatLimit({ scope, period, limit, used, resetsAtMs }: Limit): LimitEntry {
  return { scope, period, limit, used, resetsAt: formatInstant(resetsAtMs) }
}

/** Verified domains by name; on a test server also those for tests, the simulator's first. */
function formatSendingDomains(rows: ReadonlyMap<string, string>, mode: 'live' | 'test'): Server['sendingDomains'] {
  const own = [...sendingRows(rows, mode === 'test')]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([domain, row]) => ({ domain, failingSince: formatInstantOrNull(unpackSending(row).failingSinceMs) }))
  return mode === 'test' ? [{ domain: SIMULATOR_DOMAIN, failingSince: null }, ...own] : own
}
