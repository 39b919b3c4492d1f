/**
 * node-look - the state of one node of a Redis Cluster, read over a connection that ends with the look
 *
 * Guarantees: it ends within four seconds and never rejects; errors carry no password.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { DURABLE_SETTINGS } from '../embedded/durable.ts'
import { MOVE_KEY, metaKey } from '../keyspace.ts'
import { type MoveEnds, parseIds, parseMove } from './move-fence.ts'
import { type ClusterNodeLine, COMMON_SLOT, hasSlot, parseNodes, SHARD_SLOTS } from './slot-map.ts'

const CONNECT_MS_MAX = 1_500
const LOOK_MS_MAX = 4_000

/** Names for CONFIG GET of the settings by which a node is judged. */
const SETTINGS = [
  ...DURABLE_SETTINGS,
  'cluster-require-full-coverage',
  'cluster-allow-reads-when-down',
  'cluster-replica-no-failover',
  'cluster-node-timeout',
  'min-replicas-to-write',
  'min-replicas-max-lag',
]

/** The answer of a node. */
export interface NodeAnswers {
  readonly id: string
  /** Names and values of INFO. */
  readonly info: ReadonlyMap<string, string>
  /** Names and values of CONFIG GET; empty if forbidden. */
  readonly settings: ReadonlyMap<string, string>
  /** Whether it takes part; a node that sees less than half of the primaries does not. */
  readonly isWell: boolean
  /** All nodes as it knows them, itself among them. */
  readonly nodes: readonly ClusterNodeLine[]
  /** Slots that are on their way from it to another node, as it knows, and to it from another. */
  readonly openSlots: readonly OpenSlot[]
  /** Shards in its slots that are being moved, by their `meta`. */
  readonly moves: readonly { readonly shard: number; readonly ends: MoveEnds }[]
  /** Shards in its slots that other nodes, by their ids, still have in their files, by their `meta`. */
  readonly uncleared: readonly { readonly shard: number; readonly ids: readonly string[] }[]
  /** The process that is moving shards, by its own name; null if there is none, or only another node knows it. */
  readonly mover: string | null
  /** Its clock minus the local clock, ms; half of the round trip is uncertain. */
  readonly clockOffMs: number
}

/** A slot that is on its way. */
export interface OpenSlot {
  readonly slot: number
  readonly isLeaving: boolean
  /** Id of the node at the other end. */
  readonly other: string
}

/** Why a node did not answer. */
export type NodeSilence = 'away' | 'certificate' | 'no-cluster' | 'password'

export type NodeSaid = NodeAnswers | NodeSilence

/** Asks a node. Takes its address (`redis://`, `rediss://`), and its `host:port`, which it may not know itself. */
export async function lookAtNode(address: string, name: string): Promise<NodeSaid> {
  const client = new Redis(address, {
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: CONNECT_MS_MAX,
    commandTimeout: LOOK_MS_MAX,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    disableClientInfo: true,
  })
  // A refused password is not sent to other nodes.
  let refusal = ''
  client.on('error', ({ message }: Error) => {
    refusal ||= message
  })
  const late = pause(LOOK_MS_MAX, 'away' as const, { ref: false })
  const looked = client
    .connect()
    .then(() => ask(client, name))
    .catch(({ message }: Error) => explainSilence([refusal, message]))
  const found = await Promise.race([looked, late])
  client.disconnect()
  return found
}

async function ask(client: Redis, name: string): Promise<NodeAnswers> {
  // A separate command: it reports a refused login, while a command with many arguments would end the connection
  // without an error.
  await client.ping()
  const flat = client.call('CONFIG', 'GET', ...SETTINGS).catch(() => []) as Promise<string[]>
  const beforeMs = Date.now()
  const [[seconds, micros], info, nodes, state, id] = (await Promise.all([
    client.call('TIME'),
    client.info(),
    client.call('CLUSTER', 'NODES'),
    client.call('CLUSTER', 'INFO'),
    client.call('CLUSTER', 'MYID'),
  ])) as [[string, string], string, string, string, string]
  const askedAtMs = (beforeMs + Date.now()) / 2
  const lines = parseNodes(nodes, name)
  const held = shardsAt(lines, id)
  const [metas, mover] = await Promise.all([
    Promise.all(held.map((shard) => client.hmget(metaKey(shard), 'owner', 'uncleared').catch(() => []))),
    lines.some((line) => line.id === id && hasSlot(line, COMMON_SLOT)) ? client.get(MOVE_KEY).catch(() => null) : null,
  ])
  return {
    id,
    info: new Map(pairs(info.split('\r\n').map((line) => line.split(/:(.*)/s)))),
    settings: parsePairs(await flat),
    isWell: state.includes('cluster_state:ok'),
    nodes: lines,
    openSlots: [...nodes.matchAll(/\[(\d+)-([<>])-(\w+)\]/g)].map(([, slot, way, other = '']) => ({
      slot: Number(slot),
      isLeaving: way === '>',
      other,
    })),
    moves: metas.flatMap(([owner], at) => {
      const ends = parseMove(owner ?? '')
      return ends === null ? [] : [{ shard: held[at] ?? 0, ends }]
    }),
    uncleared: metas.flatMap(([, packed], at) => {
      const ids = parseIds(packed)
      return ids.length === 0 ? [] : [{ shard: held[at] ?? 0, ids }]
    }),
    mover,
    clockOffMs: Math.round(Number(seconds) * 1_000 + Number(micros) / 1_000 - askedAtMs),
  }
}

/** Only for a primary; a replica would redirect its callers. */
function shardsAt(lines: readonly ClusterNodeLine[], id: string): number[] {
  const own = lines.find((line) => line.id === id)
  if (own?.isPrimary !== true) return []
  return SHARD_SLOTS.flatMap((slot, shard) => (hasSlot(own, slot) ? [shard] : []))
}

function pairs(rows: readonly (readonly string[])[]): [string, string][] {
  return rows.flatMap(([name, value]): [string, string][] => (name && value !== undefined ? [[name, value]] : []))
}

function parsePairs(flat: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (let at = 0; at + 1 < flat.length; at += 2) found.set(flat[at] as string, flat[at + 1] as string)
  return found
}

/** The message to the operator about an unusable node; empty if it is unreachable. */
export function silenceFaults(name: string, why: NodeSilence): string[] {
  if (why === 'no-cluster')
    return [
      `${name} is not a node of a Redis Cluster: name only one server in REDIS_URL, or start this one with cluster-enabled yes`,
    ]
  if (why === 'password') return [`${name} refuses the user and password of REDIS_URL: all nodes need the same`]
  if (why === 'certificate')
    return [
      `The certificate of ${name} is not trusted: it must name this address, and NODE_EXTRA_CA_CERTS the file of its authority`,
    ]
  return []
}

function explainSilence(messages: readonly string[]): NodeSilence {
  if (messages.some((one) => /cluster support disabled/i.test(one))) return 'no-cluster'
  if (messages.some((one) => /certificate/i.test(one))) return 'certificate'
  return messages.some((one) => /^(?:NOAUTH|WRONGPASS|NOPERM|ERR .*password)/.test(one)) ? 'password' : 'away'
}
