/**
 * shard - one shard under one owner: taking it, what comes in, what verdicts mean, giving it back.
 *
 * States: loading (taking ownership), running, halted (its store is torn: it stays so), gone (another owner, released).
 *
 * Guarantees: an ask is answered after the commit that made it true; `unavailable` is said only of asks that no sent
 * commit holds; a commit without an answer is sent again, the same bytes, until there is a verdict, and its asks are
 * answered by that verdict alone (after 30 s by silence, never by a refusal); a refused commit leaves no state behind.
 */
import type { Command, CommandType, Fact } from '../behaviour.ts'
import { newCmdId } from '../cmd-id.ts'
import type { Laid } from '../facts/facts.ts'
import { assert } from '../fault.ts'
import { makeIds } from '../id.ts'
import { standingClaims } from '../items/dead-claims.ts'
import { type Claim, laneFamily } from '../items/pump.ts'
import { claimsKey, dueKey } from '../keyspace.ts'
import type { Bell, Cursors, Meta } from '../store.ts'
import { type AskResult, answerWork, askedWork, type Work } from '../work.ts'
import { discardPlan, type Plan } from './batch.ts'
import { DueScanner } from './due-scanner.ts'
import { ShardInbox } from './inbox.ts'
import { KnownCommits } from './known-commits.ts'
import type { InFlight } from './loop.ts'
import { ShardVerdicts } from './verdict.ts'
import type { ShardWorld } from './world.ts'

/** Asks that may wait at a shard. */
export const ASKS_MAX = 2_000
/** An ask can become true for this long. */
export const ASK_LIFE_MS = 4_000
/** An ask in a commit without a verdict is let go, unanswered, after this. */
const DOUBT_MAX_MS = 30_000
/** An ask that was never handed to a silent store is refused after this. */
const SILENCE_MAX_MS = 1_500
const LANES_MAX = 1_000_000
const CLOSE_MAX_MS = 8_000

export class Shard extends ShardVerdicts {
  /** What was confirmed here. */
  readonly confirmedCommits = new KnownCommits()
  private readonly scanner: DueScanner
  private readonly inbox: ShardInbox
  private stopping = false
  /** What it had done when it last was seen to move, and when that was (monotonic). */
  private moved = { turns: 0, atMs: 0 }
  private turns = 0
  private idle: (() => void)[] = []

  constructor(id: number, world: ShardWorld) {
    super(id, world)
    this.inbox = new ShardInbox(world, {
      shard: id,
      isOpen: () => this.phase === 'running' && !this.stopping,
      hasRoom: () => this.queue.mailboxSize < ASKS_MAX,
      hasEnough: () => this.queue.mailboxSize > 0 || (this.next !== null && this.inFlight !== null),
      take: (works) => this.takeAll(works),
      outcomeType: (lane) => this.types.get(`outcome ${laneFamily(lane)}`),
      free: (items) => this.own('free', { lane: '', item: '', body: { items } }),
    })
    const push = (source: Work['source'], lane: string, item: string): void => {
      const work = this.own(source, { lane, item, body: { lane, item } })
      // A scan that was under way when the shard was closed: outcomes that were to come first have been let go.
      if (work === null || !this.mayClaim()) return
      this.queue.push(work)
      this.wake()
    }
    this.scanner = new DueScanner(world, { shard: id, lanes: this.lanes, push })
  }

  get running(): boolean {
    return this.phase === 'running'
  }

  /** Whether it takes asks: it runs, and is not being given back. */
  get accepts(): boolean {
    return this.phase === 'running' && !this.stopping
  }

  get halted(): boolean {
    return this.phase === 'halted'
  }

  get token(): string {
    return this.meta.token
  }

  /** Confirmed commits of the shard. */
  get seq(): number {
    return this.meta.seq
  }

  get waiting(): number {
    return this.queue.size
  }

  /** Takes the shard from whoever had it under the token `saw` and starts. False: someone else was quicker, or no answer. */
  async open(saw: string): Promise<boolean> {
    const meta = await acquireShard(this.world, { shard: this.id, saw })
    if (meta === null) return false
    this.meta = meta
    this.moved.atMs = this.world.clock.monotonicMs()
    const lanes: Fact = { read: 'sorted', key: dueKey(this.id), min: 0, max: Number.MAX_SAFE_INTEGER, count: LANES_MAX }
    const values = await this.world.store.read(this.id, [lanes, { read: 'hash', key: claimsKey(this.id) }])
    if (values === null || this.phase !== 'loading') return false
    for (const [lane, atMs] of values[0] as readonly (readonly [string, number])[]) this.lanes.load(lane, atMs)
    this.ids = makeIds({ shard: this.id, last: meta.lid, random: this.world.random })
    const rows = values[1] as ReadonlyMap<string, string>
    for (const [lane, held] of standingClaims(rows, this.world)) this.items.standing.set(lane, held)
    this.phase = 'running'
    this.inbox.start(this.meta)
    this.inbox.read()
    this.advance()
    return true
  }

