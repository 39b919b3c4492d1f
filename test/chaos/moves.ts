/** moves - a shard of a Redis Cluster changes its primary under load, as `sendwright cluster move` has it done */
import { type MoveEnd, moveSlot } from '../../cluster/slots/move-slot.ts'
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import type { ClusterFleet } from '../support/service/cluster-fleet.ts'

/** Shards that surely lie on all primaries. */
const SHARDS_LOOKED_AT = 24
/** Half of `cluster-node-timeout`, as `sendwright cluster move` has it. */
const GIVE_MS_MAX = 1_000

/** Moves the slot of a shard to another primary. */
export async function moveShard({ cluster }: Pick<ClusterFleet, 'cluster'>, shard: number): Promise<void> {
  const slot = SHARD_SLOTS[shard] ?? 0
  const from = await cluster.primaryOf(slot)
  const holders = await Promise.all(SHARD_SLOTS.slice(0, SHARDS_LOOKED_AT).map((one) => cluster.primaryOf(one)))
  const primaries = await Promise.all(
    [...new Set(holders)].map(async ({ client, name }): Promise<MoveEnd> => {
      return { id: (await client.call('CLUSTER', 'MYID')) as string, name, client }
    }),
  )
  const source = primaries.find(({ name }) => name === from.name)
  const target = primaries.find(({ name }) => name !== from.name)
  if (source === undefined || target === undefined) throw new Error('There are two primaries and more')
  await moveSlot({ slot, source, target, primaries, user: '', password: '', giveMsMax: GIVE_MS_MAX }, () => undefined)
}
