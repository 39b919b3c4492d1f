/**
 * process - one simulated process: a worker with its clock, its connection to the store and the effects that it
 * performs.
 */
import { Fence, makeFenceCells, type Pass } from '../../cluster/fence.ts'
import type { Primaries } from '../../cluster/primaries.ts'
import { Shard } from '../../cluster/shard/shard.ts'
import type { ShardWorld } from '../../cluster/shard/world.ts'
import type { Lag, Protocol, Store, WorkerRecord } from '../../cluster/store.ts'
import { Worker } from '../../cluster/worker/worker.ts'
import { CONNECTION_OF, type Connection } from './network.ts'
import { type ClaimTimes, LASTING, type Observer, type Performance } from './observer.ts'
import { isSerial, type Job, type Outcome, type ToyBugs, toyBehaviours } from './toy.ts'
import type { WorkerClock } from './virtual-time.ts'

/** Shards of the simulated installation. */
export const SHARDS = 4
const ROOM = 3
/** The number of fields that a process may keep in memory: none for some, a few for others. */
const FIELDS_MAX = [0, 12, 100_000] as const

/** How long the claims of a silent worker remain valid in a simulation. */
export const CLAIMS_STAND_MS = 20_000

type Claimed = { readonly item: string; readonly lane: string; readonly attempt: number }

/** The changes that a planted bug makes to a process. */
export interface ProcessBugs {
  readonly toy?: ToyBugs
  readonly world?: Partial<ShardWorld>
  makeShard?(id: number, world: ShardWorld): Shard
  makeFence?(nowMs: () => number): Fence
  readonly claimsStandMs?: number
  /** The state of its connections as a process knows it. */
  lags?(lags: readonly Lag[]): readonly Lag[]
}

export interface Effect {
  readonly performance: Performance
  readonly lane: string
  readonly pass: Pass
  readonly end: (outcome: Outcome) => void
  readonly fail: (error: Error) => void
}

export interface ProcessOptions {
  readonly n: number
  readonly clock: WorkerClock
  readonly store: Store
  /** Where several hold the shards. */
  readonly primaries: Primaries | undefined
  readonly observer: Observer
  readonly random: () => number
  readonly bugs: ProcessBugs
  /** The protocol that it speaks; by default that of all others. */
  readonly protocol: Protocol | undefined
  /** Virtual time. */
  nowMs(): number
  /** It had better end. */
  hopeless(): void
  processGone(record: WorkerRecord): boolean
  timerThrows(): boolean
  mayOverlap(earlier: Performance, times: ClaimTimes): boolean
  fault(sentence: string): void
}

export class SimProcess {
  readonly n: number
  readonly clock: WorkerClock
  readonly worker: Worker
  /** Every shard object that it made, the newest of a shard last. */
  readonly shards: Shard[] = []
  effects: Effect[] = []
  /** Shards for which it has reported that the store lost commits. */
  readonly toldLosses = new Set<number>()
  state: 'running' | 'paused' | 'stopping' | 'dead' = 'running'
  /** Virtual time until which nothing passes between it and the store, and since when. */
  cutOff = { sinceMs: 0, untilMs: 0 }
  /**
   * The connection through which nothing passes, and from when until when in virtual time. `isSlow`: others did not
   * answer in time either.
   */
  ill: {
    readonly connection: Connection
    readonly sinceMs: number
    untilMs: number
    isJudged: boolean
    isSlow: boolean
  } | null = null
  /** Virtual time of its last heartbeat in the store, and whether one came too late ever. */
  beatAtMs = Number.POSITIVE_INFINITY
  wasSilent = false
  /** Virtual time at which a heartbeat of it was in flight for too long, while some process was ill. */
  slowAtMs = Number.NEGATIVE_INFINITY
  /** Virtual time since which nothing has befallen it that others would not have seen. */
  soundSinceMs: number
  /** Virtual time at which it wakes by itself, when it is paused. */
  wakesAtMs = Number.POSITIVE_INFINITY
  readonly fence: Fence
  /** The virtual time of the last moment at which others could have considered it dead. */
  doubtedAtMs = Number.NEGATIVE_INFINITY
  private readonly options: ProcessOptions

