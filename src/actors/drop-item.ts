/**
 * drop-item - ends a recipient that waits, by order of the operator: it bounces, and nobody is suppressed for it.
 *
 * What is being attempted is left alone: its attempt says what becomes of it.
 *
 * Spec queue.drop
 */

import type { CommandType, Fact, OutcomeBody } from '../../cluster/behaviour.ts'
import { claimsKey, laneKey } from '../../cluster/keyspace.ts'
import { type DeliveryOutcome, deliveryOutcome } from './message/attempted.ts'
import { isUnderWay } from './retry-lane.ts'

export interface DropItemBody {
  readonly lane: string
  readonly item: string
}

export interface DropItemReply {
  readonly kind: 'dropped' | 'left'
}

const DROPPED: DeliveryOutcome = {
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
  entities: (body) => deliveryOutcome.entities(endOf(body)),
  counters: (body) => deliveryOutcome.counters(endOf(body)),
  facts: (body, states, turn) => [...itemFacts(body, turn.shard), ...deliveryOutcome.facts(endOf(body), states, turn)],
  decide(body, states, facts, turn, command) {
    const { lane, item } = body
    const isThere = facts.score(laneKey(turn.shard, lane), item) !== null
    if (!isThere || isUnderWay(facts.field(claimsKey(turn.shard), item)))
      return { kind: 'done', reply: { kind: 'left' } }
    const end = endOf(body)
    const decision = deliveryOutcome.decide(end, states, facts, turn, { ...command, body: end })
    if (decision.kind !== 'done')
      return decision.kind === 'need' ? decision : { kind: 'refuse', answer: { kind: 'left' } }
    return { ...decision, reply: { kind: 'dropped' }, done: [{ lane, item }] }
  },
}

function endOf({ lane, item }: DropItemBody): OutcomeBody<DeliveryOutcome> {
  return { lane, item, attempt: 0, current: true, outcome: DROPPED }
}

function itemFacts({ lane, item }: DropItemBody, shard: number): Fact[] {
  return [
    { read: 'score', key: laneKey(shard, lane), member: item },
    { read: 'fields', key: claimsKey(shard), fields: [item] },
  ]
}
