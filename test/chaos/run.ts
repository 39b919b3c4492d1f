/**
 * run - a fleet under load, one fault after the other, and the final report.
 *
 * Faults (reliability F1 to F4, F12, F24): a process or the store is killed, all are killed together, an owner is
 * frozen for longer than it may be silent, processes are restarted one by one, connections to the store are cut at any
 * byte, and many requests with one Idempotency-Key meet a kill.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { seedAccounts } from '../../bench/contestants/seed.ts'
import { parseKey } from '../../src/http/key.ts'
import { type Accepted, type Load, type Refusal, startLoad } from '../support/clients/ledger.ts'
import { until } from '../support/machine/until.ts'
import { FLEET_SECRET, type Fleet, isReady, startFleet, type Vessel } from '../support/service/fleet.ts'
import { makeRandom } from '../support/store/random-ops.ts'
import { type Compared, compare } from './compare.ts'
import { type Cutter, openCutter } from './cutter.ts'
import { openLedgerFile, readLedgerFile } from './ledger-file.ts'
import { storm } from './storm.ts'
import { Touches } from './touches.ts'

export interface ChaosOptions {
  readonly seed: number
  /** Processes and stores killed one at a time. */
  readonly kills: number
  /** Kills of all processes together. */
  readonly falls: number
  /** Owners frozen, and for how long each. */
  readonly stops: number
  readonly stopMs: number
  /** Restarts of every process, one by one. */
  readonly rolls: number
  /** Rounds of cut connections. */
  readonly cuts: number
  /** Requests with one key in the middle of a kill, 64 at once. */
  readonly storms: number
  readonly clients: number
  /** Waits for calm after each fault, so that a refusal is laid to the fault that it belongs to. */
  readonly isStrict: boolean
  /** All shards must be served again after this time, whatever was killed. */
  readonly recoveryMsMax: number
  readonly say: (line: string) => void
}

/** A fault as it was done. */
export type Fault = 'http' | 'actors' | 'redis' | 'all' | 'stop' | 'roll' | 'cut' | 'storm'

export interface ChaosReport extends Compared {
  readonly seed: number
  readonly done: Readonly<Record<Fault, number>>
  /** Times until all shards were served again, ms, in order. */
  readonly recoveredMs: readonly number[]
  /** Requests without an answer, whose truth was learnt by asking again. */
  readonly inDoubt: number
  readonly refused: number
  /** Requests and refusals while processes were restarted one by one. */
  readonly rolled: { readonly requests: number; readonly refused: number }
  /** Answers that no fault explains: other than 503, a 503 of a shard without a fault, a request cut in a roll. */
  readonly unexplained: readonly string[]
  readonly ended: readonly string[]
}

const ACCOUNTS = 32
/** Shards of the accounts. Any process that owns shards has some of these. */
const TAKEN_SHARDS = 8
const SHARDS = 256
const SERVED_MS_MAX = 30_000
const BETWEEN_MS = 400
const MESSAGES_BETWEEN = 70
const CUTS_PER_ROUND = 10
/** Ten minutes of load must leave room, because a store that is nearly full refuses. */
const STORE_BYTES = 4 * 1024 ** 3
/** A request without an answer by then got none, even on a machine that freezes. */
const TRY_MS_MAX = 30_000
/**
 * The pause of a client between two messages. The store is read completely after each of its kills, and compared in
 * the end.
 */
const EVERY_MS = 30
const BEHIND_CUTTER = 'actors-0'

