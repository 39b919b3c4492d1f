/** cluster-state - the state of each Redis of a cluster for operators, from one look at all nodes */
import type { Durability } from '../../../cluster/embedded/binary.ts'
import {
  type ClusterLook,
  type Dissent,
  findDissent,
  moverOf,
  type NodeLook,
  type OpenMove,
  openMoves,
  replicasInStep,
} from '../../../cluster/slots/cluster-look.ts'
import { clusterFaults } from '../../../cluster/slots/cluster-rules.ts'
import type { RedisNodeRow } from '../../../schemas/operator/cluster.ts'

/** One Redis of a cluster. */
export interface RedisNode {
  /** `host:port`. */
  readonly name: string
  /** As the nodes call it among themselves. */
  readonly id: string
  readonly isPrimary: boolean
  /** The primary of a replica; null if unknown, and for a primary. */
  readonly primary: string | null
  readonly answers: boolean
  /** Whether it takes part in its cluster. */
  readonly isWell: boolean
  readonly shards: readonly number[]
  readonly version: string | null
  /** Used bytes, and the bound; 0 means no bound. Null if it does not answer. */
  readonly memory: { readonly usedBytes: number; readonly bytesMax: number } | null
  /** For a primary, the replicas that follow it without a gap. */
  readonly replicasInStep: number
  /** For a replica: whether it is in sync. */
  readonly isInStep: boolean
  /** For a replica: bytes that it is behind. Null if unknown. */
  readonly behindBytes: number | null
  /** For a replica, its offset in the replication stream, in bytes. Null if unknown. */
  readonly offset: number | null
  /** Its clock minus the local clock; null if it does not answer. */
  readonly clockOffMs: number | null
  readonly commandsPerSecond: number | null
  /** Whether its last write of the append-only file failed. */
  readonly hasFailedToWrite: boolean
}

export interface ClusterState {
  /** Why the cluster would not be used at a start: sentences. */
  readonly faults: readonly string[]
  /** Primaries first. */
  readonly nodes: readonly RedisNode[]
  /** Shards on their way to another Redis. */
  readonly moving: readonly OpenMove[]
  /** Nodes that take another primary for the one of some shards: for a moment after a failover or a move. */
  readonly dissent: readonly Dissent[]
  /** The process that is moving shards, with its machine; null if none. */
  readonly mover: string | null
}

/** Converts the answers of the nodes into this form. */
export function clusterState(look: ClusterLook, durability: Durability): ClusterState {
  const nodes = look.nodes.map((node) => redisNode(look, node))
  return {
    faults: clusterFaults(look, durability),
    nodes,
    moving: openMoves(look),
    dissent: findDissent(look),
    mover: moverOf(look)?.split(' ').slice(1).join(' ') ?? null,
  }
}

/** The rows that operators see. */
export function redisRows({ nodes }: ClusterState): RedisNodeRow[] {
  return nodes.map((node) => ({
    name: node.name,
    role: node.isPrimary ? 'primary' : 'replica',
    primary: node.primary,
    isUp: node.answers && node.isWell,
    version: node.version,
    shards: [...node.shards],
    replicasInStep: node.replicasInStep,
    isInStep: node.isInStep,
    behindBytes: node.behindBytes,
    usedBytes: node.memory?.usedBytes ?? null,
    bytesMax: node.memory?.bytesMax ?? null,
    clockOffMs: node.clockOffMs,
    commandsPerSecond: node.commandsPerSecond,
  }))
}

function redisNode(look: ClusterLook, node: NodeLook): RedisNode {
  const { name, id, isPrimary, primary, shards, answers } = node
  const info = answers?.info ?? null
  const number = (key: string): number => Number(info?.get(key) ?? 0)
  const version = info === null ? null : (info.get('valkey_version') ?? info.get('redis_version') ?? null)
  return {
    name,
    id,
    isPrimary,
    primary,
    answers: answers !== null,
    isWell: answers?.isWell ?? false,
    shards,
    version,
    memory: info === null ? null : { usedBytes: number('used_memory'), bytesMax: number('maxmemory') },
    replicasInStep: isPrimary ? replicasInStep(look, name) : 0,
    isInStep: info?.get('master_link_status') === 'up',
    behindBytes: behindBytes(look, node),
    offset: isPrimary ? null : offsetOf(node),
    clockOffMs: answers?.clockOffMs ?? null,
    commandsPerSecond: info === null ? null : number('instantaneous_ops_per_sec'),
    hasFailedToWrite: info?.get('aof_last_write_status') === 'err',
  }
}

function offsetOf({ answers }: NodeLook): number | null {
  const offset = answers?.info.get('slave_repl_offset')
  return offset === undefined ? null : Number(offset)
}

/** The nodes were asked one after the other: writes of a primary in the meantime are no lag. */
function behindBytes({ nodes }: ClusterLook, { isPrimary, primary, answers }: NodeLook): number | null {
  const own = answers?.info.get('slave_repl_offset')
  const other = nodes.find(({ name }) => name === primary)?.answers?.info.get('master_repl_offset')
  return isPrimary || own === undefined || other === undefined ? null : Math.max(0, Number(other) - Number(own))
}
