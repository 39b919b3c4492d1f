/**
 * shard - one shard under one owner: taking it, what comes in, what verdicts mean, giving it back.
 *
 * States: loading (taking ownership), running, halted (its store is torn: it stays so), gone (another owner, released).
 *
 * Guarantees: an ask is answered after the commit that made it true; `unavailable` is said only of asks that no sent
 * commit holds; a commit without an answer is sent again, the same bytes, until there is a verdict, and its asks are
 * answered by that verdict alone (after 30 s by silence, never by a refusal); a refused commit leaves no state behind.
 */
import { acquireShard } from './acquire-shard.ts'
import { discardPlan, type Plan } from './batch.ts'
import type { Command, CommandType, Fact } from './behaviour.ts'
import { deadClaims, standingClaims } from './dead-claims.ts'
import { DueScanner } from './due-scanner.ts'
import type { Laid } from './facts.ts'
import { assert, Fault } from './fault.ts'
import { makeIds } from './id.ts'
import { claimsKey, dueKey } from './keyspace.ts'
import { MailboxReader } from './mailbox-reader.ts'
import { mailboxWork } from './mailbox-work.ts'
import type { Claim } from './pump.ts'
import { type InFlight, RETRY_MS, ShardLoop } from './shard-loop.ts'
import type { ShardWorld } from './shard-world.ts'
import type { Verdict } from './store.ts'
import { type AskResult, answerWork, internalWork, type Work } from './work.ts'

/** Asks that may wait at a shard. */
export const ASKS_MAX = 2_000
/** An ask can become true for this long. */
export const ASK_LIFE_MS = 4_000
/** An ask in a commit without a verdict is let go, unanswered, after this. */
const DOUBT_MAX_MS = 30_000
/** An ask that was never handed to a silent store is refused after this. */
const SILENCE_MAX_MS = 1_500
const FULL_MS = 1_000
const LANES_MAX = 1_000_000
/** What the next owner found is looked for this often. */
const FENCED_LOOKS_MAX = 40
const CLOSE_MAX_MS = 8_000

/** The store refused the command's writes when they were alone in a commit. */
class Refused extends Fault {}

export class Shard extends ShardLoop {
  private readonly scanner: DueScanner
  private readonly mailbox: MailboxReader
  private stopping = false
  private idle: (() => void)[] = []

  constructor(id: number, world: ShardWorld) {
    super(id, world)
    this.mailbox = new MailboxReader(id, world.store)
    const push = (source: Work['source'], lane: string, item: string): void => {
      const work = this.own(source, { lane, item, body: { lane, item } })
      if (work === null) return
      this.queue.push(work)
      this.wake()
    }
    this.scanner = new DueScanner(world, { shard: id, lanes: this.lanes, push })
  }

