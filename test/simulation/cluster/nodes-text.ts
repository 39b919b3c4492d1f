/**
 * nodes-text - the output of `CLUSTER NODES` on each node of an in-memory cluster, according to what that node has
 * learned
 */
import { SHARD_SLOTS } from '../../../cluster/slots/slot-map.ts'
import { SHARDS } from '../process.ts'
import type { SimCluster } from './sim-cluster.ts'
import type { SimNode } from './sim-node.ts'

/** All slots but those of the shards that the simulation uses, as ranges: long lines cost most of a seed's time. */
const COMMON_SLOTS: readonly string[] = [...SHARD_SLOTS.slice(0, SHARDS), 16_384]
  .sort((one, other) => one - other)
  .map((slot, place, all) => `${(all[place - 1] ?? -1) + 1}-${slot - 1}`)

/** The output of `CLUSTER NODES` on the replica of a node, which may have taken its place. */
export function nodesAtReplica(cluster: SimCluster, node: SimNode): string {
  if (node.heir !== null) return nodesAt(cluster, node.heir)
  const holders = Array.from(
    { length: SHARDS },
    (_, shard) => cluster.news.seenByReplica(node, shard) ?? cluster.at(shard),
  )
  const lines = cluster.members.map((one) => {
    const { hasCommon, heardEpoch, heir, id, name, state } = one
    const isPrimary = state !== 'deposed' && heir === null
    const held = holders.flatMap((holder, shard) => (holder === one ? [SHARD_SLOTS[shard] ?? 0] : []))
    const slots = [...held, ...(hasCommon ? COMMON_SLOTS : [])].join(' ')
    return `${id} ${name}@1 ${isPrimary ? 'master' : 'slave'} - 0 0 ${heardEpoch} connected ${isPrimary ? slots : ''}`
  })
  return lines.join('\n')
}

/** The output of `CLUSTER NODES` on a node. A node that was cut off still considers its successor a replica. */
export function nodesAt(cluster: SimCluster, asked: SimNode): string {
  const holders = Array.from({ length: SHARDS }, (_, shard) => holderSeenBy(cluster, asked, shard))
  return cluster.members
    .map((node) => {
      const { epoch, hasCommon, heardEpoch, heir, id, name, state } = node
      const isPrimary =
        node === asked
          ? node.state !== 'deposed'
          : state !== 'deposed' && heir === null && (asked.heir !== node || asked.state === 'deposed')
      const held = holders.flatMap((holder, shard) => (holder === node ? [SHARD_SLOTS[shard] ?? 0] : []))
      const marks = [...asked.importing].map((shard) => `[${SHARD_SLOTS[shard]}-<-${cluster.at(shard).id}]`)
      const slots = [...held, ...(hasCommon ? COMMON_SLOTS : []), ...(node === asked ? marks : [])]
      const flags = `${node === asked ? 'myself,' : ''}${isPrimary ? 'master' : 'slave'}`
      const link = state === 'down' ? 'disconnected' : 'connected'
      return `${id} ${name}@1 ${flags} - 0 0 ${node === asked ? epoch : heardEpoch} ${link} ${isPrimary ? slots.join(' ') : ''}`
    })
    .join('\n')
}

/** Whom a node takes for the holder of a shard. */
function holderSeenBy(cluster: SimCluster, asked: SimNode, shard: number): SimNode {
  if (asked.state !== 'deposed' && asked.shards.has(shard)) return asked
  const claim = cluster.news.of(shard)
  if (claim?.unheard.has(asked) !== true) return cluster.at(shard)
  return claim.before.heir ?? claim.before
}
