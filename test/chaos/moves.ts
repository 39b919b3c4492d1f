/** moves - a shard of a Redis Cluster changes its primary under load, as `sendwright cluster move` has it done */
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import { moveShards, readHolders } from '../../src/store/cluster/move-shards.ts'
import type { ClusterFleet } from '../support/service/cluster-fleet.ts'

/** Moves a shard to another primary. */
export async function moveShard({ cluster }: Pick<ClusterFleet, 'cluster'>, shard: number): Promise<void> {
  const settings = { redisUrls: cluster.seeds, durability: 'replica' } as const
  const { name } = await cluster.primaryOf(SHARD_SLOTS[shard] ?? 0)
  const other = (await readHolders(settings)).find((holder) => holder.name !== name && holder.shards.length > 0)
  if (other === undefined) throw new Error('There are two primaries and more')
  const order = { shards: [shard], to: other.name, progress: () => undefined, done: () => undefined }
  await moveShards(settings, order)
}
