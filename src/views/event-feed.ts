/**
 * event-feed - the part of a server's events kept for subscribers: reads from an entry on, and whether any later
 * event was removed
 *
 * Spec event.feed
 */

import type { Entry } from '../../cluster/behaviour.ts'
import { homeShard, isEntryIdAbove } from '../../cluster/id.ts'
import { heardKey } from '../state/keys.ts'
import type { Reader } from './key.ts'

/** Entries of one look. */
const PAGE = 200
const NOTHING = '0-0'

/** Id of the newest entry, `0-0` if there is none; null if the store did not answer. */
export async function newestInFeed(read: Reader, serverId: string): Promise<string | null> {
  const shard = homeShard(serverId)
  const key = heardKey(shard, serverId)
  const seen = await read(shard, [{ read: 'newest', key, from: '-', to: '+', count: 1 }])
  return seen === null ? null : (seen[0][0]?.id ?? NOTHING)
}

/**
 * Whether an entry, and so all that came after it, is still there; null when the store did not answer. An id above the
 * newest was either never used or was given by a store that has since lost commits, so the position of later events is
 * unknown.
 */
export async function isStillInFeed(read: Reader, serverId: string, entryId: string): Promise<boolean | null> {
  const shard = homeShard(serverId)
  const one = { key: heardKey(shard, serverId), from: '-', to: '+', count: 1 } as const
  const seen = await read(shard, [
    { read: 'range', ...one },
    { read: 'newest', ...one },
  ])
  if (seen === null) return null
  const [[oldest], [newest]] = seen
  if (oldest === undefined || newest === undefined) return false
  return !isEntryIdAbove(oldest.id, entryId) && !isEntryIdAbove(entryId, newest.id)
}

/** Entries after one, the oldest first, some hundred at most; null when the store did not answer. */
export async function readFeed(read: Reader, serverId: string, afterId: string): Promise<readonly Entry[] | null> {
  const shard = homeShard(serverId)
  const from = afterId === NOTHING ? '-' : `(${afterId}`
  const seen = await read(shard, [{ read: 'range', key: heardKey(shard, serverId), from, to: '+', count: PAGE }])
  return seen === null ? null : seen[0]
}
