/**
 * partitions - owners of shards that are frozen, or cut off from the store in every way, while receivers are slow: each message
 * is taken once, but where its final answer was given to nobody.
 *
 * A partition holds one way or both, of all connections or of one, or severs them first.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { parseKey } from '../../src/http/key.ts'
import { startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { startZone, type Zone } from '../support/peers/zone.ts'
import { verifyDomain } from '../support/service/crash-live.ts'
import { type Fleet, isReady, type Vessel } from '../support/service/fleet.ts'
import { makeRandom } from '../support/store/random-ops.ts'
import { type SlowMx, startSlowMx } from './slow-mx.ts'
import { FREE, HELD, type Rule, type Valve } from './valve.ts'
import { withValvedFleet } from './valved-fleet.ts'

export interface PartitionOptions {
  readonly seed: number
  readonly freezes: number
  readonly partitions: number
  /** Partitions go through the ways in their order, from this one on; the first by default. */
  readonly firstWay?: number
  /** Shortest and longest of each, ms. */
  readonly freezeMs: readonly [number, number]
  readonly partitionMs: readonly [number, number]
  readonly say: (line: string) => void
}

export interface PartitionReport {
  readonly freezes: number
  readonly partitions: number
  readonly messages: number
  /** Accepted, taken by no receiver, and not waiting for an attempt. */
  readonly lost: number
  /** Still in the queue when the time to settle was over. */
  readonly waiting: number
  /** Taken more often than the lost answers explain. */
  readonly doubled: readonly string[]
  /** Taken again because nobody heard the first answer. */
  readonly unheard: number
  readonly falselyRefused: number
  readonly refused: number
}

const SITES = 8
/** Some ten messages a second: receivers that are slow take that many. */
const CLIENTS = 4
const EVERY_MS = 400
/** Under way when the first fault comes, or accepted before it. */
const MESSAGES_BEFORE = 30
/** After the final dot. */
const ANSWER_MS_MAX = 2_500
const BETWEEN_MS = 4_000
const SETTLE_MS_MAX = 300_000
const WAYS = [
  { toStore: HELD, fromStore: HELD },
  { toStore: HELD, fromStore: FREE },
  { toStore: FREE, fromStore: HELD },
] as const
const NAMES = [null, ['commit'], ['read'], ['views'], ['enqueue'], ['told'], ['ears']] as const

/** Runs all rounds, a freeze and a partition by turns, and counts what the receivers took. */
export async function runPartitions(options: PartitionOptions): Promise<PartitionReport> {
  const random = makeRandom(options.seed)
  const [zone, mx] = [await startZone(), await startSlowMx(() => random() * ANSWER_MS_MAX)]
  // Each a site of its own: one alone would take what waits only slowly.
  for (let n = 0; n < SITES; n += 1) {
    zone.set(`d${n}.example`, { type: 'MX', exchange: `mx.d${n}.example`, priority: 10 })
    zone.set(`mx.d${n}.example`, { type: 'A', address: '127.0.0.1' })
  }
  try {
    return await withValvedFleet(
      {
        roles: ['actors', 'actors', 'http'],
        hasValve: (name) => name.startsWith('actors'),
        settings: { DNS_SERVERS: zone.server, DELIVERY_PORT: String(mx.port), PRIVATE_NETWORKS_ALLOWED: '127.0.0.0/8' },
      },
      ({ fleet, valves }) => new Rounds({ fleet, zone, mx, valves, random }, options).run(),
    )
  } finally {
    mx.close()
    await zone.close()
  }
}

interface Scene {
  readonly fleet: Fleet
  readonly zone: Zone
  readonly mx: SlowMx
  readonly valves: ReadonlyMap<string, Valve>
  readonly random: () => number
}

class Rounds {
  private readonly scene: Scene
  private readonly options: PartitionOptions
  private readonly redis: Redis
  private readonly shard: string

  constructor(scene: Scene, options: PartitionOptions) {
    this.scene = scene
    this.options = options
    this.redis = new Redis({ path: scene.fleet.redis.socketPath })
    const shard = parseKey(scene.fleet.firstRun.liveServer.token)?.shard ?? 0
    this.shard = `{s${String(shard).padStart(3, '0')}}`
  }

  async run(): Promise<PartitionReport> {
    const { fleet, zone, mx } = this.scene
    const { freezes, partitions } = this.options
    const [http] = fleet.with('http') as [Vessel]
    await verifyDomain(http.httpPort, fleet.firstRun, { zone, domain: 'acme.example' })
    const load = startLoad({
      port: http.httpPort,
      token: fleet.firstRun.liveServer.token,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      from: 'shop@acme.example',
      recipient: (n) => `person${n}@d${n % SITES}.example`,
    })
    await load.passes(MESSAGES_BEFORE)
    for (let round = 0; round < Math.max(freezes, partitions); round += 1) {
      if (round < freezes) await this.freeze(round)
      if (round < partitions) await this.partition(round)
    }
    const ledger = await load.end()
    const sent = ledger.told.size
    const taken = new Map<string, { copies: number; unheard: number }>()
    await until(async () => {
      taken.clear()
      for (const { recipient, isHeard } of mx.copies) {
        const one = taken.get(recipient) ?? { copies: 0, unheard: 0 }
        taken.set(recipient, { copies: one.copies + 1, unheard: one.unheard + (isHeard === false ? 1 : 0) })
      }
      return taken.size >= sent && (await this.waiting()) === 0
    }, SETTLE_MS_MAX).catch(() => undefined)
    const waiting = await this.waiting()
    this.redis.disconnect()
    const doubled = [...taken].filter(([, { copies, unheard }]) => copies - unheard > 1).map(([recipient]) => recipient)
    return {
      freezes,
      partitions,
      messages: sent,
      lost: Math.max(0, sent - taken.size - waiting),
      waiting,
      doubled,
      unheard: [...taken.values()].reduce((sum, { copies, unheard }) => sum + Math.min(unheard, copies - 1), 0),
      falselyRefused: ledger.falselyRefused.length,
      refused: ledger.refusals.filter(({ status }) => status === 503).length,
    }
  }

  private async waiting(): Promise<number> {
    const lanes = Array.from({ length: SITES }, (_, n) => `${this.shard}:due:deliver/d${n}.example`)
    const counts = await Promise.all(lanes.map((lane) => this.redis.zcard(lane)))
    return counts.reduce((sum, count) => sum + count, 0)
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
    const names = NAMES[Math.floor(this.scene.random() * NAMES.length)] ?? null
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
    const { fleet } = this.scene
    return until(async () => {
      const owner = await this.redis.hget(`${this.shard}:meta`, 'owner')
      const { pid } = JSON.parse((await this.redis.hget('{cl}:workers', owner ?? '')) ?? '{"pid":0}') as { pid: number }
      return fleet.with('actors').find(({ host }) => host.pid === pid) ?? null
    }, SETTLE_MS_MAX)
  }

  /** Who ended is started anew, and all are ready. */
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
