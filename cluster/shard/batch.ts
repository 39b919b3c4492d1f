/**
 * batch - the turns of one commit: decides command after command and gathers their writes.
 *
 * A turn is all or nothing: the orders of a decision are staged only when the decision is complete, so one that
 * refuses, needs more or throws has no effect. Later turns see the staged state of earlier ones.
 */
import type { Decision, Due, Facts, HashFields, Need, Note, Op, OutcomeBody, Signal, Staged } from '../behaviour.ts'
import { Draft, type EntityTable, type Memory } from '../facts/memory.ts'
import { Overlay } from '../facts/overlay.ts'
import { Fault } from '../fault.ts'
import type { IdMaker } from '../id.ts'
import {
  CLAIMS_MAX,
  type ClaimRow,
  claimOps,
  formatClaim,
  formatWaiting,
  type ItemContext,
  parseClaim,
} from '../items/claim.ts'
import type { LaneTime, Placed } from '../items/lane-index.ts'
import type { Claim } from '../items/lane-runner.ts'
import { claimsKey, countersKey, dueKey, entityKey, inboxKey, laneKey, stagedKey, TIMERS_LANE } from '../keyspace.ts'
import { cursorAfter, firstKept } from '../mailbox/cursor.ts'
import { ParcelReplies } from '../mailbox/replies.ts'
import { packStaged } from '../mailbox/staged.ts'
import { DamagedValue, withSum } from '../sum.ts'
import { type Failed, stagedOf, type Work } from '../work.ts'
import { PlacedLanes } from './placed-lanes.ts'
import { keepSaidOps, threwOps } from './poison.ts'

/**
 * Maximum rounds of reading for one decision, because the facts of a round may name those of the next (an outcome that
 * suppresses an address and sends events takes five).
 */
const NEEDS_MAX = 8
/** A timer whose behaviour threw is tried again after this. */
const TIMER_AGAIN_MS = 3_600_000

/** The state against which a batch is decided. */
export interface BatchContext {
  readonly items: ItemContext
  readonly memory: Memory
  readonly entities: EntityTable
  readonly ids: IdMaker
  readonly nowMs: number
  /** The sequence number that the commit will make. */
  readonly seq: number
  view(staged: Overlay): Facts
  /** Called for a behaviour that threw. */
  threw(work: Work, error: unknown): void
}

/** A decided batch. */
export interface Plan {
  readonly works: readonly Work[]
  readonly replies: readonly { readonly work: Work; readonly reply: unknown; readonly fault: Failed | null }[]
  readonly ops: readonly Op[]
  /** Keys known to be missing before the writes of the commit. */
  readonly absent: readonly HashFields[]
  /** State that may be evicted once this is confirmed. */
  readonly forgets: readonly HashFields[]
  readonly draft: Draft
  readonly overlay: Overlay
  readonly claims: readonly Claim[]
  readonly signals: readonly Signal[]
  readonly notes: readonly Note[]
  /** Lanes that it puts items into, each once. */
  readonly placed: readonly Placed[]
  /** Lanes whose lower bound in the store becomes exactly this; Infinity: it goes. */
  readonly indexed: readonly LaneTime[]
  /** Where mailbox and outcomes are read on; '' leaves it. */
  readonly cursor: string
  readonly outcomesCursor: string
  /** Replies for other processes, by worker, one line for each parcel. */
  readonly told: ReadonlyMap<string, string>
  readonly firstId: string
  readonly lid: string
}

export type Decided =
  | { readonly kind: 'plan'; readonly plan: Plan }
  | { readonly kind: 'need'; readonly needs: readonly Need[] }

/** Decides all works in order. Claims are reserved in the runner: `discardPlan` gives them back. */
export function decideBatch(works: readonly Work[], context: BatchContext): Decided {
  const builder = new PlanBuilder(context)
  const needs: Need[] = []
  for (const work of works) {
    const decision = decideWork(work, builder, context)
    if (decision.kind === 'need') {
      work.needs += 1
      needs.push(decision)
    } else builder.stage(work, decision)
  }
  if (needs.length === 0) return { kind: 'plan', plan: builder.finish(works) }
  builder.giveBack()
  return { kind: 'need', needs }
}

/** Returns the reservations of a plan that will not be committed. */
export function discardPlan(plan: Plan, context: ItemContext): void {
  for (const claim of plan.claims) context.runner.release(claim.lane)
}

function decideWork(work: Work, builder: PlanBuilder, context: BatchContext): Decision<unknown> {
  try {
    return builder.checked(work, decideOnce(work, work.command.body, builder))
  } catch (error) {
    context.threw(work, error)
    return decideInstead(work, builder, { context, fault: error instanceof DamagedValue ? DAMAGED : FAULT })
  }
}

