/**
 * recipient - the messages to one address over all accounts, as an operator looks for them
 *
 * An address is known to an account by a hash of its own, so each account is asked. That is one read for an account
 * that does not know it; the log is walked only for those that do. One call looks at a bounded number of accounts for a
 * bounded time, and answers what it has found by then and where the next one goes on.
 *
 * Keys: `accounts` of every shard, `person:<account>`, `servers:<account>`, `server:<id>`, and those of a search
 *
 * Spec operator.recipients
 */

import { homeShard, SHARDS } from '../../../cluster/id.ts'
import type { RecipientMessage, RecipientMessages } from '../../../schemas/operator/recipient.ts'
import { accountsKey, serversKey } from '../../state/keys.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { entityFact, parseState } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'
import type { MessageFilter } from '../message/filter.ts'
import { findMessages, type SearchDeps } from '../message/search.ts'
import type { StoredMessage } from '../message/summary.ts'
import { readNewest } from '../newest.ts'
import { numberIn, personPlaces } from '../person.ts'

/** Accounts that one call looks at, and that it asks at once. */
export const ACCOUNTS_LOOKED_AT_MAX = 1_000
const ACCOUNTS_AT_ONCE = 200
/** After this time no account is begun, and no server except the first one. */
const TIME_MAX_MS = 2_000
/** Servers of an account. */
const SERVERS_MAX = 1_000
/** In a `next`, above the id of every message: the server has not begun. */
const HIGHEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const ALL = Array.from({ length: SHARDS }, (_, shard) => ({ shard, key: accountsKey(shard) }))
const NO_FILTERS: MessageFilter = {
  streamId: null,
  broadcastId: null,
  recipient: null,
  from: null,
  recipientContains: null,
  tag: null,
  metadata: null,
  subject: null,
  status: null,
  event: null,
  site: null,
  classification: null,
  source: null,
  fromMs: null,
  toMs: null,
}

export interface RecipientSearch {
  /** The keyed hash of the address within an account. */
  readonly hmacOf: (accountId: string) => string
  readonly limit: number
  /** The `next` of the page before: an account that is done, or the message of a server below which it goes on. */
  readonly after: string | null
}

/** An account in which the address has a number. */
interface Known {
  readonly accountId: string
  readonly hmac: string
  readonly number: number
}

/** Where a call goes on. */
interface Place {
  readonly accountId: string
  /** Null: the account is done. */
  readonly serverId: string | null
  /** Null: the server has not begun. */
  readonly messageId: string | null
}

/** A call while its page is filled. */
interface Call extends RecipientSearch {
  readonly messages: RecipientMessage[]
  readonly endsAtMs: number
  /** Servers that were read. One is read whatever the time, so that a page of a slow store is a step too. */
  servers: number
}

/** A page; null if the store did not answer. */
export async function searchRecipient(deps: SearchDeps, search: RecipientSearch): Promise<RecipientMessages | null> {
  const { read, nowMs } = deps
  const call: Call = { ...search, messages: [], endsAtMs: nowMs() + TIME_MAX_MS, servers: 0 }
  const begun = parsePlace(search.after)
  const after = begun?.accountId ?? null
  const older = await readNewest(read, ALL, { limit: ACCOUNTS_LOOKED_AT_MAX + 1, after })
  if (older === null) return null
  const ids = after === null || begun?.serverId === null ? older : [after, ...older]
  const end = Math.min(ids.length, ACCOUNTS_LOOKED_AT_MAX)
  for (let start = 0; start < end; ) {
    const some = ids.slice(start, Math.min(start + ACCOUNTS_AT_ONCE, end))
    const stop = await searchSome(deps, call, { some, begun })
    if (stop === 'unavailable') return null
    if (stop !== null) return { messages: call.messages, accounts: start + stop.accounts, next: stop.next }
    start += some.length
    if (nowMs() >= call.endsAtMs && start < end)
      return { messages: call.messages, accounts: start, next: some.at(-1) ?? null }
  }
  return { messages: call.messages, accounts: end, next: ids.length > end ? (ids[end - 1] ?? null) : null }
}