  constructor(options: ProcessOptions) {
    const { n, clock, store, random, bugs } = options
    this.n = n
    this.clock = clock
    this.options = options
    this.soundSinceMs = options.nowMs()
    const behaviours = toyBehaviours({
      bugs: bugs.toy ?? {},
      room: (lane) => (isSerial(lane) ? 1 : ROOM) - this.effects.filter((effect) => effect.lane === lane).length,
      perform: (job, claim) => this.perform(job, claim),
      performAtOnce: (job, claim) => this.performAtOnce(job, claim),
      timerThrows: () => options.timerThrows(),
    })
    const fenceMs = (): number => clock.monotonicMs() + 1
    this.fence = bugs.makeFence?.(fenceMs) ?? new Fence(makeFenceCells(), fenceMs)
    this.worker = new Worker({
      store,
      ...(options.primaries !== undefined && { primaries: options.primaries }),
      fence: this.fence,
      claimsStandMs: bugs.claimsStandMs ?? CLAIMS_STAND_MS,
      lags: () => bugs.lags?.(this.lags()) ?? this.lags(),
      hopeless: () => options.hopeless(),
      ...(options.protocol !== undefined && { protocol: options.protocol }),
      behaviours,
      clock,
      random,
      shards: SHARDS,
      fieldsMax: FIELDS_MAX[n % FIELDS_MAX.length]!,
      identity: () => ({
        host: 'sim',
        bootId: 'b',
        pidNamespace: 'p',
        pid: n,
        startTime: String(n),
        clientId: n,
        runId: 'r',
        roles: [],
      }),
      log: {
        info: () => undefined,
        warn: () => undefined,
        error: (facts, sentence) => {
          const { shard, commits = 0 } = facts as { shard?: number; commits?: number }
          if (commits > 0 && shard !== undefined) this.toldLosses.add(shard)
          options.fault(`p${n} ${sentence} ${JSON.stringify(facts)}`)
        },
      },
      processGone: (record) => options.processGone(record),
      makeShard: (id, world) => {
        const shard = bugs.makeShard?.(id, world) ?? new Shard(id, world)
        this.shards.push(shard)
        return shard
      },
      ...(bugs.world === undefined ? {} : { world: bugs.world }),
    })
  }

  /** Whether its timers, answers and effects continue. */
  get isAwake(): boolean {
    return this.state === 'running' || this.state === 'stopping'
  }

  /** The connection through which nothing passes now. */
  get illConnection(): Connection | null {
    return this.ill !== null && this.ill.untilMs > this.options.nowMs() ? this.ill.connection : null
  }

  /** An idle connection is tried all the while: it owes an answer for as long as nothing passes. */
  private lags(): Lag[] {
    const lagMs = this.options.nowMs() - (this.ill?.sinceMs ?? 0)
    const ill = this.illConnection
    return [...new Set(Object.values(CONNECTION_OF))].map((one) => ({ connection: one, ms: one === ill ? lagMs : 0 }))
  }

  /** The running object of a shard, if this process holds it. */
  shardOf(id: number): Shard | undefined {
    return this.shards.findLast((shard) => shard.id === id && shard.running)
  }

  /** Some items are delivered at once, in any lane. */
  private performAtOnce(job: Job, claim: Claimed): Outcome | undefined {
    if (!isQuick({ ...claim, item: job.item })) return undefined
    this.options.observer.ends(this.begin(job, claim))
    return { kind: 'delivered' }
  }

  private begin(job: Job, { item, lane, attempt }: Claimed): Performance {
    const { observer } = this.options
    const performance = { item: job.item, attempt, worker: this.worker.id, lane }
    if (job.item !== item) observer.violated('A job was given to another item')
    observer.begins(performance, (earlier, times) => this.options.mayOverlap(earlier, times))
    return performance
  }

  private perform(job: Job, claim: Claimed & { pass: Pass; signal: AbortSignal }): Promise<Outcome> {
    const { observer } = this.options
    const { lane, pass, signal } = claim
    const performance = this.begin(job, claim)
    return new Promise((resolve, reject) => {
      const over = (): void => {
        this.effects = this.effects.filter((other) => other !== effect)
        observer.ends(performance)
      }
      const effect: Effect = {
        performance,
        lane,
        pass,
        end: (outcome) => {
          over()
          resolve(outcome)
        },
        fail: (error) => {
          over()
          reject(error)
        },
      }
      this.effects.push(effect)
      // An item that has lost its claim returns to its lane without an outcome.
      signal.addEventListener('abort', () => this.effects.includes(effect) && effect.end({ kind: 'later', afterMs: 0 }))
    })
  }
}

/** An eighth of all items, other ones than those that never have an outcome. */
function isQuick({ item, lane }: Pick<Performance, 'item' | 'lane'>): boolean {
  return item.charCodeAt(item.length - 4) % 8 === 0 && !isHopeless({ item, lane })
}

/**
 * Some items never have an outcome, because their effects always fail. Not if each claim lasts for a minute or more.
 */
export function isHopeless({ item, lane }: Pick<Performance, 'item' | 'lane'>): boolean {
  return !lane.startsWith(LASTING) && item.charCodeAt(item.length - 5) % 9 === 0
}
