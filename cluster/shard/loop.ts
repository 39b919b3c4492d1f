/** loop - read, decide, send: the steady part of a shard. At most one commit is in flight. While it is, the next batch
 *  reads its facts; it is decided when the commit is confirmed, so its answers (also those of a batch that writes nothing)
 *  rest on confirmed state alone. What a read cannot have seen is laid over it (overlay.ts). What a verdict means is
 *  decided in shard.ts. */
import type { CommandType, Context, Fact, Known, Need } from '../behaviour.ts'
import { newCmdId } from '../cmd-id.ts'
import { FactList, FactRounds, FactView, type KnownFields, type Laid } from '../facts/facts.ts'
import { KnownFacts } from '../facts/known-facts.ts'
import { Draft, Memory } from '../facts/memory.ts'
import { isLoaded, type StateAsk, statesToLoad } from '../facts/state-loader.ts'
import { Fault } from '../fault.ts'
import { entryIdOf, type IdMaker, makeIds, sortableEntryId } from '../id.ts'
import { CLAIM_RULES, type ItemContext } from '../items/claim.ts'
import { claimType, freeType, indexType, outcomeType, timerType } from '../items/item-turns.ts'
import { LaneIndex } from '../items/lane-index.ts'
import { laneFamily } from '../items/pump.ts'
import type { Commit, Meta, Verdict } from '../store.ts'
import { answerWork, internalWork, type Source, type Work } from '../work.ts'
import { type BatchContext, decideBatch, type Plan } from './batch.ts'
import { WorkQueue } from './work-queue.ts'
import type { ShardWorld } from './world.ts'

/** A wait before what failed is tried again, ms. */
export const RETRY_MS = 50
const BATCH = { commandsMax: 64, bytesMax: 524_288 }

export type ShardPhase = 'loading' | 'running' | 'halted' | 'gone'

export interface Batch {
  works: Work[]
  /** Nothing that comes later joins it: it looks for the command that the store refuses. */
  readonly isClosed: boolean
  readonly rounds: FactRounds
  reading: boolean
}

interface Look {
  readonly turn: Context
  readonly states: Draft
  readonly known: Known
}

export interface InFlight {
  readonly plan: Plan
  readonly commit: Commit
  readonly sentAtMs: number
  /** A sending got no answer: it may have happened. */
  doubted: boolean
  silenced: boolean
}

export abstract class ShardLoop {
  readonly id: number
  protected readonly world: ShardWorld
  protected readonly queue = new WorkQueue()
  protected readonly memory = new Memory()
  protected readonly fields: KnownFacts
  protected readonly lanes = new LaneIndex()
  protected readonly items: ItemContext
  protected phase: ShardPhase = 'loading'
  protected next: Batch | null = null
  protected inFlight: InFlight | null = null
  protected laid: readonly Laid[] = []
  protected meta: Meta = { owner: '', token: '', seq: 0, last: '', lid: '', cursor: '', outcomesCursor: '', tries: 0 }
  protected ids: IdMaker
  /** Monotonic time until which only what finishes or frees is committed: the store is full. */
  protected fullUntilMs = 0
  /** Idle states are to be forgotten, at a moment when no batch rests on them. */
  protected sweepDue = false
  protected readonly types: ReadonlyMap<string, CommandType>
  private readonly known: Known = (key, field) => this.fields.field(key, field)
  private commits = 0
  private pausedUntilMs = 0
  private isWoken = false

  constructor(id: number, world: ShardWorld) {
    this.id = id
    this.world = world
    this.fields = new KnownFacts(world.fieldBudget)
    this.ids = makeIds({ shard: id, last: '', random: world.random })
    const { worker, pump } = world
    const rules = world.rules ?? CLAIM_RULES
    const mayClaim = (): boolean => this.mayClaim()
    this.items = { shard: id, worker, pump, lanes: this.lanes, rules, standing: new Map(), mayClaim }
    this.types = itemTypes(world, this.items)
  }

  protected abstract settle(flight: InFlight, verdict: Verdict): void
  protected abstract finished(plan: Plan): void
  protected abstract wasIdle(): void
  protected abstract mayClaim(): boolean