/** Searches some accounts. Returns how far it came and where the next call goes on; null if all are done. */
async function searchSome(
  deps: SearchDeps,
  call: Call,
  { some, begun }: { readonly some: readonly string[]; readonly begun: Place | null },
): Promise<{ readonly accounts: number; readonly next: string } | null | 'unavailable'> {
  const known = await readKnown(deps.read, some, call.hmacOf)
  if (known === null) return 'unavailable'
  for (const one of known) {
    const next = await searchAccount(deps, call, { ...one, begun: one.accountId === begun?.accountId ? begun : null })
    if (next === 'unavailable') return next
    if (next !== null) return { accounts: some.indexOf(one.accountId) + 1, next }
  }
  return null
}

/** Reads a `next`. */
function parsePlace(after: string | null): Place | null {
  const [accountId, serverId = null, messageId = null] = after?.toLowerCase().split('.') ?? []
  if (accountId === undefined) return null
  return { accountId, serverId, messageId: messageId === HIGHEST_ID ? null : messageId }
}

/** The accounts that know the address, in their order; null if the store did not answer. */
async function readKnown(
  read: Reader,
  ids: readonly string[],
  hmacOf: RecipientSearch['hmacOf'],
): Promise<readonly Known[] | null> {
  const found = await Promise.all(
    ids.map(async (accountId): Promise<Known | 'unknown' | null> => {
      const hmac = hmacOf(accountId)
      const shard = homeShard(accountId)
      const rows = await read(shard, personPlaces(shard, accountId, hmac))
      const number = rows === null ? null : numberIn(rows)
      return rows === null ? null : number === null ? 'unknown' : { accountId, hmac, number }
    }),
  )
  return found.includes(null) ? null : found.filter((one) => one !== null && one !== 'unknown')
}

/** Walks the servers of an account. Returns where the next call goes on, or null if the account is done. */
async function searchAccount(
  deps: SearchDeps,
  call: Call,
  { accountId, hmac, number, begun }: Known & { readonly begun: Place | null },
): Promise<string | null | 'unavailable'> {
  const servers = await readServers(deps.read, accountId)
  if (servers === null) return 'unavailable'
  for (const server of servers) {
    const { serverId, mode, defaultStreamId } = server
    if (begun !== null && serverId > (begun.serverId ?? '')) continue
    const after = begun?.serverId === serverId ? begun.messageId : null
    const limit = call.limit - call.messages.length
    // The page is full, or its time is over: nothing of this server was read.
    const isOver = call.servers > 0 && deps.nowMs() >= call.endsAtMs
    if (limit === 0 || isOver) return [accountId, serverId, after ?? HIGHEST_ID].join('.')
    call.servers += 1
    const owner = { accountId, serverId, mode, defaultStreamId, hash: null }
    const filter = { ...NO_FILTERS, recipient: hmac }
    const hits = await findMessages(deps, owner, { filter, page: { limit, after } })
    if (typeof hits === 'string') return 'unavailable'
    call.messages.push(...hits.found.map((stored) => formatMessage(stored, { accountId, serverId, number })))
    if (hits.next !== null) return [accountId, serverId, hits.next].join('.')
  }
  return call.messages.length === call.limit ? accountId : null
}

/** The servers of an account, the newest first. */
async function readServers(read: Reader, accountId: string): Promise<readonly ServerState[] | null> {
  const shard = homeShard(accountId)
  const range = { min: 0, max: Number.MAX_SAFE_INTEGER, count: SERVERS_MAX, newest: true } as const
  const listed = await read(shard, [{ read: 'sorted', key: serversKey(shard, accountId), ...range }])
  if (listed === null) return null
  const [rows] = listed
  const states = await read(
    shard,
    rows.map(([id]) => entityFact(shard, serverRef(id))),
  )
  if (states === null) return null
  const servers = states.map((state) => parseState<ServerState>(state)).filter((state) => state !== null)
  return servers.sort((one, other) => (one.serverId < other.serverId ? 1 : -1))
}

function formatMessage(
  { messageId, streamId, test, submittedAtMs, entry, recipients }: StoredMessage,
  { accountId, serverId, number }: { readonly accountId: string; readonly serverId: string; readonly number: number },
): RecipientMessage {
  const recipientIndex = Math.max(0, entry.recipients.indexOf(number))
  const state = recipients[recipientIndex]
  return {
    accountId,
    serverId,
    streamId,
    messageId,
    recipientIndex,
    status: state?.status ?? 'accepted',
    statusAt: formatInstant(state?.statusAtMs ?? submittedAtMs),
    submittedAt: formatInstant(submittedAtMs),
    test,
  }
}
