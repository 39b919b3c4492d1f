/**
 * item-turns - the runtime's own commands around the items of a lane: claim, outcome, timer, free, index.
 *
 * States of an item: waiting (in its lane, score = due time), claimed (score = end of the attempt, a row in `claims`),
 * gone. A claim moves the score and writes the row in one commit; the outcome removes both or makes the item wait
 * again.
 *
 * Guarantees: a finished item is never revived (the claim checks the score itself, and writes it with XX); five claims
 * without an outcome end the item by the behaviour's own `outcome` with null; an outcome of an attempt that is not the
 * latest is marked as such, and so is a repeated one.
 */
import type {
  Command,
  CommandType,
  Context,
  Decision,
  Done,
  Fact,
  Facts,
  LaneType,
  Op,
  OutcomeBody,
  PrepareBody,
  Staged,
  States,
  TimerBody,
} from '../behaviour.ts'
import { laneHead } from '../facts/lane-heads.ts'
import { claimsKey, laneKey, poisonKey, TIMERS_LANE } from '../keyspace.ts'
import {
  CLAIMS_MAX,
  type ClaimRow,
  claimFact,
  findDue,
  formatWaiting,
  type ItemContext,
  isHeld,
  type LaneItem,
  makeClaim,
  parseClaim,
} from './claim.ts'
import type { FreedItem } from './dead-claims.ts'
import type { Claim } from './lane-runner.ts'
import { withNext } from './next-claim.ts'

/** The command that claims an item of `lane`; its reply is the claim to perform, or null. */
export function claimType(lane: LaneType, context: ItemContext): CommandType<PrepareBody, Claim | null> {
  return {
    name: `claim ${lane.prefix}`,
    frees: true,
    entities: (body) => lane.prepare.entities(body),
    counters: (body) => lane.prepare.counters(body),
    facts: (body, states, turn) => [
      ...itemFacts(context.shard, body),
      ...(lane.serial === true ? [laneHead(context.shard, body.lane)] : []),
      ...lane.prepare.facts(body, states, turn),
    ],
    decide(body, states, facts, turn, command) {
      const score = facts.score(laneKey(context.shard, body.lane), body.item)
      if (!context.rules.stillDue(score, turn.nowMs) || isHeld(context, body.lane, turn.nowMs)) return nothing(null)
      const passed = lane.serial === true ? endIfLater(body, { facts, context, nowMs: turn.nowMs }) : null
      if (passed !== null) return passed
      const untilMs = turn.nowMs + lane.holdMs
      if (context.runner.performing(body.item))
        return { kind: 'done', reply: null, ops: [stillHeld(context, body, untilMs)] }
      const row = parseClaim(facts.field(claimsKey(context.shard), body.item))
      if (row !== null && row.claims >= CLAIMS_MAX) {
        return abandon(lane, { body, row, context }, { states, facts, turn, command })
      }
      const prepared = lane.prepare.decide(body, states, facts, turn, command)
      if (prepared.kind === 'need') return prepared
      if (prepared.kind === 'refuse' || prepared.reply === null) return leaves(stagedOf(prepared), body)
      if (context.runner.room(body.lane) <= 0) return nothing(null)
      const { claim, ops } = makeClaim(context, body, { row, untilMs, job: prepared.reply })
      return { ...stagedOf(prepared), kind: 'done', reply: claim, ops: [...(prepared.ops ?? []), ...ops] }
    },
  }
}

/**
 * The end of a claim in a serial lane whose head is not read or whose first due item is another one, otherwise null.
 */
function endIfLater(
  { lane, item }: LaneItem,
  { facts, context, nowMs }: { facts: Facts; context: ItemContext; nowMs: number },
): Decision<null> | null {
  const head = laneHead(context.shard, lane)
  if (!facts.has(head)) return { kind: 'need', facts: [head] }
  // The item was found some time ago: another one may be due before it by now.
  return findDue(facts.sorted(head), { context, nowMs })[0] === item ? null : nothing(null)
}

