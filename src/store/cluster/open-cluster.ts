/**
 * open-cluster - the nodes of a Redis Cluster, checked before use
 *
 * Guarantee: a cluster that could lose answered data, or that stops completely if one primary is unreachable, is
 * refused.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { StoreRefused } from '../../../cluster/redis/settings.ts'
import { type ClusterLook, lookAtCluster } from '../../../cluster/slots/cluster-look.ts'
import { clusterFaults } from '../../../cluster/slots/cluster-rules.ts'
import type { Config } from '../../process/config.ts'

/** Nodes that are starting are waited for. */
const OPEN_MS_MAX = 10_000
const AGAIN_MS = 250
/** Maximum faults that a start reports; others follow once these are fixed. */
const TOLD_MAX = 5

/** Tries until a node answers. Throws StoreRefused if the cluster must not be used, Error if no node answers. */
export async function checkCluster(seeds: readonly string[], durability: Config['durability']): Promise<ClusterLook> {
  const endMs = performance.now() + OPEN_MS_MAX
  for (;;) {
    const look = await lookAtCluster(seeds)
    const faults = look === null ? [] : clusterFaults(look, durability)
    if (faults.length > 0) throw new StoreRefused(faults.slice(0, TOLD_MAX).join('; '))
    if (look !== null) return look
    if (performance.now() > endMs) throw new Error('The cluster does not answer: no node in REDIS_URL is a member')
    await pause(AGAIN_MS)
  }
}
