/**
 * claim - a claim of an item, with its row in `claims`, its writes, and the rules of claiming.
 *
 * A claim moves the item's score to the end of the attempt and writes the row in one commit. The commands that claim,
 * end and free items are in `item-turns.ts`.
 */

import type { Fact, Op } from '../behaviour.ts'
import { claimsKey, laneKey } from '../keyspace.ts'
import type { LaneIndex } from './lane-index.ts'
import type { Claim, LaneRunner } from './lane-runner.ts'

/** Claims of an item without an outcome, after which it is ended. */
export const CLAIMS_MAX = 5

/** A row of `claims`. */
export interface ClaimRow {
  readonly worker: string
  readonly lane: string
  readonly attempt: number
  readonly untilMs: number
  /** Claims since the last outcome, this one included. */
  readonly claims: number
}

/** Input of the rules for claiming; a test may plant a broken one. */
export interface ClaimRules {
  /** Whether an item with this score (null: not in its lane) may be claimed. */
  stillDue(score: number | null, nowMs: number): boolean
  /** Whether an outcome of `attempt` is the one that the item's row waits for. */
  isCurrent(row: ClaimRow, attempt: number): boolean
  readonly flag: readonly string[]
}

export const CLAIM_RULES: ClaimRules = {
  stillDue: (score, nowMs) => score !== null && score <= nowMs,
  // A waiting row names no worker, and an outcome handed in twice was already processed.
  isCurrent: ({ worker, attempt }, ended) => worker !== '' && attempt === ended,
  flag: ['XX'],
}

/** An attempt of another worker that holds a serial lane, and until when at the latest. */
export interface StandingClaim {
  readonly item: string
  readonly attempt: number
  readonly untilMs: number
}

/** Dependencies of the commands around items on their shard. */
export interface ItemContext {
  readonly shard: number
  readonly worker: string
  readonly runner: LaneRunner
  readonly lanes: LaneIndex
  readonly rules: ClaimRules
  /**
   * Serial lanes that another worker's claims hold. After a claim expires, its attempt may still run there and overlap
   * ours.
   */
  readonly standing: Map<string, readonly StandingClaim[]>
  /** True once every outcome found at takeover is committed, and until the shard closes. */
  readonly mayClaim: () => boolean
}

/** An item by its lane and name. */
export type LaneItem = { readonly lane: string; readonly item: string }

/** A row as it is stored. */
export function formatClaim(row: ClaimRow): string {
  return JSON.stringify([row.worker, row.lane, row.attempt, row.untilMs, row.claims])
}

/** The row of an item that waits: only its number of attempts counts. */
export function formatWaiting({ lane, attempt }: Pick<ClaimRow, 'lane' | 'attempt'>): string {
  return formatClaim({ worker: '', lane, attempt, untilMs: 0, claims: 0 })
}

/** The row of `claims` in `packed`; null for none. */
export function parseClaim(packed: string | null): ClaimRow | null {
  if (packed === null) return null
  const [worker, lane, attempt, untilMs, claims] = JSON.parse(packed) as [string, string, number, number, number]
  return { worker, lane, attempt, untilMs, claims }
}

/** Writes of a claim, which move the item's score to the end of the attempt and put the worker into the row. */
export function claimOps(
  context: ItemContext,
  { lane, item, row, fresh }: LaneItem & { row: ClaimRow; fresh: boolean },
): Op[] {
  const flag = fresh ? [] : context.rules.flag
  return [
    { key: laneKey(context.shard, lane), write: 'ZADD', args: [...flag, String(row.untilMs), item] },
    { key: claimsKey(context.shard), write: 'HSET', args: [item, formatClaim(row)] },
  ]
}

/** Items of a lane's head that are due and not under way here. */
export function findDue(
  head: readonly (readonly [item: string, score: number])[],
  { context, nowMs }: { context: ItemContext; nowMs: number },
): string[] {
  return head.filter(([item, score]) => score <= nowMs && !context.runner.performing(item)).map(([item]) => item)
}

/** The claim after the one in `row`, and its writes. */
export function makeClaim(
  context: ItemContext,
  { lane, item }: LaneItem,
  { row, untilMs, job }: { row: ClaimRow | null; untilMs: number; job: unknown },
): { claim: Claim; ops: Op[] } {
  const attempt = (row?.attempt ?? 0) + 1
  const claimed = { worker: context.worker, lane, attempt, untilMs, claims: (row?.claims ?? 0) + 1 }
  return { claim: { lane, item, attempt, job }, ops: claimOps(context, { lane, item, row: claimed, fresh: false }) }
}

/** Whether an attempt of another worker holds a serial lane. */
export function isHeld({ standing }: ItemContext, lane: string, nowMs: number): boolean {
  const held = standing.get(lane)
  if (held === undefined) return false
  if (held.some(({ untilMs }) => untilMs > nowMs)) return true
  standing.delete(lane)
  return false
}

/** The fact that reads an item's row. */
export function claimFact(shard: number, { item }: LaneItem): Fact {
  return { read: 'fields', key: claimsKey(shard), fields: [item] }
}
