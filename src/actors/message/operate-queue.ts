/**
 * operate-queue - the operator's orders about a destination, and their effect on its pending mail.
 *
 * The list of held destinations and the log of these orders are on one shard, while the mail may be on any. The effect
 * of an order on the mail is carried out lane by lane after it is logged: `retryLane` makes waiting items due now, a
 * step at a time; `dropItem` ends a recipient, which bounces without a suppression. Items in flight are skipped.
 *
 * Keys: `holds` hash on shard 0, destination -> ms since when; `wakes` hash, destination -> ms of a retry, the last
 * minute's
 *
 * Spec queue.order, queue.hold, queue.retry, queue.drop, operator.audit
 */

import type { CommandType, Fact, Op, OutcomeBody } from '../../../cluster/behaviour.ts'
import { claimsKey, laneKey } from '../../../cluster/keyspace.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import { holdsKey, wakesKey } from '../../state/keys.ts'
import { parseAttemptItem } from '../../state/message/item.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import type { AttemptOutcome } from './attempt-outcome.ts'
import { attemptOutcome } from './delivery-outcome.ts'

/** Maximum number of held destinations; beyond it another tool is needed. */
export const HOLDS_MAX = 10_000
/** The topic of changes of the list, and of destinations due to be tried. */
export const HOLDS_TOPIC = 'holds'
/** How long a retry is listed for the other processes, each of which also polls every few seconds. */
const WAKE_LIFE_MS = 60_000
/** Entries removed at once, because arguments of one write are bounded. */
const WAKES_MAX = 1000

export interface OrderQueueBody {
  /** The recipients' domain in lower case, or `relay`. */
  readonly destination: string
  readonly order: 'retry' | 'hold' | 'release' | 'drop'
  readonly by: OperatorAct
}

export interface OrderQueueReply {
  readonly kind: 'ordered'
  /** Whether the destination is held after the order. */
  readonly isHeld: boolean
}

export const orderQueue: CommandType<OrderQueueBody, OrderQueueReply | Refused> = {
  name: 'order-queue',
  entities: () => [],
  counters: () => [],
  facts: () => [
    { read: 'hash', key: holdsKey() },
    { read: 'hash', key: wakesKey() },
  ],
  decide({ destination, order, by }, _states, facts, context) {
    const holds = facts.hash(holdsKey())
    const wasHeld = holds.has(destination)
    if (order === 'hold' && !wasHeld && holds.size >= HOLDS_MAX) return refuse('limit_too_high', { max: HOLDS_MAX })
    const isHeld = order === 'hold' || (wasHeld && order !== 'release')
    const ops: Op[] = []
    if (isHeld && !wasHeld) ops.push({ key: holdsKey(), write: 'HSET', args: [destination, String(context.nowMs)] })
    if (!isHeld && wasHeld) ops.push({ key: holdsKey(), write: 'HDEL', args: [destination] })
    if (order === 'retry') ops.push(...wakeOps(facts.hash(wakesKey()), destination, context.nowMs))
    const subject = { targets: { domain: destination }, before: { held: wasHeld }, after: { held: isHeld } }
    const signals = ops.length > 0 ? [{ topic: HOLDS_TOPIC, text: '' }] : []
    return {
      kind: 'done',
      reply: { kind: 'ordered', isHeld },
      ops: [...ops, ...auditOps(context, by, subject)],
      signals,
    }
  },
}

/** Maximum items of one step. A step is one commit. */
const RETRY_STEP = 500

export interface RetryLaneBody {
  readonly lane: string
  /** Starts with items due at this time, at first the caller's clock. */
  readonly fromMs: number
}

export interface RetryLaneReply {
  readonly kind: 'retried'
  readonly recipients: number
  /** Start of the next step; null if this was the last one. */
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
    // A scheduled message is never sent early.
    const isAhead = (item: string) => (parseAttemptItem(item).sendAtMs ?? 0) > nowMs
    const waiting = later.filter(([item]) => !isAhead(item) && !isUnderWay(facts.field(claimsKey(shard), item)))
    const [, lastMs = 0] = later.at(-1) ?? []
    // One instant may have more due items than a step; each step leaves fewer, or goes past it.
    const nextMs = later.length < RETRY_STEP ? null : waiting.length > 0 ? lastMs : lastMs + 1
    const due = waiting.map(([item]) => ({ lane, item, atMs: nowMs }))
    return { kind: 'done', reply: { kind: 'retried', recipients: waiting.length, nextMs }, due }
  },
}

export interface DropItemBody {
  readonly lane: string
  readonly item: string
}

export interface DropItemReply {
  readonly kind: 'dropped' | 'left'
}

const DROPPED: AttemptOutcome = {
  result: 'bounced',
  code: null,
  response: 'dropped by the operator',
  classification: null,
  hard: false,
  expired: false,
  unbuildable: false,
  sizeBytes: null,
  retryAfterMs: null,
  hmac: null,
  uncounted: true,
}

export const dropItem: CommandType<DropItemBody, DropItemReply> = {
  name: 'drop-item',
  frees: true,
  entities: (body) => attemptOutcome.entities(endOf(body)),
  counters: (body) => attemptOutcome.counters(endOf(body)),
  facts: (body, states, turn) => [...itemFacts(body, turn.shard), ...attemptOutcome.facts(endOf(body), states, turn)],
  decide(body, states, facts, turn, command) {
    const { lane, item } = body
    const isThere = facts.score(laneKey(turn.shard, lane), item) !== null
    if (!isThere || isUnderWay(facts.field(claimsKey(turn.shard), item)))
      return { kind: 'done', reply: { kind: 'left' } }
    const end = endOf(body)
    const decision = attemptOutcome.decide(end, states, facts, turn, { ...command, body: end })
    if (decision.kind !== 'done')
      return decision.kind === 'need' ? decision : { kind: 'refuse', answer: { kind: 'left' } }
    return { ...decision, reply: { kind: 'dropped' }, done: [{ lane, item }] }
  },
}

/** The writes that make every process try a destination now, and remove entries that all have seen. */
function wakeOps(wakes: ReadonlyMap<string, string>, destination: string, nowMs: number): Op[] {
  const seen = [...wakes].filter(([, atMs]) => Number(atMs) < nowMs - WAKE_LIFE_MS).map(([name]) => name)
  const ops: Op[] = [{ key: wakesKey(), write: 'HSET', args: [destination, String(nowMs)] }]
  if (seen.length > 0) ops.unshift({ key: wakesKey(), write: 'HDEL', args: seen.slice(0, WAKES_MAX) })
  return ops
}

/** Whether a row of `claims` names a worker, which means that the item is in flight. */
export function isUnderWay(row: string | null): boolean {
  return row !== null && (JSON.parse(row) as [worker: string])[0] !== ''
}

function laterFact(shard: number, { lane, fromMs }: RetryLaneBody): Fact & { read: 'sorted' } {
  return { read: 'sorted', key: laneKey(shard, lane), min: fromMs, max: Number.MAX_SAFE_INTEGER, count: RETRY_STEP }
}

function endOf({ lane, item }: DropItemBody): OutcomeBody<AttemptOutcome> {
  return { lane, item, attempt: 0, current: true, outcome: DROPPED }
}

function itemFacts({ lane, item }: DropItemBody, shard: number): Fact[] {
  return [
    { read: 'score', key: laneKey(shard, lane), member: item },
    { read: 'fields', key: claimsKey(shard), fields: [item] },
  ]
}
