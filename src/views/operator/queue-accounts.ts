/**
 * queue-accounts - the accounts whose mail waits, those with the most first, of one destination or of all
 *
 * Reads the same number of first items of each lane, within a bound, so that a full queue costs as much as a short one.
 *
 * Keys: `due`, `due:<lane>`, `server:<id>`
 *
 * Spec queue.accounts
 */

import { msOf } from '../../../cluster/id.ts'
import { laneKey } from '../../../cluster/keyspace.ts'
import type { QueueAccounts } from '../../../schemas/operator/queue.ts'
import { parseAttemptItem } from '../../state/message/item.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { entityFact, parseState } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'
import type { ReadKeys } from '../read-keys.ts'
import { CLOCKS_APART_MS, countDestinations } from './queue.ts'

/** Items of one call. */
const ITEMS_MAX = 20_000

/** Pending recipients of a server or an account. */
interface Waiting {
  waiting: number
  deferred: number
  scheduled: number
  oldestAtMs: number
}

/** Returns at most `limit` accounts; null if the store did not answer. */
export async function readQueueAccounts(
  { read, readKeys }: { readonly read: Reader; readonly readKeys: ReadKeys },
  { destination, limit, nowMs }: { destination: string | null; limit: number; nowMs: number },
): Promise<QueueAccounts | null> {
  const counted = await countDestinations(readKeys)
  if (counted === null) return null
  const found = destination === null ? [...counted.values()] : [counted.get(destination) ?? { places: [] }]
  const all = found.flatMap(({ places }) => places)
  const places = all.slice(0, ITEMS_MAX)
  const each = Math.max(1, Math.floor(ITEMS_MAX / Math.max(1, places.length)))
  const range = places.map(({ shard, lane }) => ({ shard, key: laneKey(shard, lane), args: [0, each, 'WITHSCORES'] }))
  const lists = await readKeys('zrange', range)
  if (lists === null) return null
  const servers = new Map<string, Waiting & { readonly shard: number }>()
  for (const [at, list] of lists.entries())
    for (let place = 0; place + 1 < list.length && place < each * 2; place += 2) {
      const { serverId, messageId, sendAtMs } = parseAttemptItem(list[place] ?? '')
      const known = servers.get(serverId) ?? { ...NONE, shard: places[at]?.shard ?? 0 }
      const isScheduled = sendAtMs !== null && sendAtMs > nowMs
      const isDeferred = !isScheduled && Number(list[place + 1]) > nowMs + CLOCKS_APART_MS
      add(known, { waiting: 1, deferred: +isDeferred, scheduled: +isScheduled, oldestAtMs: msOf(messageId) })
      servers.set(serverId, known)
    }
  const accounts = await byAccount(read, servers)
  if (accounts === null) return null
  const rows = [...accounts].map(([accountId, { oldestAtMs, ...counts }]) => {
    return { accountId, ...counts, oldestAt: formatInstant(oldestAtMs) }
  })
  const isComplete = places.length === all.length && lists.every((list) => list.length <= each * 2)
  return { accounts: rows.sort((one, other) => other.waiting - one.waiting).slice(0, limit), isComplete }
}

const NONE: Waiting = { waiting: 0, deferred: 0, scheduled: 0, oldestAtMs: Number.POSITIVE_INFINITY }

function add(sum: Waiting, { waiting, deferred, scheduled, oldestAtMs }: Waiting): void {
  sum.waiting += waiting
  sum.deferred += deferred
  sum.scheduled += scheduled
  sum.oldestAtMs = Math.min(sum.oldestAtMs, oldestAtMs)
}

/** The sums of servers by their accounts; null if the store did not answer. */
async function byAccount(
  read: Reader,
  servers: ReadonlyMap<string, Waiting & { readonly shard: number }>,
): Promise<Map<string, Waiting> | null> {
  const owners = await Promise.all(
    Array.from(servers, ([serverId, { shard }]) => read(shard, [entityFact(shard, serverRef(serverId))])),
  )
  const accounts = new Map<string, Waiting>()
  for (const [at, counts] of [...servers.values()].entries()) {
    const seen = owners[at]
    if (seen == null) return null
    const accountId = parseState<ServerState>(seen[0])?.accountId
    if (accountId === undefined) continue
    const sum = accounts.get(accountId) ?? { ...NONE }
    add(sum, counts)
    accounts.set(accountId, sum)
  }
  return accounts
}
