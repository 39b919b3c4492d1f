/** primary-losses - the ways in which a Redis Cluster loses a primary, or gives its place to a replica */
import type { ClusterNode, TestCluster } from '../support/store/redis-cluster.ts'

/**
 * `killed`: SIGKILL. `isolated`: cut off from all other nodes, while clients still reach it and it executes their
 * commands; `silent`: from clients as well. `planned`: CLUSTER FAILOVER.
 */
export const WAYS = ['killed', 'isolated', 'silent', 'planned'] as const
export type Way = (typeof WAYS)[number]

/** Loses a primary. Returns a function that restores the node as a replica. */
export async function losePrimary(cluster: TestCluster, node: ClusterNode, way: Way): Promise<() => Promise<void>> {
  switch (way) {
    case 'killed':
      await node.kill()
      return () => node.start()
    case 'isolated':
    case 'silent':
      cluster.isolate(node, { clients: way === 'silent' })
      return async () => cluster.heal()
    case 'planned': {
      const [replica] = await replicasOf(cluster, node)
      await replica?.client.call('CLUSTER', 'FAILOVER')
      return async () => undefined
    }
  }
}

/** The replicas of a primary, according to themselves. */
export async function replicasOf({ nodes }: TestCluster, primary: ClusterNode): Promise<ClusterNode[]> {
  const id = (await primary.client.call('CLUSTER', 'MYID')) as string
  const found: ClusterNode[] = []
  for (const node of nodes) {
    const text = (await node.client.call('CLUSTER', 'NODES').catch(() => '')) as string
    if (new RegExp(`myself,slave ${id} `).test(text)) found.push(node)
  }
  return found
}
