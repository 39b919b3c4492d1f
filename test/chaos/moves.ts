/** moves - a shard of a Redis Cluster changes its primary, key by key, as `redis-cli --cluster reshard` moves slots */
import { SHARD_SLOTS } from '../../cluster/slots/slot-map.ts'
import type { ClusterFleet } from '../support/service/cluster-fleet.ts'
import type { ClusterNode } from '../support/store/redis-cluster.ts'

const KEYS_AT_ONCE = 100
const MIGRATE_MS_MAX = 30_000

/** Moves the slot of a shard to another primary. Keys go one by one, so that no other shard waits long. */
export async function moveShard({ cluster }: Pick<ClusterFleet, 'cluster'>, shard: number): Promise<void> {
  const slot = SHARD_SLOTS[shard] ?? 0
  const source = await cluster.primaryOf(slot)
  const others = await Promise.all(SHARD_SLOTS.slice(0, 24).map((one) => cluster.primaryOf(one)))
  const target = others.find((node) => node !== source) as ClusterNode
  const [sourceId, targetId] = (await Promise.all(
    [source, target].map(({ client }) => client.call('CLUSTER', 'MYID')),
  )) as string[]
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId ?? '')
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId ?? '')
  for (;;) {
    const keys = (await source.client.call('CLUSTER', 'GETKEYSINSLOT', slot, KEYS_AT_ONCE)) as string[]
    if (keys.length === 0) break
    for (const key of keys)
      await source.client.call('MIGRATE', '127.0.0.1', target.port, key, 0, MIGRATE_MS_MAX).catch(() => undefined)
  }
  await target.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId ?? '')
  await source.client.call('CLUSTER', 'SETSLOT', slot, 'NODE', targetId ?? '')
}
