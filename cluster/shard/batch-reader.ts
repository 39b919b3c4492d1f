/**
 * batch-reader - reads the facts that a batch needs, except those already known.
 *
 * Guarantees that facts are kept only in their state after the last confirmed commit; an answer for a batch that is no
 * longer the next one is dropped.
 */
import type { Context, Fact, Known, Need } from '../behaviour.ts'
import { FactList, FactRounds, type KnownFields, type Laid } from '../facts/facts.ts'
import { KnownFacts } from '../facts/known-facts.ts'
import { Draft, Memory } from '../facts/memory.ts'
import { isLoaded, type StateAsk, statesToLoad } from '../facts/state-loader.ts'
import { Fault } from '../fault.ts'
import type { Work } from '../work.ts'
import type { WorkQueue } from './work-queue.ts'
import type { ShardWorld } from './world.ts'

/** Bounds of one commit. */
export const BATCH = { commandsMax: 64, bytesMax: 524_288 }

/** Works that are decided together, and the facts read for them. */
export interface Batch {
  works: Work[]
  /** Nothing that comes later joins it: it looks for the command that the store refuses. */
  readonly isClosed: boolean
  readonly rounds: FactRounds
  reading: boolean
}

interface ReaderDeps {
  readonly shard: number
  /** Whether the batch is still the next one. */
  readonly isNext: (batch: Batch) => boolean
  /** The last confirmed commit, and the confirmed commits that a read may not have seen, oldest first. */
  readonly confirmed: () => { readonly seq: number; readonly laid: readonly Laid[] }
  /** Everything requested has been read. */
  readonly ready: () => void
  /** The store did not answer. */
  readonly failed: (batch: Batch) => void
}

/** The view of a behaviour while it names its facts. */
interface Look {
  readonly turn: Context
  readonly states: Draft
  readonly known: Known
}

export class BatchReader {
  readonly memory = new Memory()
  readonly fields: KnownFacts
  private readonly world: ShardWorld
  private readonly deps: ReaderDeps
  private readonly known: Known = (key, field) => this.fields.field(key, field)

  constructor(world: ShardWorld, deps: ReaderDeps) {
    this.world = world
    this.deps = deps
    this.fields = new KnownFacts(world.fieldBudget)
  }

  /** Makes works a batch and starts its reads. Call `gather` with it once it is the next one. */
  begin(works: Work[], isClosed: boolean): Batch {
    this.fields.begin(this.world.clock.nowMs())
    return { works, isClosed, rounds: new FactRounds(), reading: true }
  }

  /** Evicts facts that were not used for a while, at a moment when no batch depends on them. */
  sweep(): void {
    this.memory.sweep(this.world.clock.nowMs())
    this.fields.sweep(this.world.clock.nowMs())
  }

  /** Cached fields, in their state after the confirmed commit `seq`. */
  knownFields(seq: number): KnownFields {
    return { seq, field: this.known, head: (key) => this.fields.head(key) }
  }

  /**
   * Reads the data that a batch needs: first states, then facts; with `needs`, the facts that its decisions still
   * miss.
   */
  async gather(batch: Batch, needs: readonly Need[] | null): Promise<void> {
    const { shard, isNext, failed, ready } = this.deps
    const asks = needs ?? batch.works.map((work) => guarded(work, statesOf) ?? {})
    const states = statesToLoad(asks, { shard, memory: this.memory, types: this.world.entities })
    if (states !== null) {
      const values = await this.world.store.read(shard, states.facts)
      if (!isNext(batch)) return
      if (values === null) return void failed(batch)
      states.take(values, this.world.clock.nowMs())
    }
    const facts = new FactList()
    if (needs === null) this.factsOf(batch.works, facts)
    for (const need of needs ?? []) for (const fact of need.facts ?? []) this.addFact(fact, facts)
    if (!facts.empty && !(await this.readFacts(batch, facts.list()))) return
    batch.reading = false
    ready()
  }

