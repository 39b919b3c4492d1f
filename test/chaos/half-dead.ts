/**
 * half-dead - processes with one blocked or slow connection to the store while the others work, side by side and under
 * load. Other processes soon take over the work of such an owner's shards, and an owner that is impaired for the third
 * time ends. A process that only listens reports itself as not ready, and as ready again once all is well.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { seedAccounts } from '../../bench/contestants/seed.ts'
import { SHARDS } from '../../cluster/id.ts'
import { metaKey, WORKERS_KEY } from '../../cluster/keyspace.ts'
import type { WorkerRecord } from '../../cluster/store.ts'
import { wantedOwner } from '../../cluster/worker/rendezvous.ts'
import { parseKey } from '../../src/http/key.ts'
import { type Accepted, sendAll, startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { FLEET_SECRET, type Fleet, isReady, type Vessel } from '../support/service/fleet.ts'
import { type Compared, compare } from './compare.ts'
import { type Flow, FREE, HELD, type Valve } from './valve.ts'
import { withValvedFleet } from './valved-fleet.ts'

/** The fault of one connection of an owner. */
export interface Illness {
  readonly what: string
  readonly name: string
  readonly toStore: Flow
  readonly fromStore: Flow
}

export interface HalfDeadReport extends Compared {
  /** Until the shards of an owner had moved to others, where they move, and all accounts on them were served. */
  readonly served: readonly { readonly what: string; readonly ms: number }[]
  /** Until a listener reported itself as not ready, and as ready again. */
  readonly unready: readonly { readonly what: string; readonly heldMs: number; readonly healedMs: number }[]
  /** Exit codes of owners that ailed for the third time. */
  readonly ended: readonly (number | null)[]
  readonly falselyRefused: number
}

const SLOW: Flow = { held: false, delayMs: 5_000 }
/**
 * Five at a time: the fourth of them is impaired three times, the fifth serves its shards all the same, and those of
 * the others.
 */
const ILLNESSES: readonly Illness[] = [
  { what: 'reads of which the answers are held', name: 'read', toStore: FREE, fromStore: HELD },
  { what: 'commits that take five seconds', name: 'commit', toStore: FREE, fromStore: SLOW },
  { what: 'commits that are held', name: 'commit', toStore: HELD, fromStore: FREE },
  { what: 'views that are held', name: 'views', toStore: HELD, fromStore: HELD },
  { what: 'ears that are held', name: 'ears', toStore: HELD, fromStore: HELD },
  { what: 'reads that take five seconds', name: 'read', toStore: SLOW, fromStore: FREE },
  { what: 'commits that are late by five seconds', name: 'commit', toStore: SLOW, fromStore: FREE },
  { what: 'commits of which the answers are held', name: 'commit', toStore: FREE, fromStore: HELD },
  { what: 'views that take five seconds', name: 'views', toStore: FREE, fromStore: SLOW },
  { what: 'ears that are late by five seconds', name: 'ears', toStore: FREE, fromStore: SLOW },
]
const SICK_OWNERS = 5
/** One more is ended at first: it has taken nearly all shards, which the others share at once then. */
const OWNERS = SICK_OWNERS + 1
const SERVES_ALL_THE_SAME = 'ears'
/** Within ten minutes. */
const TIMES_MAX = 3
/** The blocked connections of each listener, one after the other. */
const PARTS = [
  ['commit', 'read', 'views'],
  ['enqueue', 'told'],
] as const
/** A key for each. An owner without one of them would be served at once. */
const ACCOUNTS = 64
const CLIENTS = 4
const EVERY_MS = 50
const LOOK_MS = 100
const WAIT_MS = 60_000

/** The report of a process about itself. */
interface Said extends WorkerRecord {
  readonly worker: string
}

/** Runs this number of rounds, each with five owners and two listeners with one impaired connection. */
export async function runHalfDead(rounds: number, say: (line: string) => void): Promise<HalfDeadReport> {
  const listeners = [...PARTS.map(() => 'http'), 'http']
  const roles = [...Array.from({ length: OWNERS }, () => 'actors'), ...listeners]
  const sound = `http-${roles.length - 1}`
  const options = { roles, hasValve: (name: string) => name !== sound }
  return withValvedFleet(options, ({ fleet, valves }) => new Ward(fleet, valves, say).run(rounds))
}

