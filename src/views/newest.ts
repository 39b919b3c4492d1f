/**
 * newest - merges the newest ids of sorted sets, one on each shard, below a given id
 *
 * The sets are scored with the milliseconds of the ids that their members are, or begin with. Ids sort by time, and
 * within a millisecond by shard and order, so a page is the same however the shards answer.
 *
 * Spec list.page
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { msOf } from '../../cluster/id.ts'
import type { Reader } from './key.ts'

/** Members of one shard with the same millisecond: commits of one millisecond hold far fewer. */
const SAME_MS_MAX = 10_000
/** Characters of an id at the beginning of a member. */
const ID_CHARS = 36

/** A page to read: at most `limit` ids below `after` (null: from the newest). */
export interface Page {
  readonly limit: number
  readonly after: string | null
}

/** Newest members first, at most `limit`; null when the store did not answer. */
export async function readNewest(
  read: Reader,
  keys: readonly { readonly shard: number; readonly key: string }[],
  { limit, after }: Page,
): Promise<readonly string[] | null> {
  const seen = await Promise.all(keys.map(({ shard, key }) => read(shard, factsOf(key, limit, after))))
  const members: string[] = []
  for (const values of seen) {
    if (values === null) return null
    for (const value of values) {
      for (const [member] of value) if (after === null || idOf(member) < after) members.push(member)
    }
  }
  return members.sort((one, other) => (idOf(one) < idOf(other) ? 1 : -1)).slice(0, limit)
}

/** The ids that a shard may add to the page: all ids of the millisecond of `after`, and the newest before it. */
function factsOf(key: string, limit: number, after: string | null): FactOf<'sorted'>[] {
  const newest = (max: number): FactOf<'sorted'> => ({ read: 'sorted', key, min: 0, max, count: limit, newest: true })
  if (after === null) return [newest(Number.MAX_SAFE_INTEGER)]
  const ms = msOf(after)
  return [{ read: 'sorted', key, min: ms, max: ms, count: SAME_MS_MAX }, newest(ms - 1)]
}

function idOf(member: string): string {
  return member.slice(0, ID_CHARS)
}
