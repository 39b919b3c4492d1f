/**
 * cluster-look - a Redis Cluster as its nodes describe it at one moment, primaries and replicas
 *
 * The holder of a shard is taken from the answer with the highest epoch, as in the store's own map (`slot-map.ts`).
 */
import { SHARDS } from '../id.ts'
import { StoreRefused } from '../redis/settings.ts'
import { lookAtNode, type NodeAnswers, type NodeSaid, type NodeSilence, silenceFaults } from './node-look.ts'
import { type ClusterNodeLine, COMMON_SLOT, hasSlot, hostPortOf, SHARD_SLOTS, SlotMap, withPlace } from './slot-map.ts'

/** Nodes that are looked at. */
const NODES_MAX = 500

/** One node at the moment of the look. */
export interface NodeLook {
  /** `host:port`, as the others name it. */
  readonly name: string
  readonly id: string
  readonly isPrimary: boolean
  /** For a replica, the name of its primary; null if unknown, and for a primary. */
  readonly primary: string | null
  /** Shards that it holds; empty for a replica. */
  readonly shards: readonly number[]
  /** The others agree that it does not answer. */
  readonly hasFailed: boolean
  /** Null: it did not answer. */
  readonly answers: NodeAnswers | null
}

export interface ClusterLook {
  /** Primaries first, in the order of their names. */
  readonly nodes: readonly NodeLook[]
  /** Seeds that are of no use, and why. */
  readonly badSeeds: readonly { readonly name: string; readonly why: NodeSilence }[]
  /** Seeds that know nothing of the first one: they are of another cluster. */
  readonly strangers: readonly string[]
  /** Shards that no primary holds. */
  readonly uncovered: readonly number[]
  /** `host:port` of the primary of keys outside any shard, or null. */
  readonly common: string | null
}

/**
 * Looks at all nodes. Takes addresses of some. Returns null if no node of a cluster has answered.
 * @throws StoreRefused if none has answered, and one gives a reason
 */
export async function lookAtCluster(seeds: readonly string[]): Promise<ClusterLook | null> {
  const form = new URL(seeds[0] ?? '')
  const asked = new Map<string, Promise<NodeSaid>>()
  const askOnce = (name: string): Promise<NodeSaid> => {
    const known = asked.get(name) ?? lookAtNode(withPlace(form, name), name)
    asked.set(name, known)
    return known
  }
  const names = [...new Set(seeds.map((seed) => hostPortOf(new URL(seed))))]
  const said = await Promise.all(names.map(async (name) => ({ name, one: await askOnce(name) })))
  const first = said.map(({ one }) => one).find(isAnswer)
  const badSeeds = said.flatMap(({ name, one }) => (isAnswer(one) ? [] : [{ name, why: one }]))
  if (first === undefined) {
    const [sentence] = badSeeds.flatMap(({ name, why }) => silenceFaults(name, why))
    if (sentence !== undefined) throw new StoreRefused(sentence)
    return null
  }
  const ids = new Set(first.nodes.map(({ id }) => id))
  const strangers = said.flatMap(({ name, one }) => (isAnswer(one) && !ids.has(one.id) ? [name] : []))
  const answers = await askAll(first.nodes, said.map(({ one }) => one).filter(isAnswer), askOnce)
  return { ...describe(first, answers), badSeeds, strangers }
}

/** Asks each node that no seed has answered for. Returns the answers by id. */
async function askAll(
  lines: readonly ClusterNodeLine[],
  known: readonly NodeAnswers[],
  ask: (name: string) => Promise<NodeSaid>,
): Promise<Map<string, NodeAnswers>> {
  const answers = new Map(known.map((one) => [one.id, one]))
  const others = lines.slice(0, NODES_MAX).filter(({ id }) => !answers.has(id))
  const said = await Promise.all(others.map(({ address }) => ask(address)))
  for (const one of said) if (isAnswer(one)) answers.set(one.id, one)
  return answers
}

function describe(
  first: NodeAnswers,
  answers: ReadonlyMap<string, NodeAnswers>,
): Pick<ClusterLook, 'nodes' | 'uncovered' | 'common'> {
  const map = new SlotMap()
  // The own answer of a node counts, because other nodes may have old data about it, whichever epoch they know.
  for (const [id, { nodes }] of answers) {
    const own = nodes.filter((line) => line.id === id || !answers.has(line.id))
    map.take(own, nodes.find((line) => line.id === id)?.address ?? '')
  }
  const nameOf = new Map(first.nodes.map(({ id, address }) => [id, address]))
  const nodes = first.nodes.map((line): NodeLook => {
    const own = answers.get(line.id)?.nodes.find(({ id }) => id === line.id) ?? line
    return {
      name: line.address,
      id: line.id,
      isPrimary: own.isPrimary,
      primary: own.isPrimary ? null : (nameOf.get(own.primaryId) ?? null),
      shards: own.isPrimary ? map.shardsOf(line.address) : [],
      hasFailed: line.hasFailed,
      answers: answers.get(line.id) ?? null,
    }
  })
  const order = ({ isPrimary, name }: NodeLook): string => `${isPrimary ? 0 : 1} ${name}`
  return {
    nodes: nodes.sort((a, b) => (order(a) < order(b) ? -1 : 1)),
    common: map.addressOf(COMMON_SLOT),
    uncovered: Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => map.ofShard(shard) === null),
  }
}

function isAnswer(one: NodeSaid): one is NodeAnswers {
  return typeof one !== 'string'
}

