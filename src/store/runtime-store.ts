/**
 * runtime-store - the store that the runtime works on, over one Redis or over the primaries of a Redis Cluster, and
 * the door to it past the runtime
 */

import type { Redis } from 'ioredis'
import type { Primaries } from '../../cluster/primaries.ts'
import { ClusterFound } from '../../cluster/redis/settings.ts'
import { connectRedisStore } from '../../cluster/redis/store.ts'
import type { Heard } from '../../cluster/redis/subscriber.ts'
import { lookAtCluster } from '../../cluster/slots/cluster-look.ts'
import { connectClusterStore } from '../../cluster/slots/cluster-store.ts'
import type { Lag, Store } from '../../cluster/store.ts'
import type { Config } from '../process/config.ts'
import { type ClusterState, clusterState } from './cluster/cluster-state.ts'
import { checkCluster } from './cluster/open-cluster.ts'
import { type Nodes, oneNode } from './nodes.ts'

/** Methods for the service in addition to those of the runtime. */
export interface RuntimeStore extends Store {
  /** Whether commits and reads can be sent now; of several Redis to any. */
  readonly connected: boolean
  /** For how long each connection that is in use has owed an answer. */
  readonly lags: readonly Lag[]
  /** The connection of heartbeats as others can look for it. */
  readonly identity: { readonly clientId: number; readonly runId: string }
  /** Opens the connections over which others are asked. */
  prepareToAsk(worker: string): void
  /** Subscribes to a topic; resolves with a function that ends it. */
  hear(topic: string, heard: Heard): Promise<() => void>
  close(): void
}

/** A store that is connected. */
export interface ConnectedStore {
  readonly store: RuntimeStore
  readonly nodes: Nodes
  /** Null for a single Redis. */
  readonly primaries: Primaries | null
  /** A client of each Redis that holds something now, by its name. */
  clients(): ReadonlyMap<string, () => Redis>
  /** Looks at all nodes of the cluster, and resolves with null if none answers. Null for a single Redis. */
  readonly cluster: (() => Promise<ClusterState | null>) | null
}

/** Receives events of the connection. */
export interface ConnectHears {
  /** It can be asked, at first and after each reconnect. */
  onUp(): void
  onDown(): void
  /** Of several one can be asked again, or holds other shards than before. */
  onCame(): void
  /** It breaks its durability level: it stays down. */
  onRefused(error: Error): void
}

/**
 * Connects to one server, or to the cluster that a single address turns out to be a node of. Throws StoreRefused if
 * the settings break the durability level, Error if no node answers.
 */
export async function connectStore(
  addresses: readonly string[],
  { durability }: Pick<Config, 'durability'>,
  hears: ConnectHears,
): Promise<ConnectedStore> {
  const [address = ''] = addresses
  if (addresses.length > 1) return connectCluster(addresses, durability, hears)
  try {
    const store = await connectRedisStore({ address, durability, ...hears })
    const views = (): Redis => store.views
    return { store, nodes: oneNode(views), primaries: null, clients: () => new Map([['', views]]), cluster: null }
  } catch (error) {
    if (!(error instanceof ClusterFound) || !/^rediss?:/.test(address)) throw error
    return connectCluster(addresses, durability, hears)
  }
}

async function connectCluster(
  seeds: readonly string[],
  durability: Config['durability'],
  hears: ConnectHears,
): Promise<ConnectedStore> {
  await checkCluster(seeds, durability)
  const store = await connectClusterStore({ seeds, durability, ...hears })
  return {
    store,
    primaries: store,
    nodes: { nodeOf: (shard) => store.viewsOf(shard), common: () => store.viewsOf(null) },
    clients: () => new Map(store.primaries.map((node) => [node.name, () => node.store.views])),
    async cluster() {
      const look = await lookAtCluster(store.addresses).catch(() => null)
      return look === null ? null : clusterState(look, durability)
    },
  }
}
