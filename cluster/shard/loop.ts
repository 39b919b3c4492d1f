/**
 * loop - the steady part of a shard, which reads, decides, sends and settles.
 *
 * At most one commit is in flight. While it is, the next batch reads its facts. It is decided when the commit is
 * confirmed, so its answers (also those of a batch that writes nothing) rest on confirmed state alone. Writes that a
 * read cannot have seen are laid over it (`overlay.ts`). `verdict.ts` interprets a verdict, `shard.ts` holds the
 * shard.
 */
import { FactView, type KnownFields, type Laid } from '../facts/facts.ts'
import type { Memory } from '../facts/memory.ts'
import { type IdMaker, makeIds } from '../id.ts'
import { CLAIM_RULES, type ItemContext } from '../items/claim.ts'
import { standingClaims } from '../items/dead-claims.ts'
import { LaneIndex } from '../items/lane-index.ts'
import type { Claim } from '../items/lane-runner.ts'
import { type Meta, NO_META, type Verdict } from '../store.ts'
import { answerWork, type Work } from '../work.ts'
import { hasWaited, isHopeless, isOver } from './ask-timeout.ts'
import { type BatchContext, decideBatch, discardPlan, type Plan } from './batch.ts'
import { BATCH, type Batch, BatchReader } from './batch-reader.ts'
import { makeCommit } from './commit-of.ts'
import { InFlightCommit, RETRY_MS } from './in-flight-commit.ts'
import { Intake } from './intake.ts'
import { KnownCommits } from './known-commits.ts'
import type { Drained, LoopHost, LoopStart } from './loop-host.ts'
import { type Again, actionOn, type Halve } from './verdict.ts'
import type { ShardWorld } from './world.ts'

/** Work refused by a full store is not tried for this long. */
const FULL_MS = 1_000

export class CommitLoop {
  readonly id: number
  readonly intake: Intake
  /** State known to be in the store. */
  readonly knownCommits = new KnownCommits()
  /** Counts progress. A shard that has work and does not count is stuck. */
  turns = 0
  /** Monotonic time until which only work that finishes or frees something is committed, because the store is full. */
  fullUntilMs = 0
  protected readonly world: ShardWorld
  protected readonly items: ItemContext
  protected readonly reader: BatchReader
  protected next: Batch | null = null
  protected inFlight: InFlightCommit | null = null
  protected laid: readonly Laid[] = []
  protected meta: Meta = NO_META
  private readonly host: LoopHost
  private ids: IdMaker
  private commits = 0
  private pausedUntilMs = 0
  private isWoken = false
  /** Idle states must be dropped when no batch uses them. */
  private sweepDue = false

  constructor(id: number, world: ShardWorld, host: LoopHost) {
    this.id = id
    this.world = world
    this.host = host
    this.ids = makeIds({ shard: id, last: '', random: world.random })
    const { worker, runner, rules = CLAIM_RULES } = world
    const mayClaim = (): boolean => this.intake.mayClaim
    this.items = { shard: id, worker, runner, lanes: new LaneIndex(), rules, standing: new Map(), mayClaim }
    this.intake = new Intake(world, {
      items: this.items,
      isRunning: host.isRunning,
      isStopping: host.isStopping,
      isBusy: () => this.next !== null && this.inFlight !== null,
      wake: () => this.wake(),
    })
    this.reader = new BatchReader(world, {
      shard: id,
      isNext: (batch) => this.next === batch,
      confirmed: () => ({ seq: this.meta.seq, laid: this.laid }),
      ready: () => this.advance(),
      failed: (batch) => this.putBack(batch),
    })
  }

  get token(): string {
    return this.meta.token
  }

  /** Confirmed commits of the shard. */
  get seq(): number {
    return this.meta.seq
  }

  /** Cached state of entities. */
  get memory(): Memory {
    return this.reader.memory
  }

  get isIdle(): boolean {
    return this.intake.queue.size === 0 && this.next === null && this.inFlight === null
  }

  /** Takes up a shard that was just acquired. */
  start({ meta, lanes, claims }: LoopStart): void {
    this.meta = meta
    this.knownCommits.begin(meta)
    for (const [lane, atMs] of lanes) this.items.lanes.load(lane, atMs)
    this.ids = makeIds({ shard: this.id, last: meta.lid, random: this.world.random })
    for (const [lane, held] of standingClaims(claims, this.world)) this.items.standing.set(lane, held)
    this.intake.start(meta)
    this.advance()
  }

  /** Forgets states that were not used for a while, before the next batch begins. */
  sweep(): void {
    this.sweepDue = true
    this.advance()
  }

  /** Refuses asks that have waited too long. `silentMs`: since the store last answered anything. */
  expire(silentMs: number): void {
    const { clock } = this.world
    const moment = { nowMs: clock.nowMs(), atMs: clock.monotonicMs(), silentMs }
    this.intake.refuseAsks((work) => hasWaited(work, moment))
    for (const work of this.next?.works ?? [])
      if (work.source === 'local' && hasWaited(work, moment)) answerWork(work, { kind: 'unavailable' })
    if (this.inFlight !== null && isHopeless(this.inFlight, moment)) this.inFlight.silence()
  }

