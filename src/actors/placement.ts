/**
 * placement - which shard a new account lives on
 *
 * Messages of one shard that come in together share a commit, and with it most of what a commit costs; messages of
 * different shards never do. So accounts are not spread as thin as they could be: two shards are filled first, then the
 * next two. While one waits for its commit the other is decided on, and two processes that hold one each have as much to
 * say as one Redis can write.
 */

/** Shards that are filled together. */
export const SHARDS_TOGETHER = 2
/** Accounts of a shard before the next shards are begun. */
export const ACCOUNTS_EACH = 512

/** The shard of the next account. In: how many accounts each shard holds. */
export function placeAccount(counts: readonly number[]): number {
  for (let first = 0; first < counts.length; first += SHARDS_TOGETHER) {
    const shard = leastOf(counts, first, Math.min(first + SHARDS_TOGETHER, counts.length))
    if ((counts[shard] ?? 0) < ACCOUNTS_EACH) return shard
  }
  return leastOf(counts, 0, counts.length)
}

function leastOf(counts: readonly number[], from: number, to: number): number {
  let least = from
  for (let shard = from + 1; shard < to; shard += 1) if ((counts[shard] ?? 0) < (counts[least] ?? 0)) least = shard
  return least
}
