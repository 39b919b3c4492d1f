/** may-begin - whether an order to move a shard may begin: as the product decides it, for a cluster in memory */
import { type ClusterLook, explainAway, type NodeLook } from '../../../cluster/slots/cluster-look.ts'
import { parseMove } from '../../../cluster/slots/move-fence.ts'
import type { SimCluster } from './sim-cluster.ts'
import type { SimNode } from './sim-node.ts'
import type { Claim } from './slot-news.ts'

/** For a node that answers. Nothing is decided by its answer. */
const ANSWERS = { settings: new Map() } as unknown as NodeLook['answers']

/**
 * Like `whyNotNow` of `src/store/cluster/move-shards.ts`. No move begins while a primary is unreachable or a node has
 * not learned of the last move. An interrupted move continues once no silent node could come back unchanged, and the
 * current holder of the shard can undo it.
 */
export function mayBegin(cluster: SimCluster, shard: number, to: SimNode): boolean {
  const holder = cluster.at(shard)
  if (to.heir !== null || (to.state !== 'primary' && to.state !== 'held')) return false
  const ends = parseMove(holder.metaOf(shard).get('owner') ?? '')
  const lacksNone = cluster.nodes.every(({ heir, shards, state }) => state !== 'down' || heir !== null || !shards.size)
  if (to !== holder && !lacksNone) return false
  if (cluster.news.all.some(isDoubted)) return false
  if (ends === null)
    return cluster.isCalm && cluster.news.size === 0 && cluster.nodes.every(({ state }) => state !== 'down')
  const nameOf = (id: string): string | null => cluster.nodes.find((node) => node.id === id)?.name ?? null
  const open = { shard, at: holder.name, to: nameOf(ends.target), from: ends.source }
  return explainAway(lookAt(cluster), open, to.name) === null
}

/** Whether a primary contradicts a claim. A primary that has marked the slot as importing is not asked. */
function isDoubted({ shard, unheard }: Claim): boolean {
  return [...unheard.keys()].some((ear) => typeof ear !== 'string' && !ear.importing.has(shard))
}

/** As much of a look at all nodes as that is decided by. */
function lookAt(cluster: SimCluster): ClusterLook {
  const nodes = cluster.nodes.flatMap((node): NodeLook[] => {
    const { heir, id, name, shards, state } = node
    const answers = state === 'down' ? null : ANSWERS
    const isPrimary = heir === null && state !== 'deposed'
    const one = { id, name, isPrimary, primary: null, shards: isPrimary ? [...shards] : [], hasFailed: false, answers }
    // Each has a replica that could take its place.
    const replica = { id: `${id}r`, name: `${name}r`, isPrimary: false, primary: name, shards: [], hasFailed: false }
    return [one, { ...replica, answers: ANSWERS }]
  })
  return { nodes, badSeeds: [], strangers: [], uncovered: [], common: null } as unknown as ClusterLook
}
