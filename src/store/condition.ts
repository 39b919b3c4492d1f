/**
 * condition - the state of the store: its settings, figures and clock, and the processes that use it
 *
 * Key: `{cl}:workers`
 */

import type { Durability } from '../../cluster/embedded/binary.ts'
import { WORKERS_KEY } from '../../cluster/keyspace.ts'
import { checkSettings } from '../../cluster/redis/settings.ts'
import type { WorkerRecord } from '../../cluster/store.ts'
import type { ClusterState } from './cluster/cluster-state.ts'
import type { Nodes } from './nodes.ts'
import { readTimeMs } from './raw-rows.ts'

/** Asked of the store at each call; a call rejects when it does not answer. */
export interface StoreCondition {
  /** Why it breaks its durability level; or null. */
  refusal(): Promise<string | null>
  /** The text of INFO. */
  info(): Promise<string>
  /** Its clock, milliseconds. */
  timeMs(): Promise<number>
  /** All nodes of the cluster; null for a single Redis. It resolves with null if no node answers. */
  readonly cluster: (() => Promise<ClusterState | null>) | null
}

/** Any shard's clock is the store's. */
const CLOCK_SHARD = 0

/** Makes the checks. Takes the function that looks at a cluster, if the store is one. */
export function makeStoreCondition(
  nodes: Nodes,
  durability: Durability,
  cluster: StoreCondition['cluster'] = null,
): StoreCondition {
  return {
    refusal: () =>
      checkSettings(nodes.common(), durability, cluster !== null).then(
        () => null,
        (error: Error) => error.message,
      ),
    info: () => nodes.common().info(),
    timeMs: () => readTimeMs(nodes, CLOCK_SHARD),
    cluster,
  }
}

/** Roles of running processes. Takes the ids of live workers. Throws errors of the store. */
export async function readLivingRoles(nodes: Nodes, living: readonly string[]): Promise<ReadonlySet<string>> {
  return new Set((await readLivingRecords(nodes, living)).flatMap(({ roles }) => roles))
}

/** The URLs of each process that serves HTTP. Takes the ids of the live workers. Throws errors of the store. */
export async function readLivingUrls(
  nodes: Nodes,
  living: readonly string[],
): Promise<NonNullable<WorkerRecord['urls']>[]> {
  return (await readLivingRecords(nodes, living)).flatMap(({ urls }) => urls ?? [])
}

/** The records of live workers. Takes their ids. Throws errors of the store. */
export async function readLivingRecords(nodes: Nodes, living: readonly string[]): Promise<WorkerRecord[]> {
  if (living.length === 0) return []
  const texts = await nodes.common().hmget(WORKERS_KEY, ...living)
  return texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as WorkerRecord]))
}
