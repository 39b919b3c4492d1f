/** cluster-well - a Redis Cluster after something was lost in it: waited for until it is whole again */
import { until } from '../machine/until.ts'
import type { TestCluster } from './redis-cluster.ts'

const READY_MS_MAX = 120_000
const REPLICAS = 2

/**
 * Resolves once every node is a replica in step or a primary with both of its replicas, and all nodes agree. A primary
 * that returns follows the node that took its last slot, even if that node is the target of a move. One of the
 * replicas is then sent to the primary that has too few.
 */
export async function wellAgain({ nodes }: TestCluster): Promise<void> {
  const askAll = (...words: readonly [string, ...string[]]): Promise<string[]> =>
    Promise.all(nodes.map(({ client }) => (client.call(...words) as Promise<string>).catch(() => 'fail')))
  await until(async () => {
    const infos = await askAll('INFO', 'replication')
    const states = await askAll('CLUSTER', 'INFO')
    const views = await askAll('CLUSTER', 'NODES')
    if (views.some((view) => /fail|handshake/.test(view))) return false
    if (!states.every((state) => state.includes('cluster_state:ok'))) return false
    const countOf = (info: string): number => Number(/role:master[\s\S]*connected_slaves:(\d+)/.exec(info)?.[1] ?? -1)
    const [poor, rich] = [
      infos.findIndex((info) => countOf(info) >= 0 && countOf(info) < REPLICAS),
      infos.findIndex((info) => countOf(info) > REPLICAS),
    ]
    if (poor >= 0 && rich >= 0) {
      const id = await nodes[poor]?.client.call('CLUSTER', 'MYID')
      const surplus = infos.findIndex((info) => new RegExp(`master_port:${nodes[rich]?.port}\\b`).test(info))
      await nodes[surplus]?.client.call('CLUSTER', 'REPLICATE', String(id))
    }
    return infos.every((info) => countOf(info) === REPLICAS || info.includes('master_link_status:up'))
  }, READY_MS_MAX)
}