  /** The store is at `storeSeq`. If that is behind the confirmed commits (by `known`), the loss is reported once. */
  noteLoss(storeSeq: number, known: KnownCommits = this.knownCommits): void {
    const loss = known.lossAt(storeSeq)
    if (loss !== null) this.world.log.lost({ shard: this.id, ...loss })
  }

  /** Takes every step that is possible now. Called after everything that may have made one possible. */
  advance(): void {
    const atMs = this.world.clock.monotonicMs()
    const { queue } = this.intake
    if (!this.host.isRunning() || atMs < this.pausedUntilMs) return
    if (this.next === null && this.sweepDue) {
      this.sweepDue = false
      this.reader.sweep()
    }
    if (this.next === null && queue.size > 0) {
      const works = queue.take(BATCH, atMs < this.fullUntilMs)
      if (works.length > 0) this.begin(works)
    }
    if (this.next !== null && !this.next.reading && this.mayDecide()) this.decide(this.next)
    if (this.isIdle) this.host.idle()
  }

  /** Whether a commit was sent and has no verdict. */
  get isInDoubt(): boolean {
    return this.inFlight !== null
  }

  /** Leaves the commit in flight to the next owner, and the shard with it. */
  leaveInDoubt(): void {
    if (this.inFlight !== null) this.askNextOwner(this.inFlight)
  }

  /** Returns all open work. Asks of the commit in flight are not answered, because its outcome is unknown. */
  drain(): Drained {
    const flight = this.inFlight
    if (flight !== null) {
      this.discard(flight.plan)
      flight.silence()
      this.land(flight)
    }
    const inDoubt = flight?.plan.works ?? []
    const rest = [...(this.next?.works ?? []), ...this.intake.queue.drain()]
    this.next = null
    return { inDoubt, rest }
  }

  /** Forgets fields that were read: another owner writes there. */
  forget(): void {
    this.reader.fields.clear()
  }

  /** The output gate, by which a batch is decided and answered only when all earlier ones are confirmed. */
  protected mayDecide(): boolean {
    return this.inFlight === null
  }

  /** The confirmed commits that a batch's reads may not have seen, oldest first. */
  protected laidFor(_batch: Batch): readonly Laid[] {
    return this.laid
  }

  /** A plan is about to be sent. */
  protected sending(_plan: Plan): void {}

  /** A commit was confirmed, and its writes are laid over the reads that the next batch has sent in the meantime. */
  protected keepLaid(laid: Laid): void {
    this.laid = this.next === null ? [] : [laid]
  }

  /** Returns the reservations of a plan that was not committed, and drops its draft. */
  protected discard(plan: Plan): void {
    discardPlan(plan, this.items)
  }

  /** Confirmed claims are performed. */
  protected startClaims(claims: readonly Claim[]): void {
    for (const claim of claims) {
      this.world.runner.release(claim.lane)
      this.world.runner.start(claim, {
        shard: this.id,
        report: (done, outcome) => this.world.reported(this.id, done, outcome),
      })
    }
  }

  /** Takes the action for a verdict. */
  protected settle(flight: InFlightCommit, verdict: Verdict): void {
    const action = actionOn(verdict, flight)
    switch (action.kind) {
      case 'confirm':
        return void this.confirmed(flight)
      case 'ask next owner':
        return void this.askNextOwner(flight)
      case 'give up':
        if (action.storeSeq !== undefined) this.noteLoss(action.storeSeq)
        if (action.storeNowMs !== undefined) this.world.resync(action.storeNowMs, flight.sentAtMs)
        return void this.giveUp(flight)
      case 'halt':
        if (action.storeSeq !== undefined) this.noteLoss(action.storeSeq)
        if (action.isAgainstRules) this.world.log.badop({ shard: this.id, reason: action.reason })
        return void this.host.halted(action.reason)
      case 'again':
        return void this.again(flight, action)
      case 'halve':
        return void this.halve(flight, action)
    }
  }

  /** A plan is committed, and its callers are answered. */
  protected finished(plan: Plan): void {
    this.turns += 1
    this.intake.finished(plan)
    for (const { work, reply, fault } of plan.replies) answerWork(work, fault ?? { kind: 'answer', reply })
    for (const note of plan.notes) this.world.noted?.(note)
  }

  protected batchContext(batch: Batch): BatchContext {
    return {
      items: this.items,
      memory: this.reader.memory,
      entities: this.world.entities,
      ids: this.ids,
      nowMs: this.world.clock.nowMs(),
      seq: this.meta.seq + 1,
      view: (staged) => new FactView(batch.rounds, this.laidFor(batch), staged, this.knownFields()),
      threw: (work, error) => this.world.log.threw({ shard: this.id, name: work.type.name }, error),
    }
  }

  /** Cached fields, in their state after the last confirmed commit. */
  protected knownFields(): KnownFields {
    return this.reader.knownFields(this.meta.seq)
  }

