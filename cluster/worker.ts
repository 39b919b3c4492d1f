/**
 * worker - one process of the cluster: its heartbeat, its shards, its effects.
 *
 * Liveness is per worker (the heartbeat), safety per shard (the token in every commit). Shards without an owner, or of a
 * dead one, are taken at once.
 */
import type { Behaviours, Command, CommandType } from './behaviour.ts'
import { type Clock, makeClock } from './clock.ts'
import { newCmdId } from './cmd-id.ts'
import { assert } from './fault.ts'
import { Members } from './members.ts'
import { type Claim, Pump } from './pump.ts'
import { askRemote } from './remote-ask.ts'
import { ASK_LIFE_MS, Shard } from './shard.ts'
import type { ShardLog, ShardWorld } from './shard-world.ts'
import type { Meta, Store, WorkerRecord } from './store.ts'
import { type AskResult, answerWork, type Work } from './work.ts'

const BEAT_MS = 3_000
const TICK_MS = 250
const SWEEP_MS = 60_000
const OPEN_AT_ONCE = 64
const STOP_EFFECTS_MS = 8_000
const STOP_LOOK_MS = 20
const START_MAX_MS = 30_000
const START_LOOK_MS = 50
const WORKS_HELD_MAX = 10_000
/** Some 150 bytes each. */
const FIELDS_MAX = 200_000
const LOOK_BEATS = 10
/** What another process sent while it lived has arrived by then. */
const ALONE_MS = 60_000

/** What an operator reads; facts are ids, names and numbers. */
export interface ClusterLog {
  info(facts: object, sentence: string): void
  warn(facts: object, sentence: string): void
  error(facts: object, sentence: string): void
}

export interface WorkerOptions {
  readonly store: Store
  readonly behaviours: Behaviours
  readonly log: ClusterLog
  /** Number of shards of the installation. */
  readonly shards: number
  /** A number in [0, 1). */
  readonly random: () => number
  /** This process, for its record. */
  readonly identity: Omit<WorkerRecord, 'beats'>
  readonly clock?: Clock
  /** Fields of hashes that the shards may remember together. */
  readonly fieldsMax?: number
  /** Whether the process that a record names is known to be gone (same machine). */
  processGone?(record: WorkerRecord): boolean
  /** Told of each confirmed commit: its duration in ms and how many works it held. */
  committed?(ms: number, works: number): void
  /** Makes a shard; tests plant broken ones. */
  makeShard?(id: number, world: ShardWorld): Shard
  /** What of the world a test changes. */
  readonly world?: Partial<ShardWorld>
}

export interface WorkerStats {
  readonly shards: number
  readonly running: number
  readonly halted: number
  readonly waiting: number
  readonly underWay: number
  readonly commits: number
}

/** Starts a worker and takes every shard that is free. Rejects when the store does not answer within 30 s. */
export async function startWorker(options: WorkerOptions): Promise<Worker> {
  const worker = new Worker(options)
  await worker.start()
  return worker
}

export class Worker {
  readonly id: string
  private readonly options: WorkerOptions
  private readonly clock: Clock
  private readonly world: ShardWorld
  private readonly members: Members
  private readonly commands: ReadonlyMap<string, CommandType>
  private readonly pump: Pump
  private readonly shards = new Map<number, Shard>()
  private readonly opening = new Set<number>()
  private readonly owners = new Map<number, string>()
  private held = new Map<number, Work[]>()
  /** Ends of attempts whose shard is between two owners; each item once, so the pump bounds them. */
  private readonly ended = new Map<number, { claim: Claim; outcome: unknown }[]>()
  private beats = 0
  private commits = 0
  private answeredAtMs: number
  private sweptAtMs = 0
  private accompaniedAtMs = Number.NEGATIVE_INFINITY
  private stopped = false
  private cancels = new Set<() => void>()

