/**
 * stream - streams of a server as they are read and listed
 *
 * A list with a filter reads a bounded number of streams, so a page may have fewer than requested while `next` is not
 * null. Every view reads the key together with its data, so a revocation takes effect at once.
 *
 * Keys: `stream:<id>`, `streams:<server>`, `key:<sha256>`
 *
 * Spec stream.read, stream.list, list.page
 */

import { homeShard, shardOf } from '../../cluster/id.ts'
import type { Stream } from '../../schemas/stream.ts'
import { streamsKey } from '../state/keys.ts'
import { type StreamState, streamRef } from '../state/stream.ts'
import { entityFact, parseState, type Unseen } from './entity.ts'
import { formatInstant, formatInstantOrNull } from './instant.ts'
import { keyFact, ownerOfRow, type Reader, type ServerKey } from './key.ts'
import { type Page, readNewest } from './newest.ts'

/** Streams that one request looks at. */
const LOOKED_AT_MAX = 1_000

/** The filters of a list. */
export interface StreamFilter {
  readonly kind: string | null
  readonly archived: boolean | null
}

/** The resource of a stream. Spec stream.address */
export function formatStream(state: StreamState, inboundDomain: string): Stream {
  return {
    streamId: state.streamId,
    kind: state.kind,
    name: state.name,
    isDefault: state.isDefault,
    createdAt: formatInstant(state.createdAtMs),
    archivedAt: formatInstantOrNull(state.archivedAtMs),
    pausedAt: formatInstantOrNull(state.pausedAtMs),
    inboundAddress: state.kind === 'inbound' ? `${state.streamId}@${inboundDomain}` : null,
    contentRetentionDays: state.contentRetentionDays,
  }
}

/** A stream of the key's server; null if the server has none with that id. */
export async function readStream(
  read: Reader,
  owner: ServerKey,
  streamId: string,
): Promise<StreamState | null | Unseen> {
  const shard = homeShard(owner.accountId)
  const id = streamId.toLowerCase()
  // An id of another shard belongs to another account, and its key name would not be valid on this shard.
  const ids = shardOf(id) === shard ? [id] : []
  const seen = await read(shard, [keyFact(shard, owner.hash), ...ids.map((one) => entityFact(shard, streamRef(one)))])
  if (seen === null) return 'unavailable'
  if (ownerOfRow(owner.hash, seen[0]) === null) return 'unauthorized'
  const stream = parseState<StreamState>(seen[1])
  return stream?.serverId === owner.serverId ? stream : null
}

/** A page of the server's streams, newest first. */
export async function listStreams(
  read: Reader,
  owner: ServerKey,
  { limit, after, filter }: Page & { readonly filter: StreamFilter },
): Promise<{ streams: StreamState[]; next: string | null } | Unseen> {
  const streams: StreamState[] = []
  let last = after
  for (let looked = 0; looked < LOOKED_AT_MAX; looked += limit) {
    const page = await readStreamPage(read, owner, { limit, after: last })
    if (typeof page === 'string') return page
    for (const { id, state } of page.found) {
      last = id
      if (state !== null && passes(state, filter)) streams.push(state)
      if (streams.length === limit) break
    }
    const isEnd = page.isEnd && last === (page.found.at(-1)?.id ?? last)
    if (streams.length === limit || isEnd) return { streams, next: isEnd ? null : last }
  }
  return { streams, next: last }
}

interface StreamPage {
  readonly found: readonly { readonly id: string; readonly state: StreamState | null }[]
  /** No stream follows. */
  readonly isEnd: boolean
}

async function readStreamPage(read: Reader, owner: ServerKey, { limit, after }: Page): Promise<StreamPage | Unseen> {
  const shard = homeShard(owner.accountId)
  const keys = [{ shard, key: streamsKey(shard, owner.serverId) }]
  const found = await readNewest(read, keys, { limit: limit + 1, after })
  if (found === null) return 'unavailable'
  const ids = found.slice(0, limit)
  const seen = await read(shard, [keyFact(shard, owner.hash), ...ids.map((id) => entityFact(shard, streamRef(id)))])
  if (seen === null) return 'unavailable'
  const [key, ...states] = seen
  if (ownerOfRow(owner.hash, key) === null) return 'unauthorized'
  return {
    found: ids.map((id, index) => ({ id, state: parseState<StreamState>(states[index]) })),
    isEnd: found.length <= limit,
  }
}

function passes({ kind, archivedAtMs }: StreamState, filter: StreamFilter): boolean {
  if (filter.kind !== null && kind !== filter.kind) return false
  return filter.archived === null || (archivedAtMs !== null) === filter.archived
}
