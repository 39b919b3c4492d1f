/**
 * intake - the pending work of a shard: asks, commands of other processes and due items, all in one queue.
 *
 * Guarantees: nothing is claimed before every outcome present when the shard was taken is committed, nor before the
 * arrival of outcomes that no owner accepted while the shard moved to another primary, nor once the shard is being
 * released.
 */
import type { Clock } from '../clock.ts'
import { assert } from '../fault.ts'
import type { ItemContext } from '../items/claim.ts'
import type { Claim } from '../items/lane-runner.ts'
import type { Bell, Cursors, Meta } from '../store.ts'
import { answerWork, type Work, type WorkSource } from '../work.ts'
import { RESEND_MS_MAX } from './ask-timeout.ts'
import type { Plan } from './batch.ts'
import { DueScanner } from './due-scanner.ts'
import { ShardInbox } from './inbox.ts'
import { OwnWorks } from './own-works.ts'
import { WorkQueue } from './work-queue.ts'
import type { ShardWorld } from './world.ts'

/** Asks that may wait at a shard. */
export const ASKS_MAX = 2_000
/** Within this time after a move every outcome refused during it has been sent again and read. */
const OUTCOMES_COME_MS = 2 * RESEND_MS_MAX

export interface IntakeDeps {
  readonly items: ItemContext
  readonly isRunning: () => boolean
  readonly isStopping: () => boolean
  /** Whether a batch waits behind a commit already: more is read when that has been sent. */
  readonly isBusy: () => boolean
  /** Something came. */
  readonly wake: () => void
}

export class Intake {
  readonly queue = new WorkQueue()
  private readonly deps: IntakeDeps
  private readonly own: OwnWorks
  private readonly inbox: ShardInbox
  private readonly scanner: DueScanner
  private readonly clock: Clock
  private claimsFromMs = 0

  constructor(world: ShardWorld, deps: IntakeDeps) {
    this.deps = deps
    this.clock = world.clock
    const { shard, lanes } = deps.items
    this.own = new OwnWorks(world, deps.items)
    this.inbox = new ShardInbox(world, {
      shard,
      isOpen: () => deps.isRunning() && !deps.isStopping(),
      hasRoom: () => this.queue.mailboxSize < ASKS_MAX,
      hasEnough: () => this.queue.mailboxSize > 0 || deps.isBusy(),
      take: (works) => this.take(...works),
      outcomeType: (lane) => this.own.outcomeType(lane),
      free: (items) => this.own.make('free', { lane: '', item: '', body: { items } }),
    })
    this.scanner = new DueScanner(world, { shard, lanes, push: (source, lane, item) => this.found(source, lane, item) })
  }

  /** Where mailbox and outcomes are read on. */
  get cursors(): Cursors {
    return this.inbox.cursors
  }

  /**
   * False while an earlier outcome, or one delayed by a move, is not processed, and while the shard is being released.
   */
  get mayClaim(): boolean {
    return !this.deps.isStopping() && this.inbox.caughtUp && this.clock.nowMs() >= this.claimsFromMs
  }

  /** Continues after the last commit of the shard. */
  start(meta: Meta): void {
    // By a clock that was ahead then, the move has not ended yet.
    if (meta.freedAtMs > 0) this.claimsFromMs = Math.min(meta.freedAtMs, this.clock.nowMs()) + OUTCOMES_COME_MS
    this.inbox.start(meta)
    this.inbox.read()
  }

  /** Works that came in. */
  take(...works: readonly Work[]): void {
    for (const work of works) this.queue.push(work)
    this.deps.wake()
  }

  /** The outcome of an attempt comes back as a command. */
  report({ lane, item, attempt }: Claim, outcome: unknown): void {
    const work = this.own.make('outcome', { lane, item, body: { lane, item, attempt, current: false, outcome } })
    assert(work !== null, 'Outcome for an unknown lane')
    this.take(work)
  }

  /** Something may have come from another process. */
  ring(): void {
    this.inbox.ring()
  }

  /** Something has come from another process. */
  bell(bell: Bell): void {
    this.inbox.bell(bell)
  }

  /** A worker is dead, and may have left claims here. */
  workerDied(): void {
    this.inbox.workerDied()
  }

  /** Looks for due items and new commands. Called a few times a second while the shard runs. */
  tick(): void {
    if (this.deps.items.lanes.size > 0 && this.mayClaim) this.scanner.scanDue()
    this.inbox.read()
  }

  /** Answers asks that `isOver` names: they are not decided. */
  refuseAsks(isOver: (work: Work) => boolean): void {
    for (const work of this.queue.takeAsks(isOver)) answerWork(work, { kind: 'unavailable' })
  }

  /** A commit is confirmed, and the lanes and the cursor of outcomes advance. */
  confirmed(plan: Plan): void {
    this.deps.items.lanes.confirmed(plan)
    this.inbox.confirmed(plan.outcomesCursor)
  }

  /** Works have ended: more is read, and their items may be found again. */
  finished({ replies }: Plan): void {
    this.inbox.read()
    for (const { work } of replies) if (work.source !== 'local') this.scanner.forget(work)
  }

  /** A commit is confirmed and its claims are performed: new due items are looked for. */
  goOn(plan: Plan): void {
    if (this.mayClaim) this.scanner.scanAfter(plan)
  }

  private found(source: WorkSource, lane: string, item: string): boolean {
    const work = this.own.make(source, { lane, item, body: { lane, item } })
    // While the scan read, the shard was closed and outcomes that should precede the work were dropped, or the clock
    // was set back to a time before the end of the wait after a move.
    if (work === null || !this.mayClaim) return false
    this.take(work)
    return true
  }
}