class Ward {
  private readonly fleet: Fleet
  private readonly valves: ReadonlyMap<string, Valve>
  private readonly say: (line: string) => void
  private readonly redis: Redis
  private owners: readonly Vessel[]
  private readonly listeners: readonly Vessel[]
  /** A listener that nothing befalls. */
  private readonly sound: Vessel
  private readonly served: { what: string; ms: number }[] = []
  private readonly unready: { what: string; heldMs: number; healedMs: number }[] = []
  private readonly ended: (number | null)[] = []
  private readonly ledger: Accepted[] = []
  private falselyRefused = 0
  private tokens: readonly string[] = []

  constructor(fleet: Fleet, valves: ReadonlyMap<string, Valve>, say: (line: string) => void) {
    this.fleet = fleet
    this.valves = valves
    this.say = say
    this.redis = new Redis({ path: fleet.redis.socketPath })
    this.owners = fleet.with('actors')
    this.listeners = fleet.with('http').slice(0, -1)
    this.sound = fleet.with('http').at(-1) as Vessel
  }

  async run(rounds: number): Promise<HalfDeadReport> {
    const { socketPath } = this.fleet.redis
    const seeding = { socketPath, accounts: ACCOUNTS, over: ACCOUNTS, mode: 'test', secretKey: FLEET_SECRET } as const
    await this.endTheFirst()
    this.tokens = await seedAccounts(seeding)
    const load = startLoad({
      port: this.sound.httpPort,
      token: this.tokens,
      clients: CLIENTS,
      everyMs: EVERY_MS,
      recipient: (n) => `person${n}@example.com`,
      accepted: async (message) => void this.ledger.push(message),
    })
    for (let round = 0; round < rounds; round += 1) {
      // A process that sees a moving shard is not ready.
      await this.balanced()
      await Promise.all(PARTS.map((parts, n) => this.playListener(this.listeners[n] as Vessel, parts)))
      const first = round * SICK_OWNERS
      const ill = this.owners.slice(0, SICK_OWNERS)
      await Promise.all(ill.map((one, n) => this.playOwner(one, ILLNESSES[(first + n) % ILLNESSES.length] as Illness)))
    }
    const { falselyRefused } = await load.end()
    this.redis.disconnect()
    const compared = await compare(socketPath, { ledger: this.ledger, port: this.sound.httpPort })
    const { served, unready, ended } = this
    return {
      ...compared,
      served,
      unready,
      ended,
      falselyRefused: this.falselyRefused + falselyRefused.length,
    }
  }

  /**
   * An owner becomes impaired, and others serve its shards. The one with impaired views is impaired twice more and
   * ends.
   */
  private async playOwner(owner: Vessel, { what, name, toStore, fromStore }: Illness): Promise<void> {
    const valve = this.valves.get(owner.name) as Valve
    const rule = { names: [name], severs: false, toStore, fromStore }
    const mine = await this.shardsOf(owner)
    const sinceMs = performance.now()
    valve.set(rule)
    const leaves = name !== SERVES_ALL_THE_SAME
    await this.comesTrue(async () => !leaves || (await this.shardsOf(owner)).size === 0)
    await this.accept(this.tokens.filter((token) => mine.has(parseKey(token)?.shard ?? -1)))
    const ms = Math.round(performance.now() - sinceMs)
    this.served.push({ what, ms })
    this.say(`an owner with ${what}: ${mine.size} shards served after ${ms} ms`)
    if (name === 'views') {
      for (let time = 2; time <= TIMES_MAX; time += 1) {
        valve.set(null)
        await this.comesTrue(async () => (await this.ails(owner)) === false)
        valve.set(rule)
        await this.comesTrue(
          async () => !owner.host.isRunning() || (time < TIMES_MAX && (await this.ails(owner)) === true),
        )
      }
      this.ended.push(await owner.host.exited)
    }
    valve.set(null)
  }

  private async playListener(listener: Vessel, parts: readonly string[]): Promise<void> {
    const valve = this.valves.get(listener.name) as Valve
    for (const name of parts) {
      await isReady(listener)
      const sinceMs = performance.now()
      valve.set({ names: [name], severs: false, toStore: HELD, fromStore: FREE })
      await until(async () => !(await saysReady(listener)), WAIT_MS)
      const heldMs = Math.round(performance.now() - sinceMs)
      // One without a fault is ready meanwhile.
      await until(async () => (await saysReady(this.sound)) && !(await saysReady(listener)), WAIT_MS)
      valve.set(null)
      const healedAtMs = performance.now()
      await until(() => saysReady(listener), WAIT_MS)
      const healedMs = Math.round(performance.now() - healedAtMs)
      this.unready.push({ what: name, heldMs, healedMs })
      this.say(`a listener with ${name} held: not ready after ${heldMs} ms, ready again after ${healedMs} ms`)
    }
  }

