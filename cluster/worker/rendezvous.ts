/**
 * rendezvous - assigns a shard to one of several workers, by a rule whose result each computes alike.
 *
 * A worker that comes takes its share from all others, one that goes leaves its own to all others; no other shard
 * moves.
 */

/** The worker to which `shard` belongs among `workers`; '' if there are none. */
export function wantedOwner(shard: number, workers: readonly string[]): string {
  let wanted = ''
  let most = -1
  for (const worker of workers) {
    const weight = computeWeight(worker, shard)
    if (weight < most || (weight === most && worker < wanted)) continue
    wanted = worker
    most = weight
  }
  return wanted
}

/** FNV-1a over both, then mixed (murmur3's last step): neighbouring shards must not weigh alike. */
function computeWeight(worker: string, shard: number): number {
  let hash = 0x811c9dc5 ^ shard
  for (let i = 0; i < worker.length; i += 1) hash = Math.imul(hash ^ worker.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16) ^ shard, 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
