/**
 * next-claim - the item that a serial lane goes on with, claimed by the commit that ended the one before.
 *
 * Only what can be claimed there and then is: an item that must be ended, or whose preparation writes something, is left
 * to a claim of its own, which is looked for as soon as the commit is confirmed.
 */
import type { Context, Decision, Done, Fact, Facts, LaneType, OutcomeBody, States } from './behaviour.ts'
import { CLAIMS_MAX, claimFact, type ItemContext, isHeld, makeClaim, parseClaim } from './item-turns.ts'
import { claimsKey, laneKey } from './keyspace.ts'
import type { Claim } from './pump.ts'

/** The item that ended may still stand first, and one beside it may be claimed. */
const HEAD_MAX = 3

type SortedFact = Fact & { readonly read: 'sorted' }

/** The items of a lane that are due first. */
export function laneHead(shard: number, lane: string): SortedFact {
  return { read: 'sorted', key: laneKey(shard, lane), min: 0, max: Number.MAX_SAFE_INTEGER, count: HEAD_MAX }
}

/** The end of an attempt together with the claim of the next, where one is due. */
export function withNext(
  ended: Done<null>,
  { lane, body, context }: { lane: LaneType; body: OutcomeBody; context: ItemContext },
  { states, facts, turn }: { states: States; facts: Facts; turn: Context },
): Decision<Claim | null> {
  const { shard, pump } = context
  const head = facts.sorted(laneHead(shard, body.lane))
  const next = head.find(([item, score]) => item !== body.item && score <= turn.nowMs && !pump.performing(item))
  if (next === undefined || isHeld(context, body.lane, turn.nowMs) || pump.room(body.lane) <= 0) return ended
  const laneItem = { lane: body.lane, item: next[0] }
  const wished = [claimFact(shard, laneItem), ...lane.prepare.facts(laneItem, states, turn)]
  const missing = wished.filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const row = parseClaim(facts.field(claimsKey(shard), laneItem.item))
  if (row !== null && row.claims >= CLAIMS_MAX) return ended
  const prepared = lane.prepare.decide(laneItem, states, facts, turn, { name: '', cmdId: '', body: laneItem })
  if (prepared.kind !== 'done' || prepared.reply === null || writes(prepared)) return ended
  const untilMs = turn.nowMs + lane.holdMs
  const { claim, ops } = makeClaim(context, laneItem, { row, untilMs, job: prepared.reply })
  return { ...ended, reply: claim, ops: [...(ended.ops ?? []), ...ops] }
}

function writes({ events, counters, ops, due, done }: Done<unknown>): boolean {
  return [events, counters, ops, due, done].some((list) => list !== undefined && list.length > 0)
}