/** Runs all faults in an order drawn from the seed. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const dir = mkdtempSync(join(tmpdir(), 'sendwright-chaos-'))
  const path = join(dir, 'cut.sock')
  const storePath = { is: '' }
  const cutter = await openCutter(path, () => storePath.is)
  try {
    const fleet = await startFleet(['actors', 'actors', 'http', 'http'], {
      store: { memoryBytes: STORE_BYTES },
      address: (name, redis) => {
        storePath.is = redis.socketPath
        return name === BEHIND_CUTTER ? path : undefined
      },
    })
    try {
      return await new Chaos(fleet, cutter, options).run(join(dir, 'ledger'))
    } finally {
      await fleet.end()
    }
  } finally {
    cutter.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

class Chaos {
  private readonly fleet: Fleet
  private readonly cutter: Cutter
  private readonly options: ChaosOptions
  private readonly random: () => number
  private readonly redis: Redis
  private readonly done: Record<Fault, number> = {
    http: 0,
    actors: 0,
    redis: 0,
    all: 0,
    stop: 0,
    roll: 0,
    cut: 0,
    storm: 0,
  }
  private readonly recoveredMs: number[] = []
  private readonly unexplained: string[] = []
  private readonly ended: string[] = []
  private keys: string[] = []
  private refused = 0
  private readonly rolled = { requests: 0, refused: 0 }
  private readonly touches = new Touches()
  private last = ''
  private isRolling = false

  constructor(fleet: Fleet, cutter: Cutter, options: ChaosOptions) {
    this.fleet = fleet
    this.cutter = cutter
    this.options = options
    this.random = makeRandom(options.seed)
    this.redis = new Redis({ path: fleet.redis.socketPath, retryStrategy: () => 50, maxRetriesPerRequest: null })
    this.redis.on('error', () => undefined)
  }

  async run(ledgerPath: string): Promise<ChaosReport> {
    const { fleet, options } = this
    const socketPath = fleet.redis.socketPath
    const seeding = {
      socketPath,
      accounts: ACCOUNTS,
      over: TAKEN_SHARDS,
      mode: 'test',
      secretKey: FLEET_SECRET,
    } as const
    this.keys = await seedAccounts(seeding)
    const file = await openLedgerFile(ledgerPath)
    const load = startLoad({
      port: fleet.with('http').map(({ httpPort }) => httpPort),
      token: this.keys,
      clients: options.clients,
      everyMs: EVERY_MS,
      tryMsMax: TRY_MS_MAX,
      recipient: (n) => `person${n % 500}@example.com`,
      accepted: (message) => {
        if (this.isRolling) this.rolled.requests += 1
        return file.note(message)
      },
      refused: (refusal) => this.hearRefusal(refusal),
    })
    for (const fault of this.faults()) {
      await this.act(fault, (message) => file.note(message))
      this.lookAtProcesses()
      await load.passes(MESSAGES_BETWEEN)
    }
    const inDoubt = await this.endLoad(load)
    await file.close()
    this.redis.disconnect()
    const ledger: Accepted[] = await readLedgerFile(ledgerPath)
    const port = fleet.with('http')[0]?.httpPort ?? 0
    const compared = await compare(socketPath, { ledger, port })
    const { seed } = options
    const { done, recoveredMs, refused, rolled, unexplained, ended } = this
    return {
      ...compared,
      seed,
      done,
      recoveredMs: recoveredMs.toSorted((a, b) => a - b),
      inDoubt,
      refused,
      rolled,
      unexplained,
      ended,
    }
  }

  /** All faults that are wanted, shuffled. */
  private faults(): Fault[] {
    const { kills, falls, stops, rolls, cuts, storms } = this.options
    const all: Fault[] = []
    const kinds = ['actors', 'http', 'redis', 'actors'] as const
    for (let n = 0; n < kills; n += 1) all.push(kinds[n % kinds.length] ?? 'actors')
    const more: [Fault, number][] = [
      ['all', falls],
      ['stop', stops],
      ['roll', rolls],
      ['cut', cuts],
      ['storm', storms],
    ]
    for (const [fault, count] of more) for (let n = 0; n < count; n += 1) all.push(fault)
    for (let place = all.length - 1; place > 0; place -= 1) {
      const other = this.below(place + 1)
      const held = all[place] as Fault
      all[place] = all[other] as Fault
      all[other] = held
    }
    return all
  }

  private async act(fault: Fault, accepted: (message: Accepted) => Promise<void>): Promise<void> {
    this.done[fault] += 1
    this.last = `${fault} ${this.done[fault]}`
    await pause(BETWEEN_MS * this.random())
    const startedAtMs = performance.now()
    if (fault === 'redis') await this.killStore()
    else if (fault === 'all') await this.killAll()
    else if (fault === 'stop') await this.freeze()
    else if (fault === 'roll') await this.roll()
    else if (fault === 'cut') await this.cut()
    else if (fault === 'storm') await this.storm(accepted)
    else await this.killOne(this.of(this.fleet.with(fault)))
    this.options.say(`${this.last}: ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`)
  }

  private async killOne(vessel: Vessel): Promise<void> {
    const mine = await this.shardsOf(vessel)
    this.touch(this.options.isStrict ? mine : null)
    await vessel.host.kill('SIGKILL')
    const killedAtMs = performance.now()
    if (mine.size > 0) await this.served(killedAtMs)
    await this.fleet.start(vessel)
    await this.settled()
  }

  private async killStore(): Promise<void> {
    this.touch(null)
    await this.fleet.redis.kill('SIGKILL')
    await this.fleet.redis.restart()
    await this.served(performance.now())
  }

  private async killAll(): Promise<void> {
    this.touch(null)
    await Promise.all(this.fleet.vessels.map(({ host }) => host.kill('SIGKILL')))
    const killedAtMs = performance.now()
    await Promise.all(this.fleet.vessels.map((vessel) => this.fleet.start(vessel, false)))
    await Promise.all(this.fleet.vessels.map(isReady))
    this.recoveredMs.push(performance.now() - killedAtMs)
  }

  /** An owner that is frozen for longer than it may be silent. Its actions on resuming must count for nothing. */
  private async freeze(): Promise<void> {
    this.touch(null)
    const vessel = this.of(this.fleet.with('actors'))
    const { pid } = vessel.host
    process.kill(pid, 'SIGSTOP')
    await pause(this.options.stopMs)
    process.kill(pid, 'SIGCONT')
    await this.served(performance.now())
    await this.settled()
  }

  private async roll(): Promise<void> {
    this.touch(null)
    // Refusals from here on are attributed to the restarts alone.
    await this.calm()
    this.isRolling = true
    for (const vessel of this.fleet.vessels) {
      await vessel.host.kill('SIGTERM')
      if ((await vessel.host.exited) !== 0) this.ended.push(`${vessel.name} did not stop by itself`)
      await this.fleet.start(vessel)
    }
    this.isRolling = false
  }

  private async cut(): Promise<void> {
    this.touch(null)
    for (let n = 0; n < CUTS_PER_ROUND; n += 1) {
      this.cutter.cut(this.below(3_000), this.random() < 0.3)
      await pause(this.below(300))
    }
    await this.served(performance.now())
  }

  private async storm(accepted: (message: Accepted) => Promise<void>): Promise<void> {
    this.touch(null)
    const token = this.of(this.keys)
    const key = `storm-${this.options.seed}-${this.done.storm}`
    const ports = this.fleet.with('http').map(({ httpPort }) => httpPort)
    const told = storm({ ports, token, key, accepted })
    await pause(this.below(30))
    const vessel = this.of(this.fleet.with('actors'))
    await vessel.host.kill('SIGKILL')
    await this.served(performance.now())
    const { differing } = await told
    if (differing > 0) this.unexplained.push(`${key}: ${differing} bodies answered with another message`)
    await this.fleet.start(vessel)
    await this.settled()
  }

  private touch(shards: ReadonlySet<number> | null): void {
    this.touches.begin(performance.now(), shards)
  }

  private hearRefusal({ status, token, body, startedAtMs }: Refusal): void {
    if (status === 0) {
      if (this.isRolling) this.unexplained.push('a request got no answer in a rolling restart')
      return
    }
    this.refused += 1
    if (this.isRolling) this.rolled.refused += 1
    const shard = parseKey(token)?.shard ?? -1
    const nowMs = performance.now()
    if (status !== 503) this.unexplained.push(`${status} ${body.slice(0, 200)}`)
    else if (!this.touches.explain(shard, startedAtMs, nowMs)) {
      const lifeMs = Math.round(nowMs - startedAtMs)
      this.unexplained.push(
        `503 of shard ${shard}, which had a living owner, after ${lifeMs} ms, last was ${this.last}`,
      )
    }
  }

  /** Nothing moves any more, so only the next action can explain a refusal. */
  private async settled(): Promise<void> {
    if (this.options.isStrict) await this.calm()
  }

  private async calm(): Promise<void> {
    await until(async () => {
      const before = await this.owners()
      await pause(1_100)
      return JSON.stringify(before) === JSON.stringify(await this.owners())
    }, SERVED_MS_MAX)
  }

  /** Resolves when every shard has an owner that lives, and notes how long that took. */
  private async served(sinceMs: number): Promise<void> {
    await until(async () => {
      const living = await this.living()
      return (await this.owners()).every((owner) => living.has(owner))
    }, SERVED_MS_MAX)
    this.recoveredMs.push(performance.now() - sinceMs)
  }

  private async owners(): Promise<string[]> {
    const pipeline = this.redis.pipeline()
    for (let shard = 0; shard < SHARDS; shard += 1) pipeline.hget(`{s${String(shard).padStart(3, '0')}}:meta`, 'owner')
    return ((await pipeline.exec()) ?? []).map(([, owner]) => String(owner))
  }

  private async workers(): Promise<[worker: string, pid: number][]> {
    const records = Object.entries(await this.redis.hgetall('{cl}:workers'))
    return records.map(([worker, text]) => [worker, (JSON.parse(text) as { pid: number }).pid])
  }

  private async living(): Promise<Set<string>> {
    const pids = new Set(this.fleet.vessels.filter(({ host }) => host.isRunning()).map(({ host }) => host.pid))
    return new Set((await this.workers()).filter(([, pid]) => pids.has(pid)).map(([worker]) => worker))
  }

  private async shardsOf({ host }: Vessel): Promise<Set<number>> {
    const mine = (await this.workers()).find(([, pid]) => pid === host.pid)?.[0]
    const owners = await this.owners()
    return new Set(owners.flatMap((owner, shard) => (owner === mine ? [shard] : [])))
  }

  private lookAtProcesses(): void {
    for (const { name, host } of this.fleet.vessels)
      if (!host.isRunning()) this.ended.push(`${name} ended by itself: ${host.said().slice(-300)}`)
  }

  private async endLoad(load: Load): Promise<number> {
    const ledger = await load.end()
    for (const key of ledger.falselyRefused) this.unexplained.push(`${key} was refused and yet made a message`)
    return ledger.cuts.filter(({ connected }) => connected).length
  }

  private of<Value>(list: readonly Value[]): Value {
    return list[this.below(list.length)] as Value
  }

  private below(max: number): number {
    return Math.floor(this.random() * max)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
