/**
 * retention - for how long content is kept, as account, server and streams say now
 *
 * Keys: `account:<id>`, `server:<id>`, `stream:<id>`
 *
 * Spec retention.settings
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { homeShard } from '../../cluster/id.ts'
import type { AccountRetention, ContentRetention, InstallationRetention } from '../../schemas/retention/retention.ts'
import { type AccountState, accountRef } from '../state/account.ts'
import { isPastAge, mayBePastAge } from '../state/age.ts'
import { installationFact, installationMonths, logMonthsOf } from '../state/log-retention.ts'
import { type ContentOwners, sentContentDays } from '../state/message/retention.ts'
import { type ServerState, serverRef } from '../state/server.ts'
import { type StreamState, streamRef } from '../state/stream.ts'
import { entityFact, parseState, type Unseen } from './entity.ts'
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
  const server = parseState<ServerState>(seen[1]) ?? { mode }
  const owners = { account: parseState<AccountState>(seen[0]), server }
  const inherited = sentContentDays(owners, null)
  if ((owners.server as ServerState).streamContentDays === undefined) return () => inherited
  const streamIds = [...new Set(of.streamIds)]
  const facts = streamIds.map((id): FactOf<'last'> => entityFact(shard, streamRef(id)))
  const streams = await read(shard, facts)
  if (streams === null) return null
  const days = new Map(streamIds.map((id, at) => [id, sentContentDays(owners, parseState<StreamState>(streams[at]))]))
  return (streamId) => days.get(streamId) ?? inherited
}

/** The months for which the log of an account is kept; null: the store did not answer. */
export async function readLogMonths(read: Reader, accountId: string): Promise<number | null> {
  const shard = homeShard(accountId)
  const seen = await read(shard, [entityFact(shard, accountRef(accountId)), installationFact(shard)])
  return seen === null ? null : logMonthsOf(parseState<AccountState>(seen[0]), installationMonths(seen[1][0] ?? null))
}

/**
 * Whether what a server has sent or received at `atMs` has left its log. Nothing is read for what is young. Null: the
 * store did not answer.
 */
export async function readIsPast(
  read: Reader,
  { accountId, mode }: { readonly accountId: string; readonly mode: 'live' | 'test' },
  { atMs, nowMs }: { readonly atMs: number; readonly nowMs: number },
): Promise<boolean | null> {
  const test = mode === 'test'
  if (!mayBePastAge(atMs, nowMs) || isPastAge(atMs, { nowMs, test })) return isPastAge(atMs, { nowMs, test })
  const months = await readLogMonths(read, accountId)
  return months === null ? null : isPastAge(atMs, { nowMs, test, months })
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
  const account = parseState<AccountState>(seen[0])
  const server = parseState<ServerState>(seen[1])
  return account === null || server === null ? 'unauthorized' : { account, server, stream }
}

/** The retention of a stream, or of a server. */
export function formatContentRetention(owners: ContentOwners, stream: StreamState | null): ContentRetention {
  const own = (stream ?? owners.server).sentContentDays ?? null
  return { sentContentDays: own, effective: { sentContentDays: sentContentDays(owners, stream) } }
}

/** The retention of an account, as it applies to live servers. In: the installation's months, null for the default. */
export function formatAccountRetention(account: AccountState, months: number | null): AccountRetention {
  const { sentContentDays: days = null, logRetentionMonths = null } = account
  return {
    sentContentDays: days,
    logRetentionMonths,
    effective: {
      sentContentDays: sentContentDays({ account, server: { mode: 'live' } }, null),
      logRetentionMonths: logMonthsOf(account, months),
    },
  }
}

/** The retention of the installation. */
export function formatInstallationRetention(months: number | null): InstallationRetention {
  return { logRetentionMonths: months, effective: { logRetentionMonths: logMonthsOf(null, months) } }
}

/** The installation's months on a shard; null: the default; undefined: the store did not answer. */
export async function readInstallationMonths(read: Reader, shard: number): Promise<number | null | undefined> {
  const seen = await read(shard, [installationFact(shard)])
  return seen === null ? undefined : installationMonths(seen[0][0] ?? null)
}