function decideOnce(work: Work, body: unknown, builder: PlanBuilder): Decision<unknown> {
  if (work.late) return { kind: 'done', reply: work.source === 'mailbox' ? LATE : null }
  if (work.broken !== null) throw work.broken
  const decision = work.type.decide(body, builder.draft, builder.facts, builder.turn, work.command)
  if (decision.kind === 'need' && work.needs >= NEEDS_MAX)
    throw new Fault('Decision needs facts without end', { name: work.type.name })
  return decision
}

/**
 * The decision for a work whose behaviour threw: it answers an ask with a fault, ends an item, or postpones a timer.
 */
function decideInstead(work: Work, builder: PlanBuilder, { context, fault }: Instead): Decision<unknown> {
  const { shard } = context.items
  const id = work.item === '' ? work.command.cmdId : work.item
  const ops = threwOps(shard, { name: work.type.name, id, seq: context.seq })
  const { lane, item } = work
  if (work.source === 'timer')
    return { kind: 'done', reply: fault, ops, due: [{ lane, item, atMs: context.nowMs + TIMER_AGAIN_MS }] }
  if (work.source === 'outcome') return abandonOutcome(work, builder, { ops, context })
  if (work.source !== 'claim') return { kind: 'done', reply: fault, ops }
  const row = work.broken === null ? parseClaim(builder.facts.field(claimsKey(shard), item)) : null
  if (work.broken !== null || (row !== null && row.claims >= CLAIMS_MAX))
    return { kind: 'done', reply: fault, ops, done: [{ lane, item }] }
  const last: ClaimRow = { worker: '', lane, attempt: row?.attempt ?? 0, untilMs: 0, claims: CLAIMS_MAX }
  const spent: Op = { key: claimsKey(shard), write: 'HSET', args: [item, formatClaim(last)] }
  return { kind: 'done', reply: fault, ops: [...ops, spent] }
}

/**
 * If the behaviour of an outcome threw, the same behaviour ends the item; if that throws too, the item is just
 * removed.
 */
function abandonOutcome(
  work: Work,
  builder: PlanBuilder,
  { ops, context }: { ops: readonly Op[]; context: BatchContext },
): Decision<unknown> {
  const leaves: Decision<unknown> = { kind: 'done', reply: FAULT, ops, done: [{ lane: work.lane, item: work.item }] }
  const body = work.command.body as OutcomeBody
  if (body.outcome === null || work.broken !== null) return leaves
  try {
    const ended = builder.checked(work, decideOnce(work, { ...body, outcome: null }, builder))
    // The next item of a serial lane may need more.
    if (ended.kind === 'need') return ended
    if (ended.kind !== 'done') return leaves
    return { ...ended, ops: [...(ended.ops ?? []), ...ops] }
  } catch (error) {
    context.threw(work, error)
    return leaves
  }
}

type Instead = { readonly context: BatchContext; readonly fault: Failed }
const FAULT: Failed = { kind: 'fault' }
const DAMAGED: Failed = { kind: 'fault', isDamaged: true }
const LATE = Symbol('late')

class PlanBuilder {
  readonly draft: Draft
  readonly overlay: Overlay
  readonly facts: Facts
  readonly turn: { nowMs: number; shard: number; newId(): string }
  private readonly context: BatchContext
  private readonly ops: Op[] = []
  private readonly absent: HashFields[] = []
  private readonly forgets: HashFields[] = []
  private readonly claims: Claim[] = []
  private readonly signals: Signal[] = []
  private readonly notes: Note[] = []
  private readonly placed: PlacedLanes
  private readonly replies: { work: Work; reply: unknown; fault: Failed | null }[] = []
  private readonly entryCounts = new Map<string, number>()
  private readonly indexed = new Set<string>()
  private firstId = ''
  private lastId = ''
  private readonly cursors = { mailbox: '', outcomes: '' }
  private readonly parcels = new ParcelReplies()

  constructor(context: BatchContext) {
    this.context = context
    this.overlay = new Overlay(context.nowMs)
    this.placed = new PlacedLanes(context.items)
    this.draft = new Draft(context.memory, context.entities, { nowMs: context.nowMs, entryId: `${context.seq}-0` })
    this.facts = context.view(this.overlay)
    this.turn = {
      nowMs: context.nowMs,
      shard: context.items.shard,
      newId: () => {
        const id = context.ids.next(context.nowMs)
        if (this.firstId === '') this.firstId = id
        this.lastId = id
        return id
      },
    }
  }

