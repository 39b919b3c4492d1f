/** redis-nodes - how the nodes of a real Redis Cluster are reached, over connections of the client */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { makeClock } from '../clock.ts'
import type { Durability } from '../embedded/binary.ts'
import type { Sending, StoreAnswer } from '../redis/link.ts'
import { ASK_MS_MAX, type ClusterNodes, type NodesReach } from './cluster-nodes.ts'
import { PrimaryNode } from './primary-node.ts'
import type { NodeEvents } from './shard-node.ts'
import { hostPortOf, withPlace } from './slot-map.ts'

export interface RedisNodesOptions {
  /** Addresses (`redis://`, `rediss://`) of some nodes. User and password of the first go for all. */
  readonly seeds: readonly string[]
  readonly durability: Durability
}

/** Connects to the nodes of a cluster, starting from any node. */
export function redisNodes({ seeds, durability }: RedisNodesOptions): NodesReach<PrimaryNode> {
  const form = new URL(seeds[0] ?? '')
  const makeNode = (name: string, events: NodeEvents, nodes: ClusterNodes<PrimaryNode>): PrimaryNode => {
    const sendOn = (refusal: string, sending: Sending): Promise<StoreAnswer> | null => {
      const { hops = 0 } = sending
      const target = nodes.targetOf(refusal, { from: name, hops })
      const isAsking = refusal.startsWith('ASK ')
      return target === null ? null : sendThere(target, { ...sending, hops: hops + 1, isAsking })
    }
    return new PrimaryNode({ address: withPlace(form, name), name, durability, events, sendOn })
  }
  const places = seeds.map((seed) => hostPortOf(new URL(seed)))
  return { seeds: places, clock: makeClock(), makeNode, askApart: (place) => askApart(withPlace(form, place)) }
}

/** Asks a node over a separate connection. */
async function askApart(address: string): Promise<string | null> {
  const client = new Redis(address, {
    connectionName: 'map',
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: ASK_MS_MAX,
    commandTimeout: ASK_MS_MAX,
    maxRetriesPerRequest: 0,
    // A node that loads its files reports its data; the check would wait until it is done.
    enableReadyCheck: false,
    disableClientInfo: true,
  })
  client.on('error', () => undefined)
  const asked = client
    .connect()
    .then(() => client.call('CLUSTER', 'NODES') as Promise<string>)
    .catch(() => null)
  const text = await Promise.race([asked, pause(ASK_MS_MAX, null, { ref: false })])
  client.disconnect()
  return text
}

/**
 * An answer from another node counts when the replicas there have acknowledged it, because no other code passes that
 * gate.
 */
async function sendThere(target: PrimaryNode, sending: Sending): Promise<StoreAnswer> {
  const answer = await target.store.sendHere(sending)
  if (answer.kind !== 'reply' || !target.isGated) return answer
  return (await target.kept()) ? answer : { kind: 'lost' }
}
