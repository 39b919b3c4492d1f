/** failovers - faults of primaries: one is killed or cut off, a replica takes its place later, and shards move */
import { parseMove } from '../../../cluster/slots/move-fence.ts'
import { SHARDS } from '../process.ts'
import type { Simulation } from '../simulation.ts'
import { mayBegin } from './may-begin.ts'
import { SimCluster } from './sim-cluster.ts'
import type { SimNode } from './sim-node.ts'

/** For one seed. */
const FAILOVERS_MAX = 5
const MOVES_MAX = 4
/** Orders that continue or undo a move, for one seed before peace. */
const ORDERS_MAX = 14
/**
 * From the loss of a primary until a replica has taken its place, and until the old primary learns of that or is
 * started.
 */
const ELECTED_MS = { least: 500, most: 4_000 }
const HEARD_MS_MAX = 3_000
const BACK_MS_MAX = 60_000
/** A replica's clock differs by less from that of its primary. */
const REPLICA_APART_MS = 200
/** The chance in one step that a fault hits a node or order of a move while it runs. */
const STRIKE_CHANCE = 0.0015
const FROZEN_MS_MAX = 30_000
const AGAIN_CHANCE = 0.02
/** The factor by which faults are more frequent during critical steps. */
const DELICATE = 4
const DELICATE_STEP = 'kept'
const KEYS_CHANCE = 0.02
/** The chance in one step that all nodes learn of a node's epoch. */
const EPOCH_CHANCE = 0.05
/** Replicas that others have too many of find a primary without any. */
const FOLLOWED_CHANCE = 0.005

/** A primary is lost. */
export function failOver(sim: Simulation, nodes?: readonly SimNode[]): void {
  const { base, chance, time } = sim
  if (!(base instanceof SimCluster) || !base.isCalm || base.failovers >= FAILOVERS_MAX) return
  const node = chance.pick(nodes ?? base.primaries)
  if (node.state !== 'primary' || !node.hasReplicas) return
  const isKilled = chance.hit(0.5)
  base.lose(node, isKilled)
  const atMs = time.nowMs + ELECTED_MS.least + chance.below(ELECTED_MS.most - ELECTED_MS.least)
  const backMsMax = isKilled ? BACK_MS_MAX : HEARD_MS_MAX
  sim.heirs.push({ node, atMs, deposedAtMs: atMs + chance.below(backMsMax) })
  sim.note(`${node.name} ${isKilled ? 'killed' : 'cut off'}`)
  // The node's knowledge of the other nodes was stored there, and the last messages may be lost.
  if (!node.hasCommon) return
  for (const process of sim.processes) {
    process.doubtedAtMs = atMs + HEARD_MS_MAX
    process.soundSinceMs = atMs + HEARD_MS_MAX
  }
}

/** A shard begins to move. */
export function moveShard(sim: Simulation): void {
  const { base, chance, moves } = sim
  if (!(base instanceof SimCluster) || moves === 'none' || !base.isCalm || sim.movesBegun >= MOVES_MAX) return
  const shard = chance.hit(0.5) ? (sim.orders.all.at(-1)?.shard ?? chance.below(SHARDS)) : chance.below(SHARDS)
  const others = base.primaries.filter((node) => node !== base.at(shard))
  if (others.length === 0) return
  const to = chance.pick(others)
  if (moves === 'keys') {
    base.beginMove(shard, to)
    sim.note(`s${shard} moves to ${to.name}`)
  } else if (sim.orders.live.length === 0 && fencedShard(base) === null && mayBegin(base, shard, to))
    sim.orders.begin(shard, to)
  else return
  sim.movesBegun += 1
}

