/**
 * next-claim - the next item of a serial lane, claimed by the commit that ended the previous one.
 *
 * Only an item that can be claimed at once is claimed. An item that must end, or whose preparation writes
 * something, is left to a separate claim right after the commit.
 */
import type { Context, Decision, Done, Facts, LaneType, OutcomeBody, PrepareBody, States } from '../behaviour.ts'
import { laneHead } from '../facts/lane-heads.ts'
import { claimsKey } from '../keyspace.ts'
import { CLAIMS_MAX, claimFact, findDue, type ItemContext, isHeld, makeClaim, parseClaim } from './claim.ts'
import type { Claim } from './lane-runner.ts'

/** The end of an attempt together with the claim of the next, if one is due. */
export function withNext(
  ended: Done<null>,
  { lane, body, context }: { lane: LaneType; body: OutcomeBody; context: ItemContext },
  { states, facts, turn }: { states: States; facts: Facts; turn: Context },
): Decision<Claim | null> {
  const { shard, runner } = context
  if (!context.mayClaim()) return ended
  const headFact = laneHead(shard, body.lane)
  if (!facts.has(headFact)) return { kind: 'need', facts: [headFact] }
  // A late outcome that changes nothing leaves its item in place; if it is due again, it is first.
  const isMoved = [...(ended.done ?? []), ...(ended.due ?? [])].some(({ item }) => item === body.item)
  const due = findDue(facts.sorted(headFact), { context, nowMs: turn.nowMs })
    .filter((item) => !(item === body.item && isMoved))
    .map((item): PrepareBody => ({ lane: body.lane, item }))
  const [laneItem, following] = due
  if (laneItem === undefined || isHeld(context, body.lane, turn.nowMs) || runner.room(body.lane) <= 0) return ended
  const missingOf = (one: PrepareBody) =>
    [claimFact(shard, one), ...lane.prepare.facts(one, states, turn)].filter((fact) => !facts.has(fact))
  // Facts of the following items are read along: they are needed soon, and then known without a read.
  if (missingOf(laneItem).length > 0) return { kind: 'need', facts: due.flatMap(missingOf) }
  const row = parseClaim(facts.field(claimsKey(shard), laneItem.item))
  if (row !== null && row.claims >= CLAIMS_MAX) return ended
  const prepared = lane.prepare.decide(laneItem, statesAfter(states, ended), facts, turn, {
    name: '',
    cmdId: '',
    body: laneItem,
  })
  if (prepared.kind !== 'done' || prepared.reply === null || writes(prepared)) return ended
  const untilMs = turn.nowMs + lane.holdMs
  const { claim, ops } = makeClaim(context, laneItem, { row, untilMs, job: prepared.reply })
  return { ...ended, reply: { ...claim, following: following?.item ?? null }, ops: [...(ended.ops ?? []), ...ops] }
}

/** States with the counters as the end of the attempt leaves them. */
function statesAfter(states: States, { counters = [] }: Done<null>): States {
  return {
    get: (ref) => states.get(ref),
    has: (ref) => states.has(ref),
    counter: <Value>(owner: string) => {
      const written = counters.find((one) => one.owner === owner)
      return written === undefined ? states.counter<Value>(owner) : (written.value as Value)
    },
    hasCounter: (owner) => states.hasCounter(owner),
  }
}

function writes({ events, counters, ops, due, done }: Done<unknown>): boolean {
  return [events, counters, ops, due, done].some((list) => list !== undefined && list.length > 0)
}
