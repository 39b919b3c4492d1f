/**
 * newcomer - a process that starts while the primary of the workers' records is cut off, which then loses its place
 *
 * The replica that takes the place has no record of the process. If the process held shards by then, and paused, the
 * others would take it for gone, and repeat what it performs.
 */
import { setImmediate as settle } from 'node:timers/promises'
import t from 'tap'
import { hear } from '../../simulation/chaos.ts'
import { SimCluster } from '../../simulation/cluster/sim-cluster.ts'
import { deliver } from '../../simulation/delivery.ts'
import { Simulation } from '../../simulation/simulation.ts'

const SEEDS = [1, 2, 3, 4]
const ROUND_MS = 20
/** Longer than the others wait before they give a newcomer some of their shards. */
const CALM_MS = 14_000

/** Everything arrives at once, for so long. */
async function pass(sim: Simulation, ms: number): Promise<void> {
  const { network, time } = sim
  for (const endMs = time.nowMs + ms; time.nowMs < endMs; time.nowMs += ROUND_MS) {
    for (let left = network.requests.length; left > 0; left -= 1) await deliver(sim, network.takeRequest(0))
    for (const answer of [...network.answers]) if (network.answers.includes(answer)) network.complete(answer)
    while (network.said.length > 0) hear(sim, 0)
    await settle()
    for (const timer of time.dueTimers(sim.awakeClocks())) if (time.timers.has(timer)) time.call(timer)
    await settle()
  }
}

t.test('newcomer: it takes shards once a replica has its record', async (t) => {
  for (const seed of SEEDS) {
    const sim = new Simulation(seed, null, 2)
    sim.faults = 0
    sim.startProcess()
    await pass(sim, CALM_MS)
    const { base } = sim
    if (!(base instanceof SimCluster)) return t.fail('there are two primaries')
    const node = base.at(0)
    t.ok(node.hasCommon, 'the records are there')
    base.replicate(node)
    base.lose(node, false)
    const newcomer = sim.startProcess()
    await pass(sim, CALM_MS)
    t.same(newcomer.worker.owned, [], 'a failover could still drop its record')
    base.promote(node, 0)
    base.depose(node)
    await pass(sim, 2 * CALM_MS)
    t.same(sim.observer.violations, [])
    const owned = sim.processes.map(({ worker }) => worker.owned.length)
    t.equal(
      owned.reduce((sum, count) => sum + count, 0),
      4,
      'every shard has one owner',
    )
    t.ok(newcomer.worker.livingWorkers.length === 2, 'it has joined')
  }
})