  /**
   * Adds work that has come since the batch began and needs no read. A mailbox command that needs a read holds back all
   * later ones, and an outcome of another process holds back the runtime's own work: cursors keep their order, and
   * nothing is claimed before the earlier outcomes. With `freesOnly`, only work that finishes or frees something.
   */
  topUp({ works }: Batch, queue: WorkQueue, freesOnly: boolean): void {
    const bytes = works.reduce((sum, work) => sum + work.bytes, 0)
    const left = { commandsMax: BATCH.commandsMax - works.length, bytesMax: BATCH.bytesMax - bytes }
    if (queue.size === 0 || left.commandsMax <= 0 || left.bytesMax <= 0) return
    const look = this.look()
    const later: Work[] = []
    let isMailboxBlocked = false
    let isOwnBlocked = false
    for (const work of queue.take(left, freesOnly)) {
      const isBlocked = work.source === 'mailbox' ? isMailboxBlocked : isOwnBlocked && work.source !== 'local'
      if (!isBlocked && this.isKnown(work, look)) works.push(work)
      else {
        later.push(work)
        if (work.source === 'mailbox') isMailboxBlocked = true
        else isOwnBlocked ||= work.entryId !== ''
      }
    }
    if (later.length > 0) queue.putBack(later)
  }

  /** Reads facts into the batch; false when the batch is no longer the next one. */
  private async readFacts(batch: Batch, facts: readonly Fact[]): Promise<boolean> {
    const { shard, isNext, confirmed, failed } = this.deps
    const { seq } = confirmed()
    const read = await this.world.store.read(shard, facts)
    if (!isNext(batch)) return false
    if (read === null) {
      failed(batch)
      return false
    }
    this.world.answered()
    // A batch is decided before the one after it begins: so at most one commit can have been confirmed in the meantime.
    const now = confirmed()
    const [laid] = now.laid
    if (now.seq === seq) this.fields.take(facts, read)
    else if (laid?.seq === seq + 1) this.fields.take(facts, read, laid.overlay)
    batch.rounds.add(seq, facts, read)
    return true
  }

  /** Requested facts that are not known yet. */
  private factsOf(works: readonly Work[], facts: FactList): void {
    const look = this.look()
    for (const work of works) for (const fact of askedFacts(work, look)) this.addFact(fact, facts)
  }

  private look(): Look {
    const turn: Context = { nowMs: this.world.clock.nowMs(), shard: this.deps.shard, newId: noIds }
    const states = new Draft(this.memory, this.world.entities, { nowMs: turn.nowMs, entryId: '' })
    return { turn, states, known: this.known }
  }

  private addFact(fact: Fact, facts: FactList): void {
    if (!this.fields.has(fact)) facts.add(fact)
  }

  /** Whether all that a work asks for is in memory. */
  private isKnown(work: Work, look: Look): boolean {
    const asks = guarded(work, statesOf)
    if (asks !== null && !isLoaded(asks, this.memory)) return false
    for (const fact of askedFacts(work, look)) if (!this.fields.has(fact)) return false
    return true
  }
}

/** Facts that a work asks for; none if its behaviour threw, or it is not executed. */
function askedFacts(work: Work, { turn, states, known }: Look): readonly Fact[] {
  if (work.late) return []
  return guarded(work, ({ type, command }) => type.facts(command.body, states, turn, known)) ?? []
}

function statesOf({ type, command, late }: Work): StateAsk {
  return late ? {} : { entities: type.entities(command.body), counters: type.counters(command.body) }
}

/** The facts that a work names; null if the behaviour threw, which ends its turn. */
function guarded<Value>(work: Work, name: (work: Work) => Value): Value | null {
  try {
    return name(work)
  } catch (error) {
    work.broken ??= error instanceof Error ? error : new Fault('A behaviour threw what is no error')
    return null
  }
}

function noIds(): string {
  throw new Fault('Facts are named before ids are given')
}
