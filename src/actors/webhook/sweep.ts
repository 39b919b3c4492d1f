/**
 * sweep - removes the deliveries of a webhook that are past their age, each day, in small steps.
 *
 * From a slice that is 30 days old, delivered ones are removed, with the queue; dead and replayed ones stay listed
 * among the dead. A slice whose messages have expired is removed as a whole.
 *
 * Spec retention.delivery
 */

import type { CommandType, Decision, Due, Entry, Fact, Facts, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { cutoffMs } from '../../state/age.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { deadKey, deliveryKey, queueKey, slicesKey } from '../../state/keys.ts'
import { deadScore, isThinned, recordFact, unpackRecord } from '../../state/webhook/delivery.ts'
import { itemOf } from '../../state/webhook/item.ts'
import { sliceEndMs, slicesFact } from '../../state/webhook/slice.ts'
import { type WebhookCounters, type WebhookState, webhookOwner, webhookRef } from '../../state/webhook/webhook.ts'
import { logMonths } from '../authorization/log-age.ts'

export const WEBHOOK_SWEEP_TIMER = 'webhook-sweep'

const STEP_ENTRIES = 200
const STEP_SLICES = 20
/** Attempts and replays of a message's events end at most this long after its acceptance. */
const TELLING_DAYS = 4

type RangeFact = Fact & { read: 'range' }

/** A webhook's next sweep, in a day. */
export function webhookSweepDue(webhookId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: `${WEBHOOK_SWEEP_TIMER}:${webhookId}`, atMs: nowMs + DAY_MS }
}

export const webhookSweep: CommandType<TimerBody, null> = {
  name: 'webhook sweep',
  frees: true,
  entities: ({ item }) => [webhookRef(idOf(item))],
  counters: ({ item }) => [webhookOwner(idOf(item))],
  facts: ({ item }, _states, { shard }) => [slicesFact(shard, idOf(item))],
  decide({ item }, states, facts, context): Decision<null> {
    const { shard, nowMs } = context
    const webhookId = idOf(item)
    const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
    if (webhook === null || webhook.removedAtMs !== null) return { kind: 'done', reply: null }
    const slices = facts.sorted(slicesFact(shard, webhookId)).map(([name]) => name)
    const months = logMonths({ states, facts, context }, webhook.accountId)
    if (typeof months !== 'number') return months
    const cutoff = cutoffMs(nowMs, webhook.test, months)
    const at = { shard, webhookId, nowMs }
    const past = slices.filter((slice) => sliceEndMs(slice) + TELLING_DAYS * DAY_MS <= cutoff).slice(0, STEP_SLICES)
    if (past.length > 0) return removeWhole(past, at)
    const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
    const slice = slices.slice(slices.indexOf(counters?.thinned ?? '') + 1).find((name) => isThinned(name, nowMs))
    if (slice === undefined) return { kind: 'done', reply: null, due: [webhookSweepDue(webhookId, nowMs)] }
    const range = oldestFact(queueKey(shard, webhookId, slice))
    if (!facts.has(range)) return { kind: 'need', facts: [range] }
    const entries = facts.range(range)
    if (entries.length > 0) return thin(entries, facts, { ...at, slice })
    const value: WebhookCounters = { ...(counters ?? { pending: 0, slice: null }), thinned: slice }
    return { kind: 'done', reply: null, counters: [{ owner: webhookOwner(webhookId), value }], due: [again(at)] }
  },
}

interface SweepTurn {
  readonly shard: number
  readonly webhookId: string
  readonly nowMs: number
}

function removeWhole(past: readonly string[], at: SweepTurn): Decision<null> {
  const { shard, webhookId } = at
  const keys = past.flatMap((slice) => [
    queueKey(shard, webhookId, slice),
    deliveryKey(shard, webhookId, slice),
    deadKey(shard, webhookId, slice),
  ])
  const ops: Op[] = keys.map((key) => ({ key, write: 'UNLINK', args: [] }))
  ops.push({ key: slicesKey(shard, webhookId), write: 'ZREM', args: past })
  return { kind: 'done', reply: null, ops, due: [again(at)] }
}

/** The oldest entries leave the queue; undelivered ones stay listed. */
function thin(entries: readonly Entry[], facts: Facts, at: SweepTurn & { slice: string }): Decision<null> {
  const { shard, webhookId, slice } = at
  const items = entries.map(itemOf)
  const missing = items.map((one) => recordFact(shard, webhookId, one)).filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const key = deliveryKey(shard, webhookId, slice)
  const delivered: string[] = []
  const ops: Op[] = [{ key: queueKey(shard, webhookId, slice), write: 'XTRIM', args: ['MINID', idAfter(entries)] }]
  for (const { name, deliveryId } of items) {
    const short = shortId(deliveryId)
    const record = unlessDamaged(() => unpackRecord(facts.field(key, short), msOf(deliveryId)))
    const status = record?.status ?? 'delivered'
    if (status === 'delivered') delivered.push(short)
    else if (status === 'pending')
      ops.push({ key: deadKey(shard, webhookId, slice), write: 'ZADD', args: [String(deadScore(deliveryId)), name] })
  }
  if (delivered.length > 0) ops.push({ key, write: 'HDEL', args: delivered })
  return { kind: 'done', reply: null, ops, due: [again(at)] }
}

function again({ webhookId, nowMs }: SweepTurn): Due {
  return { ...webhookSweepDue(webhookId, nowMs), atMs: nowMs }
}

function idOf(item: string): string {
  return item.slice(WEBHOOK_SWEEP_TIMER.length + 1)
}

function oldestFact(key: string): RangeFact {
  return { read: 'range', key, from: '-', to: '+', count: STEP_ENTRIES }
}

/** The smallest entry id above the last of some entries. */
function idAfter(entries: readonly Entry[]): string {
  const [ms = '0', low = '0'] = (entries.at(-1)?.id ?? '0-0').split('-')
  return `${ms}-${BigInt(low) + 1n}`
}