/** An attempt has ended. If the lane was held by it, the lane is free. */
function letGo({ standing }: ItemContext, { lane, item, attempt }: OutcomeBody): void {
  const held = standing.get(lane)
  if (held === undefined) return
  const left = held.filter((one) => one.item !== item || one.attempt !== attempt)
  if (left.length === 0) standing.delete(lane)
  else if (left.length < held.length) standing.set(lane, left)
}

/** The command that records how an attempt ended; in a serial lane its reply is the next claim, or null. */
export function outcomeType(lane: LaneType, context: ItemContext): CommandType<OutcomeBody, Claim | null> {
  const ended = makeOutcomeCommand(lane, context)
  if (lane.serial !== true) return ended
  return {
    ...ended,
    entities: (body) => [...ended.entities(body), ...lane.prepare.entities(body)],
    counters: (body) => [...ended.counters(body), ...lane.prepare.counters(body)],
    facts: (body, states, turn) => [...ended.facts(body, states, turn), laneHead(context.shard, body.lane)],
    decide(body, states, facts, turn, command) {
      const decision = ended.decide(body, states, facts, turn, command)
      letGo(context, body)
      return decision.kind === 'done' ? withNext(decision, { lane, body, context }, { states, facts, turn }) : decision
    },
  }
}

function makeOutcomeCommand(lane: LaneType, context: ItemContext): CommandType<OutcomeBody, null> {
  return {
    name: `outcome ${lane.prefix}`,
    frees: true,
    entities: (body) => lane.outcome.entities(body),
    counters: (body) => lane.outcome.counters(body),
    facts: (body, states, turn) => [claimFact(context.shard, body), ...lane.outcome.facts(body, states, turn)],
    decide(body, states, facts, turn, command) {
      const row = parseClaim(facts.field(claimsKey(context.shard), body.item))
      const current = row !== null && context.rules.isCurrent(row, body.attempt)
      const decision = lane.outcome.decide({ ...body, current }, states, facts, turn, command)
      if (decision.kind === 'need') return decision
      const staged = stagedOf(decision)
      const again = staged.due?.some((due) => due.item === body.item && due.lane === body.lane) === true
      if (again && row !== null) {
        const kept: Op = { key: claimsKey(context.shard), write: 'HSET', args: [body.item, formatWaiting(row)] }
        return { ...staged, kind: 'done', reply: null, ops: [...(staged.ops ?? []), kept] }
      }
      const ends = current || staged.done?.some((done) => done.item === body.item) === true
      return ends ? leaves(staged, body) : { ...staged, kind: 'done', reply: null }
    },
  }
}

/** The command that fires a timer; the item leaves unless the decision makes it due again. */
export function timerType(type: CommandType<TimerBody>, context: ItemContext): CommandType<TimerBody, null> {
  const laneItem = (body: TimerBody): LaneItem => ({ lane: TIMERS_LANE, item: body.item })
  return {
    name: `timer ${type.name}`,
    frees: type.frees ?? false,
    entities: (body) => type.entities(body),
    counters: (body) => type.counters(body),
    facts: (body, states, turn) => [scoreFact(context.shard, laneItem(body)), ...type.facts(body, states, turn)],
    decide(body, states, facts, turn, command) {
      const score = facts.score(laneKey(context.shard, TIMERS_LANE), body.item)
      if (!context.rules.stillDue(score, turn.nowMs)) return nothing(null)
      const decision = type.decide(body, states, facts, turn, command)
      if (decision.kind === 'need') return decision
      const staged = stagedOf(decision)
      if (staged.due?.some((due) => due.item === body.item && due.lane === TIMERS_LANE))
        return { ...staged, kind: 'done', reply: null }
      return leaves(staged, laneItem(body))
    },
  }
}