  constructor(options: WorkerOptions) {
    this.options = options
    this.clock = options.clock ?? makeClock()
    this.id = newCmdId(this.clock.nowMs(), options.random)
    this.answeredAtMs = this.clock.monotonicMs()
    this.members = new Members(this.id, options.processGone ?? (() => false))
    this.commands = new Map(options.behaviours.commands.map((type) => [type.name, type]))
    this.pump = new Pump(options.behaviours.lanes, (claim, error) =>
      options.log.error({ lane: claim.lane, item: claim.item, error: nameOf(error) }, 'An effect threw'),
    )
    this.world = this.makeWorld()
  }

  async start(): Promise<void> {
    const startedAtMs = this.clock.monotonicMs()
    while (!(await this.beat())) {
      assert(this.clock.monotonicMs() - startedAtMs < START_MAX_MS, 'The store does not answer')
      await this.wait(START_LOOK_MS)
    }
    await this.takeShards()
    this.loop(BEAT_MS, async () => {
      await this.beat()
      await this.takeShards()
    })
    this.loop(TICK_MS, async () => this.tick())
  }

  nowMs(): number {
    return this.clock.nowMs()
  }

  /** Monotonic time of the last answer of the store. */
  get lastAnswerMs(): number {
    return this.answeredAtMs
  }

  /** Every shard runs here, or has a living owner. */
  ready(): boolean {
    if (this.stopped) return false
    const atMs = this.clock.monotonicMs()
    for (let shard = 0; shard < this.options.shards; shard += 1) {
      if (this.shards.get(shard)?.running === true) continue
      const owner = this.owners.get(shard) ?? ''
      if (owner === '' || owner === this.id || this.members.isDead(owner, atMs)) return false
    }
    return true
  }

  /** One command to the owner of a shard. Never rejects. */
  ask(shard: number, command: Command): Promise<AskResult> {
    const type = this.commands.get(command.name)
    assert(type !== undefined, 'Command is unknown', { name: command.name })
    const mine = this.shards.get(shard)
    if (mine !== undefined) return mine.ask(command, type, bytesOf(command))
    const owner = this.owners.get(shard) ?? ''
    if (owner === '' || owner === this.id) return Promise.resolve({ kind: 'unavailable' })
    const deadlineMs = this.clock.nowMs() + ASK_LIFE_MS
    return askRemote({ store: this.options.store, clock: this.clock, worker: this.id }, { shard, command, deadlineMs })
  }

  stats(): WorkerStats {
    let running = 0
    let halted = 0
    let waiting = 0
    for (const shard of this.shards.values()) {
      if (shard.running) running += 1
      if (shard.halted) halted += 1
      waiting += shard.waiting
    }
    return { shards: this.options.shards, running, halted, waiting, underWay: this.pump.size, commits: this.commits }
  }

  /** Takes no new effects, lets those under way end (8 s), commits what is decided, gives the shards back. */
  async stop(): Promise<void> {
    if (this.stopped) return
    this.pump.close()
    const startedAtMs = this.clock.monotonicMs()
    while (this.pump.size > 0 && this.clock.monotonicMs() - startedAtMs < STOP_EFFECTS_MS) await this.wait(STOP_LOOK_MS)
    this.pump.abortAll()
    this.stopped = true
    await Promise.all([...this.shards.values()].map((shard) => shard.close()))
    for (const cancel of this.cancels) cancel()
    this.refuseHeld(() => true)
    await this.options.store.retire(this.id)
  }

  private makeWorld(): ShardWorld {
    const { store, random, behaviours } = this.options
    return {
      store,
      clock: this.clock,
      entities: new Map(behaviours.entities.map((type) => [type.kind, type])),
      timers: behaviours.timers,
      commands: this.commands,
      lanes: behaviours.lanes,
      pump: this.pump,
      worker: this.id,
      random,
      fieldBudget: { left: this.options.fieldsMax ?? FIELDS_MAX },
      isDead: (worker) => this.members.isDead(worker, this.clock.monotonicMs()),
      answered: () => {
        this.answeredAtMs = this.clock.monotonicMs()
      },
      forward: (shard, works) => this.forward(shard, works),
      reported: (shard, claim, outcome) => this.reported(shard, claim, outcome),
      gone: (shard) => {
        this.shards.delete(shard)
        void this.takeShards()
      },
      resync: (nowMs) => this.clock.set(nowMs, this.clock.monotonicMs()),
      log: this.shardLog(),
      ...this.options.world,
    }
  }

