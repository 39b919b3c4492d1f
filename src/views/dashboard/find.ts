/**
 * find - finds the object of an account with a given id
 *
 * Keys: `<kind>:<id>` of entities, `segments:<server>`, `log:<server>:<segment>`, `received-segments:<server>`,
 * `received:<server>:<segment>`
 *
 * Spec member.find
 */

import { homeShard } from '../../../cluster/id.ts'
import type { Found } from '../../../schemas/dashboard/account.ts'
import type { ServerState } from '../../state/server.ts'
import { entityFact, parseState } from '../entity.ts'
import { receivedSegmentsFact } from '../inbound/received.ts'
import { readOneReceived } from '../inbound/rows.ts'
import type { Reader } from '../key.ts'
import { findMessageAmong } from '../message/find-message.ts'
import { readServers } from './checklist.ts'

const KINDS = ['server', 'stream', 'domain', 'webhook', 'broadcast'] as const

interface Owned {
  readonly accountId?: string
  readonly serverId?: string
  readonly removedAtMs?: number | null
}

/** Names nothing of the account. */
export const NOTHING_FOUND: Found = { kind: null, id: null, serverId: null }

/**
 * Finds the object of an account with a given id of the account's shard. Servers of other accounts are not searched.
 */
export async function findById(read: Reader, accountId: string, id: string): Promise<Found | 'unavailable'> {
  const shard = homeShard(accountId)
  const servers = await readServers(read, shard, accountId)
  if (servers === null) return 'unavailable'
  const of = { shard, servers, accountId, id }
  return (await findEntity(read, of)) ?? (await findSent(read, of)) ?? (await findReceived(read, of)) ?? NOTHING_FOUND
}

interface Sought {
  readonly shard: number
  readonly servers: readonly ServerState[]
  readonly accountId: string
  readonly id: string
}

/** An entity of the account; null if no entity has that id. */
async function findEntity(
  read: Reader,
  { shard, servers, accountId, id }: Sought,
): Promise<Found | 'unavailable' | null> {
  const seen = await read(
    shard,
    KINDS.map((kind) => entityFact(shard, { kind, id })),
  )
  if (seen === null) return 'unavailable'
  for (const [at, kind] of KINDS.entries()) {
    const state = parseState<Owned>(seen[at])
    if (state === null || typeof state.removedAtMs === 'number') continue
    const serverId = state.serverId ?? null
    const isOwn = serverId === null ? state.accountId === accountId : servers.some((one) => one.serverId === serverId)
    if (isOwn) return { kind, id, serverId }
  }
  return null
}

/** A message that one of the account's servers has sent; null: none. */
async function findSent(read: Reader, { shard, servers, id }: Sought): Promise<Found | 'unavailable' | null> {
  if (servers.length === 0) return null
  const found = await findMessageAmong(read, { shard, servers, id })
  if (found === 'unavailable') return found
  return found === 'not_found' ? null : { kind: 'message', id, serverId: found.serverId }
}

/** A message that one of the account's servers has received; null: none. */
async function findReceived(read: Reader, { shard, servers, id }: Sought): Promise<Found | 'unavailable' | null> {
  if (servers.length === 0) return null
  const seen = await read(
    shard,
    servers.map(({ serverId }) => receivedSegmentsFact(shard, serverId, id)),
  )
  if (seen === null) return 'unavailable'
  for (const [at, { serverId }] of servers.entries()) {
    const segment = seen[at]?.at(-1)?.[0]
    if (segment === undefined) continue
    const stored = await readOneReceived(read, { shard, serverId }, { segment, messageId: id })
    if (stored === undefined) return 'unavailable'
    if (stored !== null) return { kind: 'received', id, serverId }
  }
  return null
}