  /**
   * The decision, unless staging it would throw because of an unknown kind of entity or an event that does not apply.
   */
  checked(work: Work, decision: Decision<unknown>): Decision<unknown> {
    const { events } = stagedOf(decision)
    if (events !== undefined && events.length > 0) {
      const trial = new Draft(this.context.memory, this.context.entities, { nowMs: this.turn.nowMs, entryId: '' })
      for (const [name, changed] of this.draft.entities) trial.entities.set(name, changed)
      trial.apply(events, work.command.name)
    }
    return decision
  }

  stage(work: Work, decision: Decision<unknown>): void {
    this.take(stagedOf(decision), work.command.name)
    const answer = decision.kind === 'refuse' ? decision.answer : decision.kind === 'done' ? decision.reply : null
    const fault = answer === FAULT || answer === DAMAGED ? (answer as Failed) : null
    const isOfItem = work.source === 'claim' || work.source === 'outcome'
    if (isOfItem && fault === null && answer !== null) this.claim(answer as Claim)
    if (work.source === 'index') this.indexed.add(work.lane)
    this.replyToParcel(work, answer, fault)
    if (work.entryId !== '') this.consume(work, fault)
    this.replies.push({ work, reply: fault === null ? answer : null, fault })
  }

  private take(staged: Staged, by: string): void {
    const { events = [], counters = [], ops = [], signals = [], notes = [] } = staged
    const { done = [], forgets = [], due = [], absent = [] } = staged
    if (events.length > 0) this.draft.apply(events, by)
    for (const { owner, value } of counters) this.draft.counters.set(owner, value)
    for (const op of ops) this.push(op)
    for (const signal of signals) this.signals.push(signal)
    for (const note of notes) this.notes.push(note)
    for (const { lane, item } of done) this.leave(lane, item)
    for (const fields of forgets) this.forgets.push(fields)
    const claims = this.claims.length
    for (const one of due) this.place(one)
    // Worth remembering only if an item is performed at once: then its outcome asks for these fields soon.
    if (this.claims.length > claims) for (const fields of absent) this.absent.push(fields)
  }

  private replyToParcel({ origin, place, type }: Work, answer: unknown, fault: Failed | null): void {
    if (origin === null || origin.replyTo === '') return
    if (fault !== null) this.parcels.add(origin, place, fault)
    else if (answer === LATE) this.parcels.add(origin, place, { kind: 'unavailable' })
    else this.parcels.add(origin, place, { kind: 'answer', reply: type.wire ? type.wire.packReply(answer) : answer })
  }

  finish(works: readonly Work[]): Plan {
    for (const { ref, events, state, by } of this.draft.entities.values()) {
      const key = entityKey(this.context.items.shard, ref.kind, ref.id)
      const version = String(this.context.entities.get(ref.kind)?.version ?? 0)
      const fields = ['ev', JSON.stringify(events), 'st', withSum(JSON.stringify(state)), 'v', version, 'by', by]
      this.push({ key, write: 'XADD', args: [this.draft.entryId, ...fields] })
      const kept = this.context.memory.entriesAfter(ref, this.draft.entryId)
      if (kept.length >= 16) this.push({ key, write: 'XTRIM', args: ['MINID', kept[0]!] })
    }
    if (this.draft.counters.size > 0) {
      const key = countersKey(this.context.items.shard)
      const args: string[] = []
      const ended: string[] = []
      for (const [owner, value] of this.draft.counters) {
        if (value === null) ended.push(owner)
        else args.push(owner, withSum(JSON.stringify(value)))
      }
      if (args.length > 0) this.push({ key, write: 'HSET', args })
      if (ended.length > 0) this.push({ key, write: 'HDEL', args: ended })
    }
    for (const of of ['mailbox', 'outcomes'] as const) {
      if (this.cursors[of] === '') continue
      const key = inboxKey(this.context.items.shard, of)
      this.push({ key, write: 'XTRIM', args: ['MINID', firstKept(this.cursors[of])] })
    }
    for (const op of this.parcels.close(this.context.items.shard, this.turn.nowMs)) this.push(op)
    const indexed = [...this.indexed].map((lane) => this.correct(lane))
    return {
      works,
      replies: this.replies,
      ops: this.ops,
      absent: this.absent,
      forgets: this.forgets,
      draft: this.draft,
      overlay: this.overlay,
      claims: this.claims,
      signals: this.signals,
      notes: this.notes,
      placed: this.placed.list(),
      indexed,
      cursor: this.cursors.mailbox,
      outcomesCursor: this.cursors.outcomes,
      told: this.parcels.told,
      firstId: this.firstId,
      lid: this.lastId,
    }
  }

