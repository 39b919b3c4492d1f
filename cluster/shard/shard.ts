/**
 * shard - one shard under one owner: acquisition, commands and release. The work itself is done in `loop.ts`.
 *
 * States: loading (taking ownership), running, halted (its store is torn: it stays so), gone (another owner,
 * released).
 *
 * Guarantees: an ask is answered after the commit that made it true; `unavailable` is returned only for asks that are
 * in no sent commit; a commit without an answer is sent again, the same bytes, until there is a verdict, and its asks
 * are answered by that verdict alone (after 30 s by silence, never by a refusal); a refused commit leaves no state
 * behind.
 */
import type { Command, CommandType, Fact } from '../behaviour.ts'
import { newCmdId } from '../cmd-id.ts'
import type { Memory } from '../facts/memory.ts'
import type { Claim } from '../items/lane-runner.ts'
import { claimsKey, dueKey } from '../keyspace.ts'
import type { Bell, Cursors, Meta } from '../store.ts'
import { type AskResult, answerWork, askedWork, type Work } from '../work.ts'
import { ASK_LIFE_MS } from './ask-timeout.ts'
import { ASKS_MAX } from './intake.ts'
import type { KnownCommits } from './known-commits.ts'
import { CommitLoop } from './loop.ts'
import type { LoopHost } from './loop-host.ts'
import type { ShardWorld } from './world.ts'

const LANES_MAX = 1_000_000
const CLOSE_MAX_MS = 8_000

/** Puts a loop at the work of a shard. Tests make one that errs. */
export type MakeLoop = new (id: number, world: ShardWorld, host: LoopHost) => CommitLoop

type ShardPhase = 'loading' | 'running' | 'halted' | 'gone'

export class Shard {
  readonly id: number
  protected readonly loop: CommitLoop
  private readonly world: ShardWorld
  private phase: ShardPhase = 'loading'
  private isStopping = false
  /** The progress of the loop when it last advanced, and the time (monotonic). */
  private moved = { turns: 0, atMs: 0 }
  private idle: (() => void)[] = []

  constructor(id: number, world: ShardWorld, Loop: MakeLoop = CommitLoop) {
    this.id = id
    this.world = world
    this.loop = new Loop(id, world, {
      isRunning: () => this.phase === 'running',
      isStopping: () => this.isStopping,
      idle: () => this.wasIdle(),
      halted: (reason) => this.halt(reason),
      lost: (first) => this.drop(first),
    })
  }

  get running(): boolean {
    return this.phase === 'running'
  }

  /** Whether it accepts asks: it runs, and is not being released. */
  get accepts(): boolean {
    return this.phase === 'running' && !this.isStopping
  }

  get halted(): boolean {
    return this.phase === 'halted'
  }

  get token(): string {
    return this.loop.token
  }

  /** Confirmed commits of the shard. */
  get seq(): number {
    return this.loop.seq
  }

  /** State known to be in the store. */
  get knownCommits(): KnownCommits {
    return this.loop.knownCommits
  }

  /** Cached state of entities. */
  get memory(): Memory {
    return this.loop.memory
  }

  get waiting(): number {
    return this.loop.intake.queue.size
  }

  /** Where mailbox and outcomes are read on. */
  get cursors(): Cursors {
    return this.loop.intake.cursors
  }

  /**
   * Takes the shard from the owner with the token `saw` and starts. False if another process was quicker, or there was
   * no answer.
   */
  async open(saw: string): Promise<boolean> {
    const meta = await acquireShard(this.world, { shard: this.id, saw })
    if (meta === null) return false
    this.moved.atMs = this.world.clock.monotonicMs()
    const lanes: Fact = { read: 'sorted', key: dueKey(this.id), min: 0, max: Number.MAX_SAFE_INTEGER, count: LANES_MAX }
    const values = await this.world.store.read(this.id, [lanes, { read: 'hash', key: claimsKey(this.id) }])
    if (values === null || this.phase !== 'loading') return false
    this.phase = 'running'
    this.loop.start({
      meta,
      lanes: values[0] as readonly (readonly [string, number])[],
      claims: values[1] as ReadonlyMap<string, string>,
    })
    return true
  }

  /** One command of this process, whose `bytes` of content count against the batch. Never rejects. */
  ask(command: Command, type: CommandType, bytes: number): Promise<AskResult> {
    const { clock } = this.world
    const { intake, fullUntilMs } = this.loop
    const isFull = intake.queue.asks >= ASKS_MAX || clock.monotonicMs() < fullUntilMs
    if (isFull || this.isStopping || this.phase === 'halted' || this.phase === 'gone')
      return Promise.resolve({ kind: 'unavailable' })
    return new Promise((answer) => {
      const [cameAtMs, deadlineMs] = [clock.monotonicMs(), clock.nowMs() + ASK_LIFE_MS]
      intake.take(askedWork(type, command, { cameAtMs, deadlineMs, bytes, answer }))
    })
  }