  get running(): boolean {
    return this.phase === 'running'
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
    const lanes: Fact = { read: 'sorted', key: dueKey(this.id), min: 0, max: Number.MAX_SAFE_INTEGER, count: LANES_MAX }
    const values = await this.world.store.read(this.id, [lanes, { read: 'hash', key: claimsKey(this.id) }])
    if (values === null || this.phase !== 'loading') return false
    for (const [lane, atMs] of values[0] as readonly (readonly [string, number])[]) this.lanes.load(lane, atMs)
    this.ids = makeIds({ shard: this.id, last: meta.lid, random: this.world.random })
    this.freeClaims(values[1] as ReadonlyMap<string, string>)
    this.mailbox.start(this.meta.cursor)
    this.phase = 'running'
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
      const base = internalWork('local', type, { command, lane: '', item: '', cameAtMs: clock.monotonicMs() })
      this.take({ ...base, deadlineMs: clock.nowMs() + ASK_LIFE_MS, bytes, answer })
    })
  }

  /** A work that comes from elsewhere: another shard object's ask, handed over. */
  take(work: Work): void {
    this.queue.push(work)
    this.wake()
  }

  /** The mailbox has something. */
  bell(): void {
    this.mailbox.ring()
    this.readMailbox()
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
    if (this.phase !== 'running') return
    if (!this.stopping && this.lanes.size > 0) this.scanner.scanDue()
    this.readMailbox()
    this.advance()
  }

  /** Forgets states that were not used for a while, before the next batch begins. */
  sweep(): void {
    this.sweepDue = true
    this.advance()
  }

  /** Takes nothing new, ends what is here (8 s at most), gives the shard back. */
  async close(): Promise<void> {
    this.stopping = true
    if (this.phase === 'running') {
      await new Promise<void>((resolve) => {
        const giveUp = this.world.clock.after(CLOSE_MAX_MS, resolve)
        this.idle.push(() => {
          giveUp()
          resolve()
        })
        this.advance()
      })
      await this.world.store.release({ shard: this.id, token: this.meta.token })
    }
    this.leave()
  }

  /** Someone else holds the shard: what is open here goes there, `first` before the rest. */
  drop(first: readonly Work[] = []): void {
    if (this.phase === 'gone') return
    this.leave(first)
    this.world.gone(this.id)
  }

  protected settle(flight: InFlight, verdict: Verdict): void {
    switch (verdict.kind) {
      case 'ok':
      case 'dup':
        return void this.confirmed(flight)
      case 'fenced':
        return void this.fenced(flight)
      case 'conflict':
        if (verdict.seq < flight.commit.seq) return void this.giveUp(flight)
        return void this.halt(`Sequence number ${verdict.seq} is above mine, ${flight.commit.seq}`)
      case 'torn':
        return void this.halt(verdict.reason)
      case 'clock':
      case 'late':
        this.world.resync(verdict.nowMs)
        return void this.again(flight, flight.plan.works)
      case 'missing':
        return void this.missing(flight, verdict.key)
      case 'badop':
        return void this.halve(flight, verdict.reason)
      case 'refused':
        return void this.refused(flight)
      case 'unsent':
        this.pause(RETRY_MS)
        return void this.again(flight, flight.plan.works)
      case 'lost':
        throw new Fault('A commit in doubt was settled')
    }
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
    for (const { work, reply, fault } of plan.replies) {
      if (work.source !== 'local') this.scanner.forget(work)
      answerWork(work, fault ? { kind: 'fault' } : { kind: 'answer', reply })
    }
  }

  /** Confirmed claims are performed. */
  protected startClaims(claims: readonly Claim[]): void {
    for (const claim of claims) {
      this.world.pump.release(claim.lane)
      this.world.pump.start(claim, (done, outcome) => this.world.reported(this.id, done, outcome))
    }
  }

  protected wasIdle(): void {
    const waiting = this.idle
    this.idle = []
    for (const resolve of waiting) resolve()
  }

  private confirmed(flight: InFlight): void {
    const { plan, commit } = flight
    this.inFlight = null
    this.memory.take(plan.draft, this.world.clock.nowMs())
    this.meta.seq = commit.seq + 1
    this.fields.note(plan.ops, plan.absent)
    if (plan.lid !== '') this.meta.lid = plan.lid
    this.keepLaid({ seq: this.meta.seq, overlay: plan.overlay })
    this.lanes.confirmed(plan)
    const ms = this.world.clock.monotonicMs() - flight.sentAtMs
    this.world.log.committed({ shard: this.id, works: plan.works.length, ms })
    this.advance() // The next commit is on its way before this one's answers are written.
    this.startClaims(plan.claims)
    this.finished(plan)
    if (plan.signals.length > 0) this.world.store.signal(plan.signals)
    if (!this.stopping) this.scanner.scanAfter(plan)
  }

  /** Works of a commit that did not happen are decided again, before anything that came later. */
  private again(flight: InFlight, works: readonly Work[]): void {
    this.requeue(flight, works)
    this.advance()
  }

  private requeue(flight: InFlight, works: readonly Work[]): void {
    this.discard(flight.plan)
    this.inFlight = null
    this.laid = []
    for (const work of works) work.needs = 0
    const later = this.next
    this.next = null
    if (later !== null) this.queue.putBack(later.works)
    this.queue.putBack(works)
  }

  /** Content that an ask brought along has expired: that ask is refused, the rest decided again. */
  private missing(flight: InFlight, key: string): void {
    const { works } = flight.plan
    const owners = works.filter(({ source, command }) => source === 'local' && key.includes(command.cmdId))
    if (owners.length === 0) return void this.halve(flight, 'A key that a command names does not exist')
    for (const work of owners) answerWork(work, { kind: 'unavailable' })
    this.again(
      flight,
      works.filter((work) => !owners.includes(work)),
    )
  }

  /** A commit against the rules is halved until the command is found that ordered it. */
  private halve(flight: InFlight, reason: string): void {
    this.world.log.badop({ shard: this.id, reason })
    const { works } = flight.plan
    const half = works.slice(0, Math.max(1, works.length >> 1))
    if (works.length === 1) {
      if (half[0]!.broken instanceof Refused) return void this.halt(reason)
      half[0]!.broken = new Refused('The store refused what the command ordered', { reason })
    }
    this.requeue(flight, works.slice(half.length))
    for (const work of half) work.needs = 0
    this.begin(half, true)
  }

  /** The store refused before anything ran: asks are told, what finishes or frees is tried again. */
  private refused(flight: InFlight): void {
    const { works } = flight.plan
    for (const work of works) if (work.source === 'local') answerWork(work, { kind: 'unavailable' })
    this.fullUntilMs = this.world.clock.monotonicMs() + FULL_MS
    this.pause(RETRY_MS)
    this.again(
      flight,
      works.filter(({ source }) => source !== 'local'),
    )
  }

  /** The next owner wrote down whether the commit had happened. Without a word of his nobody knows: the asks stay silent. */
  private async fenced(flight: InFlight, looks = 0): Promise<void> {
    const found = await this.world.store.fenced({ shard: this.id, token: flight.commit.token })
    if (this.inFlight !== flight) return
    if (found === null && looks >= FENCED_LOOKS_MAX) return this.drop()
    if (found === null) {
      this.world.clock.after(RETRY_MS, () => {
        if (this.inFlight === flight) void this.fenced(flight, looks + 1)
      })
      return
    }
    if (found.seq <= flight.commit.seq && found.last !== flight.commit.commitId) return void this.giveUp(flight)
    this.inFlight = null
    this.discard(flight.plan) // Its claims lapse: who took the shard believed this worker dead and has freed them.
    this.finished(flight.plan)
    this.drop()
  }

  /** The commit did not happen and what is remembered here is wrong: whoever opens the shard next decides again. */
  private giveUp(flight: InFlight): void {
    this.inFlight = null
    this.discard(flight.plan)
    this.drop(flight.plan.works)
  }

  private halt(reason: string): void {
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
    if (this.inFlight !== null) this.abandonFlight(this.inFlight)
    const open = [...first, ...(this.next?.works ?? []), ...this.queue.drain()]
    this.inFlight = null
    this.next = null
    this.handOver(open)
    this.wasIdle()
  }

  private handOver(works: readonly Work[]): void {
    const open = works.filter(({ source, answer }) => source === 'outcome' || (source === 'local' && answer !== null))
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

  private freeClaims(rows: ReadonlyMap<string, string>): void {
    for (const [lane, untilMs] of standingClaims(rows, this.world)) this.items.standing.set(lane, untilMs)
    for (const items of deadClaims(rows, this.world)) {
      const work = this.own('free', { lane: '', item: '', body: { items } })
      if (work !== null) this.queue.push(work)
    }
  }

  private readMailbox(): void {
    if (this.phase !== 'running' || this.stopping || !this.mailbox.wants) return
    void this.mailbox.read().then((read) => {
      if (this.phase !== 'running') return
      const { commands, clock } = this.world
      for (const command of read) this.queue.push(mailboxWork(command, { commands, cameAtMs: clock.monotonicMs() }))
      if (read.length > 0) this.advance()
    })
  }
}