  private confirmed(flight: InFlightCommit): void {
    const { plan, commit, sentAtMs } = flight
    const { clock, log, store } = this.world
    this.land(flight)
    this.reader.memory.take(plan.draft, clock.nowMs())
    this.meta.seq = commit.seq + 1
    this.knownCommits.note(this.meta.seq, clock.nowMs())
    this.reader.fields.note(plan)
    if (plan.lid !== '') this.meta.lid = plan.lid
    this.keepLaid({ seq: this.meta.seq, overlay: plan.overlay })
    this.intake.confirmed(plan)
    log.committed({ shard: this.id, works: plan.works.length, ms: clock.monotonicMs() - sentAtMs })
    this.wake() // Further asks from these answers within this turn of the loop go with the next commit.
    this.finished(plan)
    this.startClaims(plan.claims) // Some are performed there and then: after the answers.
    if (plan.signals.length > 0) store.signal(plan.signals)
    this.intake.goOn(plan)
  }

  private again(flight: InFlightCommit, { works, refused, areLate, storeNowMs, isFull, isAway, pauses }: Again): void {
    if (storeNowMs !== undefined) this.world.resync(storeNowMs, flight.sentAtMs)
    for (const work of refused) {
      if (areLate) work.late = true
      answerWork(work, { kind: 'unavailable' })
    }
    if (isFull) this.fullUntilMs = this.world.clock.monotonicMs() + FULL_MS
    if (isFull || isAway) this.turns += 1 // The store has answered, so a refused shard is not stuck.
    if (pauses) this.pause(RETRY_MS)
    this.requeue(flight, works)
    this.advance()
  }

  private halve(flight: InFlightCommit, { reason, first, rest, blame }: Halve): void {
    this.world.log.badop({ shard: this.id, reason })
    if (blame !== null) for (const work of first) work.broken = blame
    this.requeue(flight, rest)
    for (const work of first) work.needs = 0
    this.begin([...first], true)
  }

  private requeue(flight: InFlightCommit, works: readonly Work[]): void {
    const { queue } = this.intake
    this.discard(flight.plan)
    this.land(flight)
    this.laid = []
    for (const work of works) work.needs = 0
    const later = this.next
    this.next = null
    if (later !== null) queue.putBack(later.works)
    queue.putBack(works)
  }

  /** The next owner recorded whether the commit had happened. Without a record, pending asks get no answer. */
  private askNextOwner(flight: InFlightCommit): void {
    void flight.askNextOwner((hasHappened) => {
      if (hasHappened === null) return void this.host.lost([])
      if (!hasHappened) return void this.giveUp(flight)
      this.land(flight)
      this.discard(flight.plan) // Its claims lapse: the new owner considered this worker dead.
      this.finished(flight.plan)
      this.host.lost([])
    })
  }

  /** The commit did not happen and the cached state is wrong, so the next owner of the shard decides again. */
  private giveUp(flight: InFlightCommit): void {
    this.land(flight)
    this.discard(flight.plan)
    this.host.lost(flight.plan.works)
  }

  /** Nothing is in flight any longer. */
  private land(flight: InFlightCommit): void {
    flight.end()
    this.inFlight = null
  }

  /** Schedules `advance` for the end of this turn of the loop, so that commands received together share a batch. */
  private wake(): void {
    if (this.isWoken) return
    this.isWoken = true
    this.world.clock.after(0, () => {
      this.isWoken = false
      this.advance()
    })
  }

  /** Makes works the next batch and starts its reads. */
  private begin(works: Work[], isClosed = false): void {
    this.next = this.reader.begin(works, isClosed)
    void this.reader.gather(this.next, null)
  }

  /** Stops deciding for a while. */
  private pause(ms: number): void {
    this.pausedUntilMs = this.world.clock.monotonicMs() + ms
    this.world.clock.after(ms + 1, () => this.advance())
  }

  /** Puts a batch whose reads failed back and waits. Its facts were not read. */
  private putBack(batch: Batch): void {
    this.next = null
    for (const work of batch.works) work.needs = 0
    this.intake.queue.putBack(batch.works)
    this.pause(RETRY_MS)
  }

  private decide(batch: Batch): void {
    const { clock } = this.world
    if (!batch.isClosed) this.reader.topUp(batch, this.intake.queue, clock.monotonicMs() < this.fullUntilMs)
    batch.works = batch.works.filter((work) => !isOver(work, clock.nowMs()))
    if (batch.works.length === 0) {
      this.next = null
      return void this.advance()
    }
    const decided = decideBatch(batch.works, this.batchContext(batch))
    if (decided.kind === 'need') {
      batch.reading = true
      void this.reader.gather(batch, decided.needs)
      return
    }
    this.next = null
    this.laid = []
    if (decided.plan.ops.length === 0) this.finished(decided.plan)
    else this.launch(decided.plan)
    this.advance()
  }

  private launch(plan: Plan): void {
    this.sending(plan)
    this.commits += 1
    const { token, seq } = this.meta
    const { clock } = this.world
    const head = { shard: this.id, token, seq, commitId: `${token}:${this.commits}`, nowMs: clock.nowMs() }
    const flight = new InFlightCommit(this.world, plan, makeCommit(plan, head))
    this.inFlight = flight
    void flight.send((verdict) => this.settle(flight, verdict))
  }
}