  private async beat(): Promise<boolean> {
    const sentAtMs = this.clock.monotonicMs()
    this.beats += 1
    const record = { ...this.options.identity, beats: this.beats }
    const beat = await this.options.store.heartbeat({ worker: this.id, record })
    if (beat.kind === 'failed') return false
    this.answeredAtMs = this.clock.monotonicMs()
    this.clock.set(beat.nowMs, sentAtMs)
    this.members.note(beat.workers, this.clock.monotonicMs())
    return true
  }

  /** Takes what is free; drops what another one holds. */
  private async takeShards(): Promise<void> {
    if (this.stopped || this.settled()) return
    const all = Array.from({ length: this.options.shards }, (_, shard) => shard)
    const before = new Map([...this.shards].map(([id, shard]) => [id, { shard, seq: shard.seq }]))
    const metas = await this.options.store.metas(all)
    if (metas === null || this.stopped) return
    // A worker writes its record before it takes a shard: records read after the metas name every living owner.
    const isNew = metas.some((meta) => meta !== null && meta.owner !== '' && !this.members.knows(meta.owner))
    if (isNew && !(await this.beat())) return
    if (this.stopped) return
    const atMs = this.clock.monotonicMs()
    const free: { shard: number; meta: Meta | null }[] = []
    all.forEach((shard) => {
      const meta = metas[shard] ?? null
      const owner = meta?.owner ?? ''
      this.owners.set(shard, owner)
      const mine = this.shards.get(shard)
      const known = before.get(shard)
      if (mine?.running === true && mine === known?.shard) {
        // Another token, or fewer commits than were confirmed here: someone else has it, or the store has lost some.
        if (mine.token !== (meta?.token ?? '') || known.seq > (meta?.seq ?? 0)) mine.drop()
      }
      const open = owner === '' || owner === this.id || this.members.isDead(owner, atMs)
      if (open && !this.shards.has(shard) && !this.opening.has(shard)) free.push({ shard, meta })
    })
    for (let i = 0; i < free.length; i += OPEN_AT_ONCE)
      await Promise.all(free.slice(i, i + OPEN_AT_ONCE).map(({ shard, meta }) => this.open(shard, meta?.token ?? '')))
    if (this.stopped) return
    this.routeHeld()
    for (const worker of this.members.dead(this.clock.monotonicMs())) await this.options.store.retire(worker)
  }

  /** Alone, with every shard running: nothing to look at, but for now and then, in case the store has lost something. */
  private settled(): boolean {
    if (this.beats % LOOK_BEATS === 0) return false
    if (this.shards.size < this.options.shards) return false
    for (const shard of this.shards.values()) if (!shard.running) return false
    return this.members.others(this.clock.monotonicMs()).length === 0
  }

  private async open(id: number, saw: string): Promise<void> {
    this.opening.add(id)
    const shard = this.options.makeShard?.(id, this.world) ?? new Shard(id, this.world)
    const opened = await shard.open(saw)
    this.opening.delete(id)
    if (!opened || !shard.running) return
    if (this.stopped) return shard.close()
    this.owners.set(id, this.id)
    this.shards.set(id, shard)
    const works = this.held.get(id) ?? []
    const ended = this.ended.get(id) ?? []
    this.held.delete(id)
    this.ended.delete(id)
    for (const { claim, outcome } of ended) shard.report(claim, outcome)
    for (const work of works) shard.take(work)
  }

