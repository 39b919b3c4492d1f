/**
 * worker - one process of the cluster, with its heartbeat, its shards, its effects and its asks to others.
 *
 * Liveness is per worker (the heartbeat), safety per shard (the token in every commit). A worker without shards asks
 * those with shards. States: running, leaving (its shards are released, attempts in progress end), ended.
 */
import type { Command, CommandType } from '../behaviour.ts'
import { type Clock, makeClock } from '../clock.ts'
import { makeShardLog, nameOfError } from '../cluster-log.ts'
import { newCmdId } from '../cmd-id.ts'
import { assert } from '../fault.ts'
import { Fence, makeFenceCells } from '../fence.ts'
import { type Claim, LaneRunner, NotPerformed } from '../items/lane-runner.ts'
import { ASK_LIFE_MS } from '../shard/ask-timeout.ts'
import { Shard } from '../shard/shard.ts'
import type { ShardWorld } from '../shard/world.ts'
import type { Listening } from '../store.ts'
import { type AskResult, answerWork, bytesOfBlobs, type Work } from '../work.ts'
import { Holdings } from './holdings.ts'
import { Members } from './members.ts'
import type { WorkerOptions, WorkerStats } from './options.ts'
import { OutcomeSender } from './outcome-sender.ts'
import { PeriodicTasks } from './periodic-tasks.ts'
import { meetOthers, PROTOCOL } from './protocol.ts'
import { type RemoteAnswer, type RemoteAsk, RemoteAsks } from './remote-ask.ts'
import { Shutdown } from './shutdown.ts'
import { StoreStatus } from './store-status.ts'
import { STUCK_MS } from './stuck-count.ts'
import { UnhealthyExit } from './unhealthy-exit.ts'

const BEAT_MS = 3_000
/** How often the records of others are read, while there are others. */
const LOOK_MS = 500
const TICK_MS = 250
const SWEEP_MS = 60_000
const START_MAX_MS = 30_000
const START_LOOK_MS = 50
/** Some 150 bytes each. */
const FIELDS_MAX = 200_000
const LOOK_BEATS = 10
/** Shards may be moving for this long after a worker has joined or left. */
const MOVING_MS = 60_000
/** Messages sent by another process before it ended have arrived by then. */
const ALONE_MS = 60_000
/** A lone process finds only its own commands in a mailbox, after a lost bell. */
const ALONE_SWEEP_MS = 5_000
/** Clocks of several stores differ by at most this, so a deadline older than this by one clock has passed by all. */
const PAST_CLOCKS_MS = 500