  /** One command of this process; `bytes` of content count against the batch. Never rejects. */
  ask(command: Command, type: CommandType, bytes: number): Promise<AskResult> {
    const { clock } = this.world
    const full = this.queue.asks >= ASKS_MAX || clock.monotonicMs() < this.fullUntilMs
    if (full || this.stopping || this.phase === 'halted' || this.phase === 'gone')
      return Promise.resolve({ kind: 'unavailable' })
    return new Promise((answer) => {
      const [cameAtMs, deadlineMs] = [clock.monotonicMs(), clock.nowMs() + ASK_LIFE_MS]
      this.take(askedWork(type, command, { cameAtMs, deadlineMs, bytes, answer }))
    })
  }

  /** A work that comes from elsewhere: another shard object's ask, handed over. */
  take(work: Work): void {
    this.queue.push(work)
    this.wake()
  }

  /** Something may have come from another process. */
  ring(): void {
    this.inbox.ring()
  }

  /** Something has come from another process. */
  bell(bell: Bell): void {
    this.inbox.bell(bell)
  }

  /** A worker is no more, which may have left claims here. */
  workerDied(): void {
    this.inbox.workerDied()
  }

  /** Where mailbox and outcomes are read on. */
  get cursors(): Cursors {
    return this.inbox.cursors
  }

  /** The outcome of an attempt comes back as a command. */
  report(claim: Claim, outcome: unknown): void {
    const { lane, item, attempt } = claim
    const work = this.own('outcome', { lane, item, body: { lane, item, attempt, current: false, outcome } })
    assert(work !== null, 'Outcome for an unknown lane')
    this.take(work)
  }

  /** Called a few times a second. `silentMs`: since the store last answered anything. */
  tick(silentMs: number): void {
    const isIdle = this.queue.size === 0 && this.next === null && this.inFlight === null
    if (!isIdle) this.expire(silentMs)
    if (isIdle || this.turns !== this.moved.turns)
      this.moved = { turns: this.turns, atMs: this.world.clock.monotonicMs() }
    if (this.phase !== 'running') return
    if (this.lanes.size > 0 && this.mayClaim()) this.scanner.scanDue()
    this.inbox.read()
    this.advance()
  }

  /** For how long something has waited here and nothing has moved, ms. A full store is no fault of the shard. */
  stuckMs(atMs: number): number {
    return this.phase !== 'running' || atMs < this.fullUntilMs ? 0 : atMs - this.moved.atMs
  }

  /** Lets go of a shard that is stuck: who takes it anew finds out what became of the commit that is in doubt here. */
  letGo(): void {
    if (this.phase !== 'running') return
    const flight = this.inFlight
    if (flight === null) return void this.drop()
    this.phase = 'loading'
    this.world.gone(this.id)
    void this.fenced(flight)
  }

  /** The store stands at `storeSeq`: where that is before what was confirmed (by `known`), it is told, once. */
  noteLoss(storeSeq: number, known: KnownCommits = this.confirmedCommits): void {
    const loss = known.lossAt(storeSeq)
    if (loss !== null) this.world.log.lost({ shard: this.id, ...loss })
  }

  /** Forgets states that were not used for a while, before the next batch begins. */
  sweep(): void {
    this.sweepDue = true
    this.advance()
  }

  /** Takes nothing new, ends asks and outcomes that are here (8 s at most), gives the shard back. */
  async close(maxMs: number = CLOSE_MAX_MS): Promise<void> {
    if (this.stopping) return
    this.stopping = true
    this.queue.dropFindable()
    if (this.phase === 'running') {
      await new Promise<void>((resolve) => {
        const giveUp = this.world.clock.after(maxMs, resolve)
        this.idle.push(() => {
          giveUp()
          resolve()
        })
        this.advance()
      })
      // What comes now is for the next owner: a commit behind the release would not be heard of here.
      if (this.phase === 'running') this.phase = 'loading'
      await this.world.store.release({ shard: this.id, token: this.meta.token })
    }
    this.leave()
  }

  /** Someone else holds the shard: what is open here goes there, `first` before the rest. */
  drop(first: readonly Work[] = []): void {
    if (this.phase === 'gone') return
    this.world.fence.lost(this.id)
    this.world.pump.abortLost()
    this.leave(first)
    this.world.gone(this.id)
  }

  /** A commit was confirmed: its writes are laid over the reads that the next batch has sent meanwhile. */
  protected keepLaid(laid: Laid): void {
    this.laid = this.next === null ? [] : [laid]
  }

  /** A plan did not become true: what it reserved is given back, its draft forgotten. */
  protected discard(plan: Plan): void {
    discardPlan(plan, this.items)
  }

  /** A plan is true: who waits for it is answered. */
  protected finished(plan: Plan): void {
    this.hasMoved()
    this.inbox.read()
    for (const { work, reply, fault } of plan.replies) {
      if (work.source !== 'local') this.scanner.forget(work)
      answerWork(work, fault ? { kind: 'fault' } : { kind: 'answer', reply })
    }
  }