  private tick(): void {
    const atMs = this.clock.monotonicMs()
    const silentMs = atMs - this.answeredAtMs
    if (this.members.others(atMs).length > 0) this.accompaniedAtMs = atMs
    const isAlone = atMs - this.accompaniedAtMs > ALONE_MS // Then nobody puts anything into a mailbox.
    for (const shard of this.shards.values()) {
      if (!isAlone) shard.bell()
      shard.tick(silentMs)
    }
    const nowMs = this.clock.nowMs()
    this.refuseHeld((work) => work.deadlineMs > 0 && work.deadlineMs < nowMs)
    if (atMs - this.sweptAtMs < SWEEP_MS) return
    this.sweptAtMs = atMs
    for (const shard of this.shards.values()) shard.sweep()
  }

  /** Works of a shard that was lost: to its new object here, or to its new owner. */
  private forward(shard: number, works: readonly Work[]): void {
    const mine = this.shards.get(shard)
    if (mine?.running === true) {
      for (const work of works) mine.take(work)
      return
    }
    const held = this.held.get(shard) ?? []
    const room = WORKS_HELD_MAX - held.length
    this.held.set(shard, [...held, ...works.slice(0, room)])
    for (const work of works.slice(room)) answerWork(work, { kind: 'unavailable' })
    if (this.stopped) this.refuseHeld(() => true)
  }

  private routeHeld(): void {
    for (const shard of this.ended.keys()) {
      const owner = this.owners.get(shard) ?? ''
      if (owner !== '' && owner !== this.id) this.ended.delete(shard)
    }
    for (const [shard, works] of this.held) {
      const owner = this.owners.get(shard) ?? ''
      if (owner === '' || owner === this.id) continue
      this.held.delete(shard)
      for (const { command, deadlineMs, ...work } of works) {
        if (work.answer === null) continue
        const { answer } = work
        const remote = { store: this.options.store, clock: this.clock, worker: this.id }
        void askRemote(remote, { shard, command, deadlineMs }).then(answer)
      }
    }
  }

  private refuseHeld(which: (work: Work) => boolean): void {
    for (const [shard, works] of this.held) {
      const kept = works.filter((work) => !which(work))
      for (const work of works) if (which(work)) answerWork(work, { kind: 'unavailable' })
      if (kept.length === 0) this.held.delete(shard)
      else this.held.set(shard, kept)
    }
  }

  /** An attempt ended. While nobody holds the shard the outcome waits; another owner has freed the claim. */
  private reported(shard: number, claim: Claim, outcome: unknown): void {
    const mine = this.shards.get(shard)
    if (mine?.running === true) return void mine.report(claim, outcome)
    const owner = this.owners.get(shard) ?? ''
    if (this.stopped || (owner !== '' && owner !== this.id)) return
    this.ended.set(shard, [...(this.ended.get(shard) ?? []), { claim, outcome }])
  }

  private shardLog(): ShardLog {
    const { log } = this.options
    return {
      halted: (facts) => log.error(facts, 'A shard is torn and stays stopped: see `sendwright inspect`'),
      threw: (facts, error) => log.error({ ...facts, error: nameOf(error) }, 'A behaviour threw'),
      doubt: (facts) => log.warn(facts, 'A commit got no answer and is sent again'),
      badop: (facts) => log.error(facts, 'The store refused a commit as against the rules'),
      committed: ({ ms, works }) => {
        this.commits += 1
        this.options.committed?.(ms, works)
      },
    }
  }

  private loop(everyMs: number, call: () => Promise<void>): void {
    const again = (): void => {
      const cancel = this.clock.after(everyMs, () => {
        this.cancels.delete(cancel)
        if (this.stopped) return
        void call().then(again)
      })
      this.cancels.add(cancel)
    }
    again()
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms, resolve))
  }
}

function bytesOf({ blobs }: Command): number {
  let bytes = 0
  for (const blob of blobs ?? []) bytes += blob.length
  return bytes
}

function nameOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : 'unknown'
}