  giveBack(): void {
    for (const claim of this.claims) this.context.items.runner.release(claim.lane)
  }

  private push(op: Op): void {
    const final = op.write === 'XADD' && op.args[0] === '*seq' ? this.numbered(op) : op
    this.ops.push(final)
    this.overlay.note(final)
  }

  private numbered(op: Op): Op {
    const count = this.entryCounts.get(op.key) ?? 0
    this.entryCounts.set(op.key, count + 1)
    return { key: op.key, write: op.write, args: [`${this.context.seq}-${count}`, ...op.args.slice(1)] }
  }

  private leave(lane: string, item: string): void {
    const { shard } = this.context.items
    this.push({ key: laneKey(shard, lane), write: 'ZREM', args: [item] })
    if (lane === TIMERS_LANE) return
    const key = claimsKey(shard)
    this.push({ key, write: 'HDEL', args: [item] })
    this.forgets.push({ key, fields: [item] })
    const at = this.claims.findIndex((claim) => claim.lane === lane && claim.item === item)
    if (at < 0) return
    this.claims.splice(at, 1) // A later turn of the batch ended it: it is not performed.
    this.context.items.runner.release(lane)
  }

  private place(due: Due): void {
    const { runner, worker, shard } = this.context.items
    const { lane, item, atMs } = due
    const placed = this.placed.at(lane)
    const type = due.job === undefined || atMs > this.turn.nowMs ? undefined : placed.type
    if (type !== undefined && runner.room(lane) > 0) {
      const untilMs = this.turn.nowMs + type.holdMs
      const row: ClaimRow = { worker, lane, attempt: 1, untilMs, claims: 1 }
      for (const op of claimOps(this.context.items, { lane, item, row, fresh: true })) this.push(op)
      // Its outcome asks for the row, which is then known from this write.
      this.absent.push({ key: claimsKey(shard), fields: [item] })
      this.claim({ lane, item, attempt: 1, job: due.job })
      this.bound(lane, untilMs)
      return
    }
    this.push({ key: placed.key, write: 'ZADD', args: [String(atMs), item] })
    if (due.attempts)
      this.push({ key: claimsKey(shard), write: 'HSET', args: [item, formatWaiting({ lane, attempt: due.attempts })] })
    this.bound(lane, atMs)
  }

  private claim(claim: Claim): void {
    this.context.items.runner.reserve(claim.lane)
    this.claims.push(claim)
  }

  /** Lowers the store's lower bound of a lane if it is not low enough. */
  private bound(lane: string, atMs: number): void {
    if (!this.placed.put(lane, atMs)) return
    this.push({ key: dueKey(this.context.items.shard), write: 'ZADD', args: ['LT', String(atMs), lane] })
  }

  /** Sets the store's lower bound of a lane to the known one, including the items that this batch places. */
  private correct(lane: string): LaneTime {
    const { lanes, shard } = this.context.items
    const atMs = Math.min(this.placed.at(lane).atMs, lanes.earliestMs(lane))
    const key = dueKey(shard)
    if (atMs === Number.POSITIVE_INFINITY) this.push({ key, write: 'ZREM', args: [lane] })
    else this.push({ key, write: 'ZADD', args: [String(atMs), lane] })
    return { lane, atMs }
  }

  /**
   * A command of another process is executed. The cursor passes it. The content of an entry is removed with its last
   * command; commands whose behaviour threw are kept, unless the store was damaged: their callers can repeat them.
   */
  private consume({ source, entryId, command, origin, place, late, broken }: Work, fault: Failed | null): void {
    const { shard } = this.context.items
    const own = stagedKey(shard, command.cmdId)
    const isBorne = fault !== FAULT || late || broken !== null
    if (source !== 'mailbox' || origin === null) {
      this.cursors.outcomes = entryId
      if (fault === null) this.push({ key: own, write: 'UNLINK', args: [] })
      else if (!isBorne)
        for (const op of keepSaidOps(shard, command.cmdId, { nowMs: this.turn.nowMs, said: null })) this.push(op)
      return
    }
    this.cursors.mailbox = cursorAfter(entryId, place, origin.count)
    if (!isBorne)
      for (const op of keepSaidOps(shard, command.cmdId, { nowMs: this.turn.nowMs, said: packStaged(command) }))
        this.push(op)
    if (place + 1 === origin.count) this.push({ key: stagedKey(shard, origin.parcelId), write: 'UNLINK', args: [] })
  }
}
