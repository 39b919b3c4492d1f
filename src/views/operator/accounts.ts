/**
 * accounts - accounts as an operator reads them: the list over all shards, and one with how its mail fares
 *
 * Keys: `accounts` of every shard, `account:<id>`, `counters`, `administrators:<account>`, `settings:<account>`,
 * `stats:<server>:<yyyymm>`
 *
 * Spec account.list, account.detail, list.page
 */

import { homeShard, SHARDS } from '../../../cluster/id.ts'
import type { AccountDetail, AccountList } from '../../../schemas/account.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import { settingsFact, settingsOfRow } from '../../state/dashboard/member.ts'
import { accountsKey, administratorsKey, serversKey } from '../../state/keys.ts'
import { formatAccount, formatApplication } from '../account.ts'
import { countersFact, entityFact, parseCounters, parseState } from '../entity.ts'
import type { Reader } from '../key.ts'
import { type Page, readNewest } from '../newest.ts'
import type { SeenAccount } from '../resource-access.ts'
import { readLastDay } from '../stats/read-stats.ts'

/** Servers of an account whose last 24 hours are added up. */
const SERVERS_MAX = 1000

const ALL = Array.from({ length: SHARDS }, (_, shard) => ({ shard, key: accountsKey(shard) }))

/** A page of all accounts, newest first; null when the store did not answer. */
export async function listAccounts(
  read: Reader,
  { limit, after, nowMs }: Page & { nowMs: number },
): Promise<AccountList | null> {
  const found = await readNewest(read, ALL, { limit: limit + 1, after })
  if (found === null) return null
  const ids = found.slice(0, limit)
  const seen = await Promise.all(ids.map((id) => readOne(read, id)))
  const accounts: AccountList['accounts'] = []
  for (const one of seen) {
    if (one === null) return null
    if (one.account !== null) accounts.push(formatAccount(one.account, one.counters, nowMs))
  }
  return { accounts, next: found.length > limit ? (ids.at(-1) ?? null) : null }
}

async function readOne(
  read: Reader,
  id: string,
): Promise<{ account: AccountState | null; counters: AccountCounters | null } | null> {
  const shard = homeShard(id)
  const seen = await read(shard, [entityFact(shard, accountRef(id)), countersFact(shard, [accountOwner(id)])])
  if (seen === null) return null
  return { account: parseState<AccountState>(seen[0]), counters: parseCounters<AccountCounters>(seen[1])[0] ?? null }
}

/** One account with its administrators and its last 24 hours; null when the store did not answer. */
export async function readAccountDetail(
  read: Reader,
  { shard, account, counters }: SeenAccount,
  nowMs: number,
): Promise<AccountDetail | null> {
  const { accountId, held, servers } = account
  const seen = await read(shard, [
    { read: 'hash', key: administratorsKey(shard, accountId) },
    {
      read: 'sorted',
      key: serversKey(shard, accountId),
      min: 0,
      max: Number.MAX_SAFE_INTEGER,
      count: SERVERS_MAX,
      newest: true,
    },
    settingsFact(shard, accountId),
  ])
  if (seen === null) return null
  const serverIds = seen[1].map(([id]) => id)
  const day = await readLastDay(read, { shard, serverIds, nowMs })
  if (day === null) return null
  const { delivered, bounced, complained } = day
  return {
    ...formatAccount(account, counters, nowMs),
    held: held ?? false,
    servers: servers ?? 0,
    administrators: [...seen[0].values()],
    application: formatApplication(settingsOfRow(seen[2]).application),
    last24Hours: {
      delivered,
      bounced,
      complained,
      bounceRate: rateOf(bounced, delivered + bounced),
      complaintRate: rateOf(complained, delivered),
    },
  }
}

/** A part of a whole, null of nothing. */
function rateOf(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole
}