  protected hasMoved(): void {
    this.turns += 1
  }

  /** Confirmed claims are performed. */
  protected startClaims(claims: readonly Claim[]): void {
    for (const claim of claims) {
      this.world.pump.release(claim.lane)
      this.world.pump.start(claim, {
        shard: this.id,
        report: (done, outcome) => this.world.reported(this.id, done, outcome),
      })
    }
  }

  protected wasIdle(): void {
    const waiting = this.idle
    this.idle = []
    for (const resolve of waiting) resolve()
  }

  protected confirmed(flight: InFlight): void {
    const { plan, commit } = flight
    this.inFlight = null
    this.memory.take(plan.draft, this.world.clock.nowMs())
    this.meta.seq = commit.seq + 1
    this.confirmedCommits.note(this.meta.seq, this.world.clock.nowMs())
    this.fields.note(plan)
    if (plan.lid !== '') this.meta.lid = plan.lid
    this.keepLaid({ seq: this.meta.seq, overlay: plan.overlay })
    this.lanes.confirmed(plan)
    this.inbox.confirmed(plan.outcomesCursor)
    const ms = this.world.clock.monotonicMs() - flight.sentAtMs
    this.world.log.committed({ shard: this.id, works: plan.works.length, ms })
    this.wake() // What these answers bring about within this turn of the loop goes with the next commit.
    this.finished(plan)
    this.startClaims(plan.claims) // Some are performed there and then: after the answers.
    if (plan.signals.length > 0) this.world.store.signal(plan.signals)
    if (this.mayClaim()) this.scanner.scanAfter(plan)
  }

  protected halt(reason: string): void {
    this.phase = 'halted'
    this.world.log.halted({ shard: this.id, reason })
    if (this.inFlight !== null) this.abandonFlight(this.inFlight)
    for (const work of [...(this.next?.works ?? []), ...this.queue.drain()]) answerWork(work, { kind: 'unavailable' })
    this.inFlight = null
    this.next = null
    this.wasIdle()
  }

  private leave(first: readonly Work[] = []): void {
    if (this.phase === 'gone') return
    this.phase = 'gone'
    // What has ended here and is in doubt goes to the next owner as well: twice it counts once.
    const inDoubt = this.inFlight?.plan.works ?? []
    if (this.inFlight !== null) this.abandonFlight(this.inFlight)
    this.world.fence.commitAnswered(this.id)
    const open = [...first, ...inDoubt, ...(this.next?.works ?? []), ...this.queue.drain()]
    this.inFlight = null
    this.next = null
    this.fields.clear()
    this.handOver(open)
    this.wasIdle()
  }

  /** Not while an outcome that lay there is not taken up, nor for the next owner. */
  protected mayClaim(): boolean {
    return !this.stopping && this.inbox.caughtUp
  }

  private handOver(works: readonly Work[]): void {
    const open = works.filter(
      ({ source, entryId, answer }) =>
        (source === 'outcome' && entryId === '') || (source === 'local' && answer !== null),
    )
    for (const work of open) work.needs = 0
    if (open.length > 0) this.world.forward(this.id, open)
  }

  private abandonFlight(flight: InFlight): void {
    this.discard(flight.plan)
    this.silence(flight)
  }

  private silence(flight: InFlight): void {
    flight.silenced = true
    for (const work of flight.plan.works) answerWork(work, { kind: 'silent' })
  }

  private expire(silentMs: number): void {
    const nowMs = this.world.clock.nowMs()
    const atMs = this.world.clock.monotonicMs()
    const waitedTooLong = (work: Work): boolean =>
      nowMs > work.deadlineMs || (silentMs > SILENCE_MAX_MS && atMs - work.cameAtMs > SILENCE_MAX_MS)
    for (const work of this.queue.takeAsks(waitedTooLong)) answerWork(work, { kind: 'unavailable' })
    for (const work of this.next?.works ?? [])
      if (work.source === 'local' && waitedTooLong(work)) answerWork(work, { kind: 'unavailable' })
    const flight = this.inFlight
    if (flight !== null && !flight.silenced && atMs - flight.sentAtMs > DOUBT_MAX_MS) this.silence(flight)
  }

  private takeAll(works: readonly Work[]): void {
    for (const work of works) this.queue.push(work)
    this.wake()
  }
}

/** Takes `shard` from whoever has it under the token `saw` ('' for nobody yet). Null: another was quicker, or no answer. */
export async function acquireShard(
  { clock, random, store, worker }: Pick<ShardWorld, 'clock' | 'random' | 'store' | 'worker'>,
  { shard, saw }: { shard: number; saw: string },
): Promise<Meta | null> {
  const epoch = Number(saw.split(':')[0]) + 1
  const newToken = `${epoch}:${newCmdId(clock.nowMs(), random)}`
  const acquired = await store.acquire({ shard, sawToken: saw, newToken, worker })
  if (acquired.kind === 'failed' || (acquired.kind === 'changed' && acquired.meta.token !== newToken)) return null
  return { ...acquired.meta, token: newToken, owner: worker }
}