/** Replicas of a primary that follow it without a gap, as the replicas report. */
export function replicasInStep({ nodes }: ClusterLook, primary: string): number {
  return nodes.filter((node) => node.primary === primary && node.answers?.info.get('master_link_status') === 'up')
    .length
}

/** A node is considered dead after this silence, ms, the shortest setting of any node. Null means unknown. */
export function nodeTimeoutMs({ nodes }: ClusterLook): number | null {
  const found = nodes.map(({ answers }) => Number(answers?.settings.get('cluster-node-timeout') ?? 0))
  const known = found.filter((timeoutMs) => timeoutMs > 0)
  return known.length === 0 ? null : Math.min(...known)
}

/** A shard that is on its way, or was. */
export interface OpenMove {
  readonly shard: number
  /** `host:port` of the node that has its slot; null: none. */
  readonly at: string | null
  /** The target node; null if unknown. */
  readonly to: string | null
  /** Id of the source node; null if only marks or files are left, and no writer is fenced. */
  readonly from: string | null
  /** `host:port` of nodes that have it in their files still. */
  readonly uncleared: readonly string[]
}

/**
 * Shards being moved, by the fence in their `meta` or the marks of their slots. A mark at the target alone remains from
 * an undone move: it is removed at the holder.
 */
export function openMoves({ nodes }: ClusterLook): OpenMove[] {
  const answers = nodes.flatMap((node) => node.answers ?? [])
  const nameOf = (id: string): string | null => nodes.find((node) => node.id === id)?.name ?? null
  const atOf = (shard: number): string | null => nodes.find(({ shards }) => shards.includes(shard))?.name ?? null
  const unclearedOf = (shard: number): string[] =>
    (answers.flatMap(({ uncleared }) => uncleared).find((one) => one.shard === shard)?.ids ?? []).flatMap(
      (id) => nameOf(id) ?? [],
    )
  const uncleared = answers
    .flatMap((one) => one.uncleared)
    .filter(({ shard }) => unclearedOf(shard).length > 0)
    .map(({ shard }) => ({ shard, to: atOf(shard), from: null }))
  const marked = answers
    .flatMap(({ openSlots }) => openSlots)
    .map(({ slot, other, isLeaving }) => ({ shard: SHARD_SLOTS.indexOf(slot), other, isLeaving }))
    .filter(({ shard }) => shard >= 0)
  const arriving = marked.filter((mark) => !mark.isLeaving).map(({ shard }) => ({ shard, to: atOf(shard), from: null }))
  const leaving = marked
    .filter((mark) => mark.isLeaving)
    .map(({ shard, other }) => ({ shard, to: nameOf(other), from: null }))
  const fenced = answers
    .flatMap(({ moves }) => moves)
    .map(({ shard, ends }) => ({ shard, to: nameOf(ends.target), from: ends.source }))
  // A later kind overrides an earlier one.
  const found = new Map([...uncleared, ...arriving, ...leaving, ...fenced].map((move) => [move.shard, move]))
  return [...found.values()].map((move) => ({ ...move, at: atOf(move.shard), uncleared: unclearedOf(move.shard) }))
}

/** The process that is moving shards, by its own name, or null. */
export function moverOf({ nodes }: ClusterLook): string | null {
  return nodes.map(({ answers }) => answers?.mover ?? null).find((mover) => mover !== null) ?? null
}

/**
 * The silent node without which a move to `to` cannot be ended or restarted, because it may come back unchanged; this
 * is the source, which a replica may have replaced, or the target. Returns its name, or null.
 */
export function explainAway(
  { nodes }: ClusterLook,
  { shard, to: open, from }: Pick<OpenMove, 'shard' | 'to' | 'from'>,
  to: string,
): string | null {
  const silent = nodes.filter(({ isPrimary, answers }) => isPrimary && answers === null)
  const holder = nodes.find(({ shards }) => shards.includes(shard))
  const source = silent.find(({ id, name, shards }) => {
    const isHeir = ({ primary, answers }: NodeLook): boolean =>
      primary === name && answers?.settings.get('cluster-replica-no-failover') !== 'yes'
    const mayBeReplaced = shards.length > 0 && nodes.some(isHeir)
    return id === from && id !== holder?.id && mayBeReplaced
  })
  // The keys of a lost target are a copy; without a fence they may be the only data.
  const target = silent.find(({ name, hasFailed }) => name === open && name !== to && !(hasFailed && from !== null))
  return (source ?? target)?.name ?? null
}

/** A node that does not take a primary for the one that holds shards which all the same it does. */
export interface Dissent {
  /** `host:port` of the node, and of the primary. */
  readonly node: string
  readonly holder: string
  readonly shards: readonly number[]
}

/**
 * Nodes that name another primary, or none, and for which shards; empty if all answers agree. A node gets no updates
 * about a slot that it has marked as coming, so its view of that slot is old.
 */
export function findDissent({ nodes }: ClusterLook): Dissent[] {
  return nodes.flatMap(({ id, name: holder, shards }) =>
    nodes.flatMap(({ name: node, answers }) => {
      const line = answers?.nodes.find((one) => one.id === id)
      const isDeaf = (slot: number): boolean =>
        answers?.openSlots.some((open) => open.slot === slot && !open.isLeaving) === true
      const missed = shards.filter((shard) => {
        const slot = SHARD_SLOTS[shard] ?? 0
        return answers !== null && !isDeaf(slot) && !(line !== undefined && hasSlot(line, slot))
      })
      return missed.length === 0 ? [] : [{ node, holder, shards: missed }]
    }),
  )
}