  /** Does what can be done now. Called after everything that may have made something possible. */
  protected advance(): void {
    const atMs = this.world.clock.monotonicMs()
    if (this.phase !== 'running' || atMs < this.pausedUntilMs) return
    if (this.next === null && this.sweepDue) {
      this.sweepDue = false
      this.memory.sweep(this.world.clock.nowMs())
      this.fields.sweep(this.world.clock.nowMs())
    }
    if (this.next === null && this.queue.size > 0) {
      const works = this.queue.take(BATCH, atMs < this.fullUntilMs)
      if (works.length > 0) this.begin(works)
    }
    if (this.next !== null && !this.next.reading && this.mayDecide()) this.decide(this.next)
    if (this.inFlight === null && this.next === null && this.queue.size === 0) this.wasIdle()
  }

  /** Has `advance` called when this turn of the loop ends: what comes in together is decided together. */
  protected wake(): void {
    if (this.isWoken) return
    this.isWoken = true
    this.world.clock.after(0, () => {
      this.isWoken = false
      this.advance()
    })
  }

  /** Makes works the next batch and starts its reads. */
  protected begin(works: Work[], isClosed = false): void {
    this.fields.begin(this.world.clock.nowMs())
    this.next = { works, isClosed, rounds: new FactRounds(), reading: true }
    void this.gather(this.next, null)
  }

  /** Stops deciding for a while. */
  protected pause(ms: number): void {
    this.pausedUntilMs = this.world.clock.monotonicMs() + ms
    this.world.clock.after(ms + 1, () => this.advance())
  }

  /** The output gate: a batch is decided, and answered, when everything before it is confirmed. */
  protected mayDecide(): boolean {
    return this.inFlight === null
  }

  /** The confirmed commits that a batch's reads may not have seen, oldest first. */
  protected laidFor(_batch: Batch): readonly Laid[] {
    return this.laid
  }

  /** A plan is about to be sent. */
  protected sending(_plan: Plan): void {}

  protected batchContext(batch: Batch): BatchContext {
    return {
      items: this.items,
      memory: this.memory,
      entities: this.world.entities,
      ids: this.ids,
      nowMs: this.world.clock.nowMs(),
      seq: this.meta.seq + 1,
      view: (staged) => new FactView(batch.rounds, this.laidFor(batch), staged, this.knownFields()),
      threw: (work, error) => this.world.log.threw({ shard: this.id, name: work.type.name }, error),
    }
  }

  /** Fields that are remembered, as they are by the last confirmed commit. */
  protected knownFields(): KnownFields {
    return { seq: this.meta.seq, field: this.known, head: (key) => this.fields.head(key) }
  }

  /** The runtime's own work of a source: `claim`, `outcome`, `timer`, `free`, `index`. */
  protected own(source: Source, { lane, item, body }: { lane: string; item: string; body: unknown }): Work | null {
    const type = this.types.get(typeName(source, lane, item))
    if (type === undefined) return null
    const command = { name: type.name, cmdId: newCmdId(this.world.clock.nowMs(), this.world.random), body }
    return internalWork(source, type, { command, lane, item, cameAtMs: this.world.clock.monotonicMs() })
  }

  /** Puts a batch whose reads failed back and waits. What it had asked for was not read. */
  protected putBack(batch: Batch): void {
    this.next = null
    for (const work of batch.works) work.needs = 0
    this.queue.putBack(batch.works)
    this.pause(RETRY_MS)
  }

  /** Sends a commit; without an answer the same bytes again, until there is a verdict. */
  protected async send(flight: InFlight): Promise<void> {
    // In doubt, the same again past the store's memory bound: if it happened the answer is DUP, else it must have a verdict.
    const commit = flight.doubted ? { ...flight.commit, frees: true } : flight.commit
    this.world.fence.commitSent(this.id)
    const verdict = await this.world.store.commit(commit)
    if (this.inFlight !== flight) return
    const answered = verdict.kind !== 'lost' && verdict.kind !== 'unsent'
    if (answered) {
      this.world.fence.commitAnswered(this.id)
      this.world.answered()
    }
    const isNew = verdict.kind === 'lost' && !flight.doubted
    if (verdict.kind === 'lost') flight.doubted = true
    const again = flight.doubted && (verdict.kind === 'lost' || verdict.kind === 'unsent' || verdict.kind === 'refused')
    if (!again) return this.settle(flight, verdict)
    if (isNew) this.world.log.doubt({ shard: this.id, seq: flight.commit.seq })
    this.world.clock.after(RETRY_MS, () => {
      if (this.inFlight === flight) void this.send(flight)
    })
  }

