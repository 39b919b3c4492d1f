/**
 * find - what an id names among what an account has
 *
 * Keys: `<kind>:<id>` of entities, `received-segments:<server>`, `received:<server>:<segment>`
 *
 * Spec member.find
 */

import { homeShard } from '../../../cluster/id.ts'
import type { Found } from '../../../schemas/dashboard/account.ts'
import { entityFact, stateOf } from '../entity.ts'
import { receivedSegmentsFact } from '../inbound/received.ts'
import { readOneReceived } from '../inbound/rows.ts'
import type { Reader } from '../key.ts'
import { readServers } from './checklist.ts'

const KINDS = ['server', 'stream', 'domain', 'webhook', 'broadcast'] as const

interface Owned {
  readonly accountId?: string
  readonly serverId?: string
  readonly removedAtMs?: number | null
}

/** An entity of the account; null: none of that id. */
export async function findEntity(read: Reader, accountId: string, id: string): Promise<Found | 'unavailable' | null> {
  const shard = homeShard(accountId)
  const servers = await readServers(read, shard, accountId)
  const seen = await read(
    shard,
    KINDS.map((kind) => entityFact(shard, { kind, id })),
  )
  if (seen === null || servers === null) return 'unavailable'
  for (const [at, kind] of KINDS.entries()) {
    const state = stateOf<Owned>(seen[at])
    if (state === null || typeof state.removedAtMs === 'number') continue
    const serverId = state.serverId ?? null
    const isOwn = serverId === null ? state.accountId === accountId : servers.some((one) => one.serverId === serverId)
    if (isOwn) return { kind, id, serverId }
  }
  return null
}

/** A received message of one of the account's servers; null: none. */
export async function findReceivedOf(
  read: Reader,
  { accountId, id }: { readonly accountId: string; readonly id: string },
): Promise<Found | 'unavailable' | null> {
  const shard = homeShard(accountId)
  const servers = await readServers(read, shard, accountId)
  if (servers === null) return 'unavailable'
  for (const { serverId } of servers) {
    const seen = await read(shard, [receivedSegmentsFact(shard, serverId, id)])
    if (seen === null) return 'unavailable'
    const segment = seen[0].at(-1)?.[0]
    if (segment === undefined) continue
    const stored = await readOneReceived(read, { shard, serverId }, { segment, messageId: id })
    if (stored === undefined) return 'unavailable'
    if (stored !== null) return { kind: 'received', id, serverId }
  }
  return null
}