  /** A work that comes from elsewhere: another shard object's ask, handed over. */
  take(work: Work): void {
    this.loop.intake.take(work)
  }

  /** Something may have come from another process. */
  ring(): void {
    this.loop.intake.ring()
  }

  /** Something has come from another process. */
  bell(bell: Bell): void {
    this.loop.intake.bell(bell)
  }

  /** A worker is dead, and may have left claims here. */
  workerDied(): void {
    this.loop.intake.workerDied()
  }

  /** The outcome of an attempt comes back as a command. */
  report(claim: Claim, outcome: unknown): void {
    this.loop.intake.report(claim, outcome)
  }

  /** Called a few times a second. `silentMs`: since the store last answered anything. */
  tick(silentMs: number): void {
    const { loop } = this
    const { isIdle } = loop
    if (!isIdle) loop.expire(silentMs)
    if (isIdle || loop.turns !== this.moved.turns)
      this.moved = { turns: loop.turns, atMs: this.world.clock.monotonicMs() }
    if (this.phase !== 'running') return
    loop.intake.tick()
    loop.advance()
  }

  /** For how long something has waited here and nothing has moved, ms. A full store is no fault of the shard. */
  stuckMs(atMs: number): number {
    return this.phase !== 'running' || atMs < this.loop.fullUntilMs ? 0 : atMs - this.moved.atMs
  }

  /** Drops a stuck shard. Its next acquisition finds out the outcome of the commit in flight here. */
  letGo(): void {
    if (this.phase !== 'running') return
    if (!this.loop.isInDoubt) return void this.drop()
    this.phase = 'loading'
    this.world.gone(this.id)
    this.loop.leaveInDoubt()
  }

  /** The store is at `storeSeq`. If that is behind the confirmed commits (by `known`), the loss is reported once. */
  noteLoss(storeSeq: number, known: KnownCommits = this.knownCommits): void {
    this.loop.noteLoss(storeSeq, known)
  }

  /** Forgets states that were not used for a while, before the next batch begins. */
  sweep(): void {
    this.loop.sweep()
  }

  /** Takes nothing new, ends asks and outcomes that are here (8 s at most), gives the shard back. */
  async close(maxMs: number = CLOSE_MAX_MS): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    this.loop.intake.queue.dropFindable()
    if (this.phase === 'running') {
      await new Promise<void>((resolve) => {
        const giveUp = this.world.clock.after(maxMs, resolve)
        this.idle.push(() => {
          giveUp()
          resolve()
        })
        this.loop.advance()
      })
      // Later commands are for the next owner. A commit after the release would get no verdict here.
      if (this.phase === 'running') this.phase = 'loading'
      await this.world.store.release({ shard: this.id, token: this.token })
    }
    this.leave()
  }

  /** Another worker holds the shard, and open work goes there, `first` before the rest. */
  drop(first: readonly Work[] = []): void {
    if (this.phase === 'gone') return
    this.world.fence.lost(this.id)
    this.world.runner.abortLost()
    this.leave(first)
    this.world.gone(this.id)
  }

  private halt(reason: string): void {
    this.phase = 'halted'
    this.world.log.halted({ shard: this.id, reason })
    for (const work of this.loop.drain().rest) answerWork(work, { kind: 'unavailable' })
    this.wasIdle()
  }

  private leave(first: readonly Work[] = []): void {
    if (this.phase === 'gone') return
    this.phase = 'gone'
    // Finished work with an unknown outcome goes to the next owner as well. Delivered twice, it counts once.
    const { inDoubt, rest } = this.loop.drain()
    this.world.fence.commitAnswered(this.id)
    this.loop.forget()
    this.handOver([...first, ...inDoubt, ...rest])
    this.wasIdle()
  }

  private handOver(works: readonly Work[]): void {
    const open = works.filter(
      ({ source, entryId, answer }) =>
        (source === 'outcome' && entryId === '') || (source === 'local' && answer !== null),
    )
    for (const work of open) work.needs = 0
    if (open.length > 0) this.world.forward(this.id, open)
  }

  private wasIdle(): void {
    const waiting = this.idle
    this.idle = []
    for (const resolve of waiting) resolve()
  }
}

/**
 * Takes `shard` from the owner with the token `saw` ('' if it was never owned). Null if another was quicker, or there
 * was no answer.
 */
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