/** The pending events of primaries: successors, news, moves that continue. With `isPeace`, all of them. */
export function goOn(sim: Simulation, isPeace = false): void {
  const { base, chance, time } = sim
  if (!(base instanceof SimCluster)) return
  for (const lost of [...sim.heirs]) {
    if (lost.node.heir === null && (isPeace || lost.atMs <= time.nowMs)) {
      const heir = base.promote(lost.node, chance.below(2 * REPLICA_APART_MS) - REPLICA_APART_MS)
      sim.note(`${heir.name} for ${lost.node.name}`)
    }
    if (lost.node.heir === null || !(isPeace || lost.deposedAtMs <= time.nowMs)) continue
    base.depose(lost.node)
    sim.note(`${lost.node.name} hears of it and is ${lost.node.state}`)
    sim.heirs.splice(sim.heirs.indexOf(lost), 1)
  }
  for (const claim of base.news.all)
    for (const ear of base.news.earsOf(claim)) {
      if (!isPeace && !chance.hit(claim.unheard.get(ear) ?? 0)) continue
      sim.note(`${typeof ear === 'string' ? ear : ear.name} hears of s${claim.shard} at ${claim.by.name}`)
      base.hear(claim, ear)
    }
  if (isPeace) base.endCollisions()
  for (const node of isPeace ? base.members : base.nodes) if (isPeace || chance.hit(EPOCH_CHANCE)) base.hearEpoch(node)
  for (const node of base.nodes) if (!node.hasReplicas && (isPeace || chance.hit(FOLLOWED_CHANCE))) follow(base, node)
  if (isPeace || chance.hit(KEYS_CHANCE)) base.goOn()
  if (sim.moves === 'fence') goOnWithOrders(sim, base, isPeace)
}

/** A primary without replicas gets one, which copies what is there. It has nothing that was removed before. */
function follow(base: SimCluster, node: SimNode): void {
  node.hasReplicas = true
  node.forgetGhosts()
  base.replicate(node)
}

function goOnWithOrders(sim: Simulation, base: SimCluster, isPeace: boolean): void {
  const { chance, orders } = sim
  orders.wake(isPeace)
  const isDelicate = base.news.size > 0 || orders.live.some(({ step }) => step === DELICATE_STEP)
  if (!isPeace && chance.hit(isDelicate ? DELICATE * STRIKE_CHANCE : STRIKE_CHANCE)) strike(sim, base)
  const shard = fencedShard(base)
  if (shard === null || orders.live.length > 0) return
  if (!isPeace && !(orders.all.length < ORDERS_MAX && chance.hit(AGAIN_CHANCE))) return
  const to = goalOf(sim, base, shard)
  if (mayBegin(base, shard, to)) orders.begin(shard, to)
}

/** The target of the next order for a shard: forward, or back. */
function goalOf({ chance }: Simulation, base: SimCluster, shard: number): SimNode {
  const at = base.at(shard)
  const ends = parseMove(at.metaOf(shard).get('owner') ?? '')
  let target = base.nodes.find(({ id }) => id === ends?.target)
  while (target !== undefined && target.heir !== null) target = target.heir
  return target === undefined || chance.hit(0.4) ? at : target
}

/**
 * The giving or taking node is lost, or the order ends or freezes. The same may happen once all nodes but a few know
 * of the slot.
 */
function strike(sim: Simulation, base: SimCluster): void {
  const { chance, orders } = sim
  const draw = chance.next()
  const [claim] = base.news.all
  const order = orders.live.length === 0 ? undefined : chance.pick(orders.live)
  if (claim !== undefined && draw < 0.6) failOver(sim, [claim.by, claim.before])
  else if (order === undefined) return
  else if (draw < 0.3) failOver(sim, [order.to])
  else if (draw < 0.6) failOver(sim, [base.at(order.shard)])
  else if (draw < 0.8) orders.kill(order)
  else orders.freeze(order, chance.below(FROZEN_MS_MAX))
}

/** A fenced shard, or null if there is none. */
export function fencedShard(base: SimCluster): number | null {
  for (let shard = 0; shard < SHARDS; shard += 1)
    if (parseMove(base.at(shard).metaOf(shard).get('owner') ?? '') !== null) return shard
  return null
}
