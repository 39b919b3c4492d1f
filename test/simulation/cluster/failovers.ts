/** failovers - what befalls primaries: one is killed or cut off, a replica takes its place later; shards move */
import { SHARDS } from '../process.ts'
import type { Simulation } from '../simulation.ts'
import { SimCluster } from './sim-cluster.ts'

/** Of one seed. */
const FAILOVERS_MAX = 4
const MOVES_MAX = 4
/** From the loss of a primary until a replica has taken its place, and until it hears of that itself. */
const ELECTED_MS = { least: 500, most: 4_000 }
const HEARD_MS_MAX = 3_000
/** A replica's clock differs by less from that of its primary. */
const REPLICA_APART_MS = 200

/** A primary is lost. */
export function failOver(sim: Simulation): void {
  const { base, chance, time } = sim
  if (!(base instanceof SimCluster) || !base.isCalm || base.failovers >= FAILOVERS_MAX) return
  const node = chance.pick(base.primaries)
  const isKilled = chance.hit(0.5)
  base.lose(node, isKilled)
  const atMs = time.nowMs + ELECTED_MS.least + chance.below(ELECTED_MS.most - ELECTED_MS.least)
  sim.heirs.push({ node, atMs, deposedAtMs: atMs + chance.below(HEARD_MS_MAX) })
  sim.note(`${node.name} ${isKilled ? 'killed' : 'cut off'}`)
  // What others knew of each other lay there, and what was said last may be gone.
  if (!node.hasCommon) return
  for (const process of sim.processes) {
    process.doubtedAtMs = atMs + HEARD_MS_MAX
    process.soundSinceMs = atMs + HEARD_MS_MAX
  }
}

/** A shard begins to move. */
export function moveShard(sim: Simulation): void {
  const { base, chance } = sim
  if (!(base instanceof SimCluster) || !sim.shardsMove || !base.isCalm || base.moves >= MOVES_MAX) return
  const shard = chance.below(SHARDS)
  const others = base.primaries.filter((node) => node !== base.at(shard))
  if (others.length === 0) return
  const to = chance.pick(others)
  base.beginMove(shard, to)
  sim.note(`s${shard} moves to ${to.name}`)
}

/** What is due among primaries: heirs, and moves that go on. `isPeace`: all of it. */
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
    sim.heirs.splice(sim.heirs.indexOf(lost), 1)
  }
  if (isPeace || chance.hit(0.02)) base.goOn()
}
