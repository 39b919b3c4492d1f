/**
 * retry-lane - makes what waits in a lane for a later time due now, a step at a time; what is being attempted is left alone.
 *
 * Spec queue.retry
 */

import type { CommandType, Fact } from '../../cluster/behaviour.ts'
import { claimsKey, laneKey } from '../../cluster/keyspace.ts'

/** Items of one step: one commit. */
const RETRY_STEP = 500

export interface RetryLaneBody {
  readonly lane: string
  /** Looks at what is due from this instant on: the clock of who asks, at first. */
  readonly fromMs: number
}

export interface RetryLaneReply {
  readonly kind: 'retried'
  readonly recipients: number
  /** Where the next step goes on; null = this was the last one. */
  readonly nextMs: number | null
}

export const retryLane: CommandType<RetryLaneBody, RetryLaneReply> = {
  name: 'retry-lane',
  entities: () => [],
  counters: () => [],
  facts: (body, _states, { shard }) => [laterFact(shard, body)],
  decide(body, _states, facts, { shard, nowMs }) {
    const later = facts.sorted(laterFact(shard, body))
    if (later.length === 0) return { kind: 'done', reply: { kind: 'retried', recipients: 0, nextMs: null } }
    const claims: Fact = { read: 'fields', key: claimsKey(shard), fields: later.map(([item]) => item) }
    if (!facts.has(claims)) return { kind: 'need', facts: [claims] }
    const { lane } = body
    const waiting = later.filter(([item]) => !isUnderWay(facts.field(claimsKey(shard), item)))
    const [, lastMs = 0] = later.at(-1) ?? []
    // Of what is due at one instant there may be more than a step; each step leaves less of it, or goes past it.
    const nextMs = later.length < RETRY_STEP ? null : waiting.length > 0 ? lastMs : lastMs + 1
    const due = waiting.map(([item]) => ({ lane, item, atMs: nowMs }))
    return { kind: 'done', reply: { kind: 'retried', recipients: waiting.length, nextMs }, due }
  },
}

/** Whether a row of `claims` names a worker: somebody is at it. */
export function isUnderWay(row: string | null): boolean {
  return row !== null && (JSON.parse(row) as [worker: string])[0] !== ''
}

function laterFact(shard: number, { lane, fromMs }: RetryLaneBody): Fact & { read: 'sorted' } {
  return { read: 'sorted', key: laneKey(shard, lane), min: fromMs, max: Number.MAX_SAFE_INTEGER, count: RETRY_STEP }
}
