/**
 * partitions - owners of shards that are frozen, or cut off from the store in every way, while receivers are slow:
 * each message is received once, unless its final answer reached no process.
 *
 * A partition affects one direction or both, all connections or one, or ends them first.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { until } from '../support/machine/until.ts'
import { type Fleet, isReady, type Vessel } from '../support/service/fleet.ts'
import { makeRandom } from '../support/store/random-ops.ts'
import { LiveLoad, openReceivers, type Taken } from './live-load.ts'
import { FREE, HELD, type Rule, type Valve } from './valve.ts'
import { withValvedFleet } from './valved-fleet.ts'

export interface PartitionOptions {
  readonly seed: number
  readonly freezes: number
  readonly partitions: number
  /** Partitions go through the ways in their order, from this one on; the first by default. */
  readonly firstWay?: number
  /** The connections that are cut off, null for all; drawn by default. */
  readonly names?: readonly string[] | null
  /** Shortest and longest of each, ms. */
  readonly freezeMs: readonly [number, number]
  readonly partitionMs: readonly [number, number]
  readonly say: (line: string) => void
}

export interface PartitionReport extends Taken {
  readonly freezes: number
  readonly partitions: number
}

/** Under way when the first fault comes, or accepted before it. */
const MESSAGES_BEFORE = 30
const BETWEEN_MS = 4_000
const OWNER_MS_MAX = 60_000
const WAYS = [
  { toStore: HELD, fromStore: HELD },
  { toStore: HELD, fromStore: FREE },
  { toStore: FREE, fromStore: HELD },
] as const
const NAMES = [null, ['commit'], ['read'], ['views'], ['enqueue'], ['told'], ['ears']] as const

/** Runs all rounds, a freeze and a partition by turns, and counts what the receivers took. */
export async function runPartitions(options: PartitionOptions): Promise<PartitionReport> {
  const random = makeRandom(options.seed)
  const receivers = await openReceivers(random)
  const { settings } = receivers
  const fleetOf = {
    roles: ['actors', 'actors', 'http'],
    hasValve: (name: string) => name.startsWith('actors'),
    settings,
  }
  try {
    return await withValvedFleet(fleetOf, async ({ fleet, valves }) => {
      const load = await LiveLoad.begin(fleet, receivers)
      return new Rounds({ fleet, load, valves, random }, options).run()
    })
  } finally {
    await receivers.close()
  }
}

interface Scene {
  readonly fleet: Fleet
  readonly load: LiveLoad
  readonly valves: ReadonlyMap<string, Valve>
  readonly random: () => number
}

class Rounds {
  private readonly scene: Scene
  private readonly options: PartitionOptions
  private readonly redis: Redis

  constructor(scene: Scene, options: PartitionOptions) {
    this.scene = scene
    this.options = options
    this.redis = new Redis({ path: scene.fleet.redis.socketPath })
  }

  async run(): Promise<PartitionReport> {
    const { load } = this.scene
    const { freezes, partitions } = this.options
    await load.passes(MESSAGES_BEFORE)
    for (let round = 0; round < Math.max(freezes, partitions); round += 1) {
      if (round < freezes) await this.freeze(round)
      if (round < partitions) await this.partition(round)
    }
    this.redis.disconnect()
    return { freezes, partitions, ...(await load.settle()) }
  }

  /** Stops the process that owns the shard of the load. */
  private async freeze(round: number): Promise<void> {
    const vessel = await this.owner()
    const ms = this.between(this.options.freezeMs)
    this.options.say(`freeze ${round + 1}: ${vessel.name} for ${Math.round(ms)} ms`)
    process.kill(vessel.host.pid, 'SIGSTOP')
    await pause(ms)
    process.kill(vessel.host.pid, 'SIGCONT')
    await this.calm()
  }

  private async partition(round: number): Promise<void> {
    const vessel = await this.owner()
    const ms = this.between(this.options.partitionMs)
    const place = (this.options.firstWay ?? 0) + round
    const way = WAYS[place % WAYS.length] as (typeof WAYS)[number]
    const drawn = NAMES[Math.floor(this.scene.random() * NAMES.length)] ?? null
    const names = this.options.names === undefined ? drawn : this.options.names
    const rule: Rule = { names, ...way, severs: place % 2 === 1 }
    const what = `${names?.join() ?? 'all'}, ${way.toStore.held ? 'to' : ''} ${way.fromStore.held ? 'from' : ''} the store`
    this.options.say(
      `partition ${round + 1}: ${vessel.name}, ${what}${rule.severs ? ', severed' : ''}, ${Math.round(ms)} ms`,
    )
    this.scene.valves.get(vessel.name)?.set(rule)
    await pause(ms)
    this.scene.valves.get(vessel.name)?.set(null)
    await this.calm()
  }

  private async owner(): Promise<Vessel> {
    const { fleet, load } = this.scene
    return until(async () => {
      const owner = await this.redis.hget(`${load.shard}:meta`, 'owner')
      const { pid } = JSON.parse((await this.redis.hget('{cl}:workers', owner ?? '')) ?? '{"pid":0}') as { pid: number }
      return fleet.with('actors').find(({ host }) => host.pid === pid) ?? null
    }, OWNER_MS_MAX)
  }

  /** Processes that ended are started again, and all are ready. */
  private async calm(): Promise<void> {
    const { fleet } = this.scene
    await pause(BETWEEN_MS)
    for (const vessel of fleet.vessels) if (!vessel.host.isRunning()) await fleet.start(vessel)
    await Promise.all(fleet.vessels.map(isReady))
  }

  private between([least, most]: readonly [number, number]): number {
    return least + this.scene.random() * (most - least)
  }
}

/** The run in a line. */
export function describePartitions(report: PartitionReport): string {
  const { freezes, partitions, messages, lost, waiting, doubled, unheard, falselyRefused, refused } = report
  const faults = `${freezes} freezes, ${partitions} partitions`
  const outcome = `lost ${lost}, still waiting ${waiting}, taken twice ${doubled.length}, again after an answer that nobody heard ${unheard}`
  return `${faults}: messages ${messages}, ${outcome}, false refusals ${falselyRefused}, refused with 503 ${refused}`
}