/** The command that brings items claimed by dead workers forward, and never later than they would be due anyway. */
export function freeType(context: ItemContext): CommandType<{ items: readonly FreedItem[] }, null> {
  return {
    name: 'free',
    frees: true,
    entities: () => [],
    counters: () => [],
    facts: (body) => body.items.flatMap((laneItem) => itemFacts(context.shard, laneItem)),
    decide(body, _states, facts, turn) {
      const due = body.items
        .filter(({ lane, item, worker, afterMs }) => {
          // An outcome may have come since the claim was found.
          if (parseClaim(facts.field(claimsKey(context.shard), item))?.worker !== worker) return false
          return (facts.score(laneKey(context.shard, lane), item) ?? 0) > turn.nowMs + afterMs
        })
        .map(({ lane, item, afterMs }) => ({ lane, item, atMs: turn.nowMs + afterMs }))
      return { kind: 'done', reply: null, due }
    },
  }
}

/**
 * The command that corrects the store's lower bound of a lane. The batch writes it once all items that it places are
 * known.
 */
export function indexType(): CommandType<{ lane: string }, null> {
  return {
    name: 'index',
    frees: true,
    entities: () => [],
    counters: () => [],
    facts: () => [],
    decide: () => nothing(null),
  }
}

/** Ends an item by the behaviour's own outcome with null, and shows it in poison. */
function abandon(
  lane: LaneType,
  { body, row, context }: { body: PrepareBody; row: ClaimRow; context: ItemContext },
  turn: { states: States; facts: Facts; turn: Context; command: Command },
): Decision<null> {
  const outcome: OutcomeBody = { ...body, attempt: row.attempt, current: true, outcome: null }
  const entities = lane.outcome.entities(outcome).filter((ref) => !turn.states.has(ref))
  const counters = lane.outcome.counters(outcome).filter((owner) => !turn.states.hasCounter(owner))
  if (entities.length > 0 || counters.length > 0) return { kind: 'need', entities, counters }
  const missing = lane.outcome.facts(outcome, turn.states, turn.turn).filter((fact) => !turn.facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const decision = lane.outcome.decide(
    outcome,
    turn.states,
    turn.facts,
    turn.turn,
    turn.command as Command<OutcomeBody>,
  )
  if (decision.kind === 'need') return decision
  const staged = stagedOf(decision)
  const poison = poisonOp(context.shard, {
    name: turn.command.name,
    id: body.item,
    reason: 'claims without an outcome',
  })
  return leaves({ ...staged, ops: [...(staged.ops ?? []), poison] }, body)
}

/** Shows a command or item that could not be performed, without its content. */
export function poisonOp(shard: number, { name, id, reason }: { name: string; id: string; reason: string }): Op {
  return { key: poisonKey(shard), write: 'XADD', args: ['*seq', 'c', name, 'i', id, 'e', reason] }
}

function itemFacts(shard: number, body: LaneItem): Fact[] {
  return [scoreFact(shard, body), claimFact(shard, body)]
}

function scoreFact(shard: number, { lane, item }: LaneItem): Fact {
  return { read: 'score', key: laneKey(shard, lane), member: item }
}

function stillHeld(context: ItemContext, { lane, item }: LaneItem, untilMs: number): Op {
  return { key: laneKey(context.shard, lane), write: 'ZADD', args: ['XX', String(untilMs), item] }
}

function stagedOf(
  decision: { readonly kind: 'refuse'; readonly records?: Staged } | ({ readonly kind: 'done' } & Staged),
): Staged {
  return decision.kind === 'done' ? decision : (decision.records ?? {})
}

function leaves(staged: Staged, { lane, item }: LaneItem): Done<null> {
  const due = (staged.due ?? []).filter((other) => other.item !== item || other.lane !== lane)
  return { ...staged, due, kind: 'done', reply: null, done: [...(staged.done ?? []), { lane, item }] }
}

function nothing<Reply>(reply: Reply): Decision<Reply> {
  return { kind: 'done', reply }
}