  /** One message of each key, again until it is accepted. */
  private async accept(tokens: readonly string[]): Promise<void> {
    const { falselyRefused } = await sendAll({
      port: this.sound.httpPort,
      token: tokens,
      clients: tokens.length,
      recipient: (n) => `served${n}@example.com`,
      accepted: async (message) => void this.ledger.push(message),
      goOn: (sent) => sent < tokens.length,
    })
    this.falselyRefused += falselyRefused.length
  }

  /** The first process has nearly all shards, and would give them away a few at a time. */
  private async endTheFirst(): Promise<void> {
    const counts = await Promise.all(this.owners.map(async (one) => ({ one, count: (await this.shardsOf(one)).size })))
    const [first] = counts.toSorted((a, b) => b.count - a.count)
    await first?.one.host.kill('SIGTERM')
    this.owners = this.owners.filter((one) => one !== first?.one)
  }

  /** Every owner runs and holds exactly its own shards, so that none is about to move. */
  private async balanced(): Promise<void> {
    for (const owner of this.owners) if (!owner.host.isRunning()) await this.fleet.start(owner)
    await Promise.all(this.owners.map(isReady))
    await this.comesTrue(async () => {
      const workers = new Set(
        (await this.records()).filter(({ takesShards }) => takesShards).map(({ worker }) => worker),
      )
      return (await this.ownersOfShards()).every((owner, shard) => owner === wantedOwner(shard, [...workers]))
    })
    await Promise.all(this.fleet.with('http').map(isReady))
  }

  private async comesTrue(condition: () => Promise<boolean>): Promise<void> {
    await until(async () => {
      if (await condition()) return true
      await pause(LOOK_MS)
      return false
    }, WAIT_MS)
  }

  private async shardsOf(owner: Vessel): Promise<ReadonlySet<number>> {
    const mine = (await this.recordOf(owner))?.worker
    return new Set((await this.ownersOfShards()).flatMap((one, shard) => (one === mine ? [shard] : [])))
  }

  private async ownersOfShards(): Promise<string[]> {
    const pipeline = this.redis.pipeline()
    for (let shard = 0; shard < SHARDS; shard += 1) pipeline.hget(metaKey(shard), 'owner')
    return ((await pipeline.exec()) ?? []).map(([, one]) => String(one))
  }

  /** The record of an owner about itself; undefined without one. */
  private async ails(owner: Vessel): Promise<boolean | undefined> {
    return (await this.recordOf(owner))?.ails
  }

  private async recordOf({ host }: Vessel): Promise<Said | undefined> {
    return (await this.records()).find(({ pid }) => pid === host.pid)
  }

  private async records(): Promise<Said[]> {
    const records = Object.entries(await this.redis.hgetall(WORKERS_KEY))
    return records.map(([worker, text]) => ({ worker, ...(JSON.parse(text) as WorkerRecord) }))
  }
}

async function saysReady({ operatorPort }: Vessel): Promise<boolean> {
  const url = `http://127.0.0.1:${operatorPort}/readyz`
  return (await fetch(url, { headers: { connection: 'close' } }).catch(() => null))?.status === 200
}

/** The broken promises. In: the longest time for the shards of an owner, and for a listener, in ms. */
export function failuresOfHalfDead(
  { served, unready, ended, falselyRefused, lost, doubled, miscounted, unclear }: HalfDeadReport,
  { servedMsMax, readyMsMax }: { servedMsMax: number; readyMsMax: number },
): string[] {
  const counts = { lost, doubled, miscounted: miscounted.length, unclear, falselyRefused }
  return [
    ...served.filter(({ ms }) => ms > servedMsMax).map(({ what, ms }) => `${what}: served only after ${ms} ms`),
    ...unready
      .filter(({ heldMs, healedMs }) => Math.max(heldMs, healedMs) > readyMsMax)
      .map((one) => `${one.what} held: not ready after ${one.heldMs} ms, ready again after ${one.healedMs} ms`),
    ...ended.filter((code) => code !== 1).map((code) => `the third time ended a process with ${code}`),
    ...Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${what}: ${count}`] : [])),
  ]
}