  /** Reads what a batch asks for: first states, then facts; with `needs`, what its decisions still miss. */
  private async gather(batch: Batch, needs: readonly Need[] | null): Promise<void> {
    const asks = needs ?? batch.works.map((work) => guarded(work, statesOf) ?? {})
    const states = statesToLoad(asks, {
      shard: this.id,
      memory: this.memory,
      types: this.world.entities,
    })
    if (states !== null) {
      const values = await this.world.store.read(this.id, states.facts)
      if (this.next !== batch) return
      if (values === null) return this.putBack(batch)
      states.take(values, this.world.clock.nowMs())
    }
    const facts = new FactList()
    if (needs === null) this.factsOf(batch.works, facts)
    for (const need of needs ?? []) for (const fact of need.facts ?? []) this.addFact(fact, facts)
    if (!facts.empty && !(await this.readFacts(batch, facts.list()))) return
    batch.reading = false
    this.advance()
  }

  /** Reads facts into the batch; false when the batch is no longer the next one. */
  private async readFacts(batch: Batch, facts: readonly Fact[]): Promise<boolean> {
    const { seq } = this.meta
    const read = await this.world.store.read(this.id, facts)
    if (this.next !== batch) return false
    if (read === null) {
      this.putBack(batch)
      return false
    }
    this.world.answered()
    // A batch is decided before the one after it begins: more than one commit cannot have been confirmed meanwhile.
    const [laid] = this.laid
    if (this.meta.seq === seq) this.fields.take(facts, read)
    else if (laid?.seq === seq + 1) this.fields.take(facts, read, laid.overlay)
    batch.rounds.add(seq, facts, read)
    return true
  }

  /** What the works ask for and is not known yet. */
  private factsOf(works: readonly Work[], facts: FactList): void {
    const look = this.look()
    for (const work of works) for (const fact of askedFacts(work, look)) this.addFact(fact, facts)
  }

  /** What a behaviour sees while it says what to read. */
  private look(): Look {
    const turn: Context = { nowMs: this.world.clock.nowMs(), shard: this.id, newId: noIds }
    const states = new Draft(this.memory, this.world.entities, { nowMs: turn.nowMs, entryId: '' })
    return { turn, states, known: this.known }
  }

  private addFact(fact: Fact, facts: FactList): void {
    if (!this.fields.has(fact)) facts.add(fact)
  }

  /**
   * Takes along what has come since the batch began and needs no read. Behind a command of the mailbox that needs a read
   * all others wait, behind an outcome of another process all of the runtime's own work: cursors keep their order, and
   * nothing is claimed before the outcomes that lay there.
   */
  private topUp({ works }: Batch): void {
    const bytes = works.reduce((sum, work) => sum + work.bytes, 0)
    const left = { commandsMax: BATCH.commandsMax - works.length, bytesMax: BATCH.bytesMax - bytes }
    if (this.queue.size === 0 || left.commandsMax <= 0 || left.bytesMax <= 0) return
    const look = this.look()
    const later: Work[] = []
    let isMailboxBlocked = false
    let isOwnBlocked = false
    for (const work of this.queue.take(left, this.world.clock.monotonicMs() < this.fullUntilMs)) {
      const isBlocked = work.source === 'mailbox' ? isMailboxBlocked : isOwnBlocked && work.source !== 'local'
      if (!isBlocked && this.isKnown(work, look)) works.push(work)
      else {
        later.push(work)
        if (work.source === 'mailbox') isMailboxBlocked = true
        else isOwnBlocked ||= work.entryId !== ''
      }
    }
    if (later.length > 0) this.queue.putBack(later)
  }

  /** Whether all that a work asks for is in memory. */
  private isKnown(work: Work, look: Look): boolean {
    const asks = guarded(work, statesOf)
    if (asks !== null && !isLoaded(asks, this.memory)) return false
    for (const fact of askedFacts(work, look)) if (!this.fields.has(fact)) return false
    return true
  }