const makeShard = (id: number, world: ShardWorld): Shard => new Shard(id, world)

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
  private readonly fence: Fence
  private readonly members: Members
  private readonly commands: ReadonlyMap<string, CommandType>
  private readonly runner: LaneRunner
  private readonly holdings: Holdings
  private readonly remote: RemoteAsks
  private readonly sender: OutcomeSender
  private readonly storeStatus: StoreStatus
  private readonly unhealthyExit: UnhealthyExit
  private readonly shutdown: Shutdown
  private readonly tasks: PeriodicTasks
  private listening: Listening | null = null
  private living: readonly string[] = []
  /** Others that may still perform items that they had claimed. */
  private performing: readonly string[] = []
  private beats = 0
  private commits = 0
  private answeredAtMs: number
  private sweptAtMs = 0
  private mailSweptAtMs = 0
  private accompaniedAtMs = Number.NEGATIVE_INFINITY
  private isLeaving = false
  private isStopping = false
  private stopped = false

  constructor(options: WorkerOptions) {
    this.options = options
    this.clock = options.clock ?? makeClock()
    this.tasks = new PeriodicTasks(this.clock)
    this.id = newCmdId(this.clock.nowMs(), options.random)
    this.answeredAtMs = this.clock.monotonicMs()
    this.members = new Members(this.id, options)
    this.commands = new Map(options.behaviours.commands.map((type) => [type.name, type]))
    this.fence = options.fence ?? new Fence(makeFenceCells(), () => this.clock.monotonicMs() + 1)
    this.runner = new LaneRunner(options.behaviours.lanes, {
      fence: this.fence,
      failed: ({ lane, item }, error) => {
        const facts = { lane, item, error: nameOfError(error) }
        if (error instanceof NotPerformed) options.log.warn(facts, 'An attempt was not started and is retried later')
        else options.log.error(facts, 'An effect threw')
      },
    })
    const { random, store, primaries = null } = options
    const pastMs = primaries === null ? undefined : PAST_CLOCKS_MS
    this.remote = new RemoteAsks({ store, clock: this.clock, worker: this.id, random, pastMs })
    this.sender = new OutcomeSender({ store, clock: this.clock, random: options.random })
    this.storeStatus = new StoreStatus({ clock: this.clock, answeredAtMs: () => this.answeredAtMs }, primaries)
    this.unhealthyExit = new UnhealthyExit({
      log: options.log,
      lags: () => options.lags?.() ?? [],
      tell: () => void this.beat(),
      giveAway: () => void this.holdings.giveAway(),
      hopeless: () => void this.giveUp(),
    })
    this.world = this.makeWorld()
    this.holdings = new Holdings({
      me: this.id,
      store,
      clock: this.clock,
      members: this.members,
      count: options.shards,
      takesShards: options.takesShards ?? true,
      makeShard: (id) => (options.makeShard ?? makeShard)(id, this.storeStatus.worldOf(id, this.world)),
      ails: () => this.unhealthyExit.ails || this.members.ails(this.id),
      lost: (shard, loss) => this.world.log.lost({ shard, ...loss }),
      beat: () => this.beat(),
      hasLapsed: () => this.fence.hasLapsed(),
    })
    const { clock, runner, holdings, sender } = this
    this.shutdown = new Shutdown({ clock, runner, holdings, sender })
  }

  async start(): Promise<void> {
    await meetOthers({ ...this.options, worker: this.id, clock: this.clock })
    const startedAtMs = this.clock.monotonicMs()
    while (!(await this.beat())) {
      assert(this.clock.monotonicMs() - startedAtMs < START_MAX_MS, 'The store does not answer')
      await new Promise<void>((resolve) => this.clock.after(START_LOOK_MS, resolve))
    }
    this.listening = this.options.store.listen(this.id, {
      bells: (bells) => {
        for (const bell of bells) this.holdings.shards.get(bell.shard)?.bell(bell)
      },
      replies: (text) => this.remote.heard(text),
      released: (shard) => void this.holdings.check([shard]),
      joined: () => void this.look(true),
    })
    await this.holdings.check()
    // They are separate, because a heartbeat waits for no other connection than its own.
    this.tasks.every(BEAT_MS, async () => void (await this.beat()))
    this.tasks.every(BEAT_MS, () => this.checkShards())
    this.tasks.every(LOOK_MS, () => this.look())
    this.tasks.every(TICK_MS, async () => this.tick())
  }

  nowMs(): number {
    return this.clock.nowMs()
  }

  /** The store's connection came back: others learn of the new one at once. */
  connected(): void {
    if (this.listening === null || this.stopped) return
    void this.beat()
    // One of several stores may have lost commits, so its state is compared with the known one.
    if (this.options.primaries !== undefined) void this.holdings.check()
  }

  /** Workers that live as far as this one knows, itself among them. */
  get livingWorkers(): readonly string[] {
    return [this.id, ...this.living]
  }

  /** Workers that run shards, or are still finishing their work there; this one is always counted. */
  get sharers(): number {
    return 1 + this.members.sharers(this.clock.monotonicMs())
  }

  /** Every shard runs here, or has a living owner; every connection answers, and so were most of the last asks. */
  ready(): boolean {
    const isOpen = !this.stopped && !this.isLeaving && !this.holdings.someAreFree
    return isOpen && this.unhealthyExit.isOfUse(this.clock.monotonicMs())
  }

  /** One command to the owner of a shard. Never rejects. */
  ask(shard: number, command: Command): Promise<AskResult> {
    const type = this.commands.get(command.name)
    assert(type !== undefined, 'Command is unknown', { name: command.name })
    const mine = this.holdings.shards.get(shard)
    const [atMs, deadlineMs] = [this.clock.monotonicMs(), this.storeStatus.nowMs(shard) + ASK_LIFE_MS]
    const isMine = mine?.accepts === true
    const asked = isMine
      ? mine.ask(command, type, bytesOfBlobs(command))
      : new Promise<AskResult>((answer) => this.askOthers({ shard, type, command, deadlineMs }, answer))
    return asked.then((result) => {
      this.unhealthyExit.asked(result, { isMine, atMs: this.clock.monotonicMs(), askedAtMs: atMs })
      return result
    })
  }

  /** For each shard the live worker to which it belongs, and the store that holds it. */
  get shardPlaces(): readonly string[] {
    return this.holdings.wantedOwners().map((worker, shard) => `${worker}/${this.storeStatus.nameOf(shard)}`)
  }

  /** The shards that this process owns, by number. */
  get owned(): readonly number[] {
    return [...this.holdings.shards.keys()]
  }

  stats(): WorkerStats {
    const shards = [...this.holdings.shards.values()]
    const running = shards.filter((shard) => shard.running).length
    const halted = shards.filter((shard) => shard.halted).length
    const waiting = shards.reduce((sum, shard) => sum + shard.waiting, 0)
    const [commits, asking] = [this.commits, this.remote.size]
    return { shards: this.options.shards, running, halted, waiting, underWay: this.runner.size, commits, asking }
  }

  /** Ends it (`shutdown.ts`), in eight seconds and a half less `spentMs`. */
  async stop(spentMs = 0): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    this.isLeaving = true
    this.runner.close()
    const startedAtMs = this.clock.monotonicMs() - spentMs
    await this.beat()
    const areOthers = this.members.takers(this.clock.monotonicMs()).length > 0
    await this.shutdown.leave({ startedAtMs, areOthers })
    this.stopped = true
    this.tasks.end()
    this.listening?.close()
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
      runner: this.runner,
      fence: this.fence,
      worker: this.id,
      random,
      fieldBudget: { left: this.options.fieldsMax ?? FIELDS_MAX },
      isGone: (worker) => this.members.isGone(worker, this.clock.monotonicMs()),
      answered: () => {
        this.answeredAtMs = this.clock.monotonicMs()
      },
      forward: (shard, works) => this.forward(shard, works),
      reported: (shard, claim, outcome) => this.reported(shard, claim, outcome),
      gone: (id) => {
        const shard = this.holdings.shards.get(id)
        if (shard !== undefined && !shard.running) void this.holdings.gone(shard)
      },
      resync: (nowMs, sentAtMs) => this.clock.set(nowMs, sentAtMs),
      noted: (note) => this.options.noted?.(note),
      log: makeShardLog(this.options.log, {
        committed: (ms, works) => {
          this.commits += 1
          this.options.committed?.(ms, works)
        },
        lost: (commits) => this.options.lostCommits?.(commits),
        instant: (ms) => new Date(ms).toISOString(),
      }),
      ...this.options.world,
    }
  }

  private async beat(): Promise<boolean> {
    const { store, identity, takesShards = true, protocol = PROTOCOL } = this.options
    const sentAtMs = this.clock.monotonicMs()
    this.beats += 1
    const { ails } = this.unhealthyExit
    const record = { ...identity(), protocol, beats: this.beats, takesShards, isLeaving: this.isLeaving, ails }
    const fencedAtMs = this.fence.beatSent()
    const beat = await store.heartbeat({ worker: this.id, record })
    if (beat.kind === 'failed') return false
    if (this.fence.beatAnswered(fencedAtMs)) this.runner.abortLost()
    this.answeredAtMs = this.clock.monotonicMs()
    this.storeStatus.beat(this.answeredAtMs)
    this.clock.set(beat.nowMs, sentAtMs)
    this.members.note(beat.workers, this.clock.monotonicMs())
    this.compareLiving()
    return true
  }

  /** Reads the records of the others, and queries the connections of silent ones. */
  private async look(mayBeNew = false): Promise<void> {
    const askedAtMs = this.clock.monotonicMs()
    if (!mayBeNew && this.living.length === 0 && !this.holdings.someAreFree) return
    const { runId } = this.options.identity()
    const clients = this.members.suspects(askedAtMs, runId)
    const seen = await this.options.store.look(clients)
    if (seen === null || this.stopped) return
    const atMs = this.clock.monotonicMs()
    this.members.note(seen.workers, atMs)
    this.members.asked(clients, seen.connected, { atMs, runId })
    this.compareLiving()
    // While shards move their owners are read often, because the notification of a release can be lost.
    const areMoving = this.members.calmMs(atMs) < MOVING_MS
    if (areMoving || this.holdings.someAreFree) await this.checkShards()
    if (!this.holdings.someAreFree && !this.isLeaving) await this.holdings.move()
  }

  /** Claims of a dead worker may be in any shard. */
  private compareLiving(): void {
    const atMs = this.clock.monotonicMs()
    const performing = this.members.performing(atMs)
    const someWent = this.performing.some((worker) => !performing.includes(worker))
    this.living = this.members.others(atMs)
    this.performing = performing
    if (someWent) for (const shard of this.holdings.shards.values()) shard.workerDied()
  }

  private async checkShards(): Promise<void> {
    if (this.stopped || this.isSettled()) return
    await this.holdings.check()
    if (this.stopped) return
    for (const { worker, text } of this.members.gone(this.clock.monotonicMs()))
      await this.options.store.retire(worker, text)
  }

  /** Whether this process is alone and runs every shard: then only losses of the store are checked now and then. */
  private isSettled(): boolean {
    return this.beats % LOOK_BEATS !== 0 && this.living.length === 0 && this.holdings.allRun
  }

  private tick(): void {
    const atMs = this.clock.monotonicMs()
    if (this.options.takesShards !== false && !this.isLeaving) this.unhealthyExit.look(atMs, this.answeredAtMs)
    if (this.living.length > 0) this.accompaniedAtMs = atMs
    const isAlone = atMs - this.accompaniedAtMs > ALONE_MS
    if (atMs - this.mailSweptAtMs >= (isAlone ? ALONE_SWEEP_MS : this.storeStatus.sweepMs)) void this.sweepMail(atMs)
    for (const shard of this.holdings.shards.values()) {
      shard.tick(this.storeStatus.silentMs(shard.id, atMs))
      if (shard.stuckMs(atMs) > STUCK_MS && this.storeStatus.mayJudge(shard.id, atMs)) this.letGo(shard)
    }
    if (atMs - this.sweptAtMs < SWEEP_MS) return
    this.sweptAtMs = atMs
    for (const shard of this.holdings.shards.values()) shard.sweep()
  }

  /** A bell may have been lost. One read finds the shards that have something. */
  private async sweepMail(atMs: number): Promise<void> {
    this.mailSweptAtMs = Number.POSITIVE_INFINITY
    const running = [...this.holdings.shards.values()].filter(({ accepts }) => accepts)
    const waiting = await this.options.store.waiting(running.map(({ cursors }) => cursors))
    this.mailSweptAtMs = atMs
    for (const shard of waiting ?? []) this.holdings.shards.get(shard)?.ring()
  }

  private letGo(shard: Shard): void {
    this.options.log.warn({ shard: shard.id }, 'A shard has made no progress for ten seconds: acquiring it again')
    const isHopeless = this.storeStatus.stuck(shard.id, this.clock.monotonicMs())
    shard.letGo()
    if (!isHopeless) return
    this.options.log.error({ shard: shard.id }, 'Shards got stuck three times within a minute')
    void this.giveUp()
  }

  /** Ends the process, but not before others know how its attempts ended. */
  private async giveUp(): Promise<void> {
    if (this.isLeaving) return
    this.isLeaving = true
    await this.shutdown.giveUp()
    this.options.hopeless?.()
  }

  private askOthers(asked: RemoteAsk, answer: RemoteAnswer): void {
    const isHere = this.options.takesShards !== false && !this.isLeaving
    const isHalted = this.holdings.shards.get(asked.shard)?.halted === true
    const areOthers = this.members.takers(this.clock.monotonicMs()).length > 0
    if (this.stopped || isHalted || !(isHere || areOthers)) answer({ kind: 'unavailable' })
    else this.remote.ask(asked, answer)
  }

  /** Works of a shard object that has ended: to the next one here, or to the shard's mailbox or outcomes. */
  private forward(shard: number, works: readonly Work[]): void {
    const mine = this.holdings.shards.get(shard)
    for (const work of works) {
      if (mine?.running === true) mine.take(work)
      else if (work.source === 'outcome') void this.sender.resend(shard, work.command)
      else this.askOthers({ ...work, shard }, (result) => answerWork(work, result))
    }
  }

  /** An attempt ended. A process that does not hold the shard hands the outcome in for its owner. */
  private reported(shard: number, claim: Claim, outcome: unknown): void {
    const mine = this.holdings.shards.get(shard)
    if (mine?.running === true) mine.report(claim, outcome)
    else if (!this.stopped) void this.sender.send(shard, claim, outcome)
  }
}