  private decide(batch: Batch): void {
    if (!batch.isClosed) this.topUp(batch)
    batch.works = batch.works.filter((work) => !this.isOver(work))
    if (batch.works.length === 0) {
      this.next = null
      return void this.advance()
    }
    const decided = decideBatch(batch.works, this.batchContext(batch))
    if (decided.kind === 'need') {
      batch.reading = true
      void this.gather(batch, decided.needs)
      return
    }
    this.next = null
    this.laid = []
    const { plan } = decided
    if (plan.ops.length === 0) this.finished(plan)
    else {
      this.sending(plan)
      const sentAtMs = this.world.clock.monotonicMs()
      this.inFlight = { plan, commit: this.commitOf(plan), sentAtMs, doubted: false, silenced: false }
      void this.send(this.inFlight)
    }
    this.advance()
  }

  /** An ask that was answered meanwhile, or whose time is over, takes part in no commit. */
  private isOver(work: Work): boolean {
    const past = work.deadlineMs > 0 && work.deadlineMs <= this.world.clock.nowMs()
    if (work.source === 'mailbox') work.late ||= past
    if (work.source !== 'local') return false
    if (work.answer !== null && !past) return false
    answerWork(work, { kind: 'unavailable' })
    return true
  }

  private commitOf(plan: Plan): Commit {
    this.commits += 1
    const deadlines = plan.works.filter(({ deadlineMs, late }) => deadlineMs > 0 && !late)
    return {
      shard: this.id,
      token: this.meta.token,
      seq: this.meta.seq,
      commitId: `${this.meta.token}:${this.commits}`,
      nowMs: this.world.clock.nowMs(),
      deadlineMs: deadlines.reduce(
        (least, { deadlineMs }) => (least === 0 ? deadlineMs : Math.min(least, deadlineMs)),
        0,
      ),
      lid: plan.lid,
      firstEntryId: plan.firstId === '' ? '' : sortableEntryId(entryIdOf(plan.firstId)),
      cursor: plan.cursor,
      outcomesCursor: plan.outcomesCursor,
      // One that is late only has the cursor pass it.
      frees: plan.works.every(({ type, late }) => late || type.frees === true),
      note: `works=${plan.works.length} ops=${plan.ops.length}`,
      ops: plan.ops,
      merged: plan.overlay.merged,
      told: plan.told,
    }
  }
}

/** Facts that a work asks for; none where its behaviour threw, or it is not executed. */
function askedFacts(work: Work, { turn, states, known }: Look): readonly Fact[] {
  if (work.late) return []
  return guarded(work, ({ type, command }) => type.facts(command.body, states, turn, known)) ?? []
}

function statesOf({ type, command, late }: Work): StateAsk {
  return late ? {} : { entities: type.entities(command.body), counters: type.counters(command.body) }
}

/** What `name` says a work reads; null when the behaviour threw: its turn will end with that. */
function guarded<Value>(work: Work, name: (work: Work) => Value): Value | null {
  try {
    return name(work)
  } catch (error) {
    work.broken ??= error instanceof Error ? error : new Fault('A behaviour threw what is no error')
    return null
  }
}

function itemTypes(world: ShardWorld, items: ItemContext): ReadonlyMap<string, CommandType> {
  const types = new Map<string, CommandType>()
  const add = (name: string, type: CommandType<never, unknown>): void => {
    types.set(name, type as unknown as CommandType)
  }
  for (const lane of world.lanes) {
    add(`claim ${lane.prefix}`, claimType(lane, items))
    add(`outcome ${lane.prefix}`, outcomeType(lane, items))
  }
  for (const [name, type] of Object.entries(world.timers)) add(`timer ${name}`, timerType(type, items))
  add('free', freeType(items))
  add('index', indexType())
  return types
}

function typeName(source: Source, lane: string, item: string): string {
  if (source === 'timer') return `timer ${item.slice(0, item.indexOf(':'))}`
  if (source === 'claim' || source === 'outcome') return `${source} ${laneFamily(lane)}`
  return source
}

function noIds(): string {
  throw new Fault('Facts are named before ids are given')
}
