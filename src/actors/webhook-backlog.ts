/**
 * webhook-backlog - ends the oldest deliveries of a webhook of which too many wait. They are dead and may be replayed.
 *
 * A cursor goes along the queue: what lies before it was found to wait no more. A delivery that was replayed meanwhile
 * counts by the place of its first queueing.
 *
 * Spec webhook.backlog
 */

import type { CommandType, Decision, Fact, TimerBody } from '../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../cluster/id.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../schemas/limits.ts'
import { BACKLOG_TIMER } from './announce.ts'
import { TIMERS_LANE } from './item.ts'
import { deliveryKey, queueKey, slicesKey } from './keyspace.ts'
import { lessPending, recordFact } from './prepare-post.ts'
import { type WebhookCounters, type WebhookState, webhookOwner, webhookRef } from './webhook.ts'
import { itemOf, postLane } from './webhook-item.ts'
import { deadOps, deadRecord, unpackRecord } from './webhook-record.ts'

/** Deliveries looked at in one step. */
const STEP_ENTRIES = 200
/** Slices of thirteen months, several a day. */
const SLICES_MAX = 5_000

type RangeFact = Fact & { read: 'range' }
type SortedFact = Fact & { read: 'sorted' }

/** The command type, with the given bound. */
export function makeTrimBacklog(pendingMax: number): CommandType<TimerBody, null> {
  return {
    name: 'trim backlog',
    frees: true,
    entities: ({ item }) => [webhookRef(idOf(item))],
    counters: ({ item }) => [webhookOwner(idOf(item))],
    facts: ({ item }, _states, { shard }) => [slicesFact(shard, idOf(item))],
    decide({ item }, states, facts, { shard, nowMs }): Decision<null> {
      const webhookId = idOf(item)
      const webhook = states.get<WebhookState | null>(webhookRef(webhookId))
      const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
      const excess = (counters?.pending ?? 0) - pendingMax
      if (webhook === null || webhook.removedAtMs !== null || counters === null || excess <= 0) return NOTHING
      const slices = facts.sorted(slicesFact(shard, webhookId)).map(([name]) => name)
      const [trimmedSlice = '', trimmedId = ''] = counters.trimmed ?? []
      const at = Math.max(0, slices.indexOf(trimmedSlice))
      const slice = slices[at]
      if (slice === undefined) return NOTHING
      const range = rangeFact(queueKey(shard, webhookId, slice), slice === trimmedSlice ? trimmedId : '')
      if (!facts.has(range)) return { kind: 'need', facts: [range] }
      const entries = facts.range(range).map(itemOf)
      const missing = entries.map((one) => recordFact(shard, webhookId, one)).filter((fact) => !facts.has(fact))
      if (missing.length > 0) return { kind: 'need', facts: missing }
      const waiting = entries.flatMap((one) => {
        const key = deliveryKey(shard, webhookId, slice)
        const record = unpackRecord(facts.field(key, shortId(one.deliveryId)), msOf(one.deliveryId))
        return record.status === 'pending' ? [{ ...one, record }] : []
      })
      const dead = waiting.slice(0, excess)
      const last = dead.length < excess ? entries.at(-1) : dead.at(-1)
      const isOver = entries.length < STEP_ENTRIES && dead.length < excess
      const next = slices[at + 1]
      const trimmed: WebhookCounters['trimmed'] =
        isOver && next !== undefined ? [next, ''] : [slice, last?.deliveryId ?? trimmedId]
      const { value, owner } = lessPending(webhookId, counters, dead.length)
      return {
        kind: 'done',
        reply: null,
        ops: dead.flatMap(({ name, deliveryId, record }) =>
          deadOps({ shard, webhookId, deliveryId, slice }, { item: name, record: deadRecord(record, 'backlog_full') }),
        ),
        done: dead.map(({ name }) => ({ lane: postLane(webhookId), item: name })),
        counters: [{ owner, value: { ...value, trimmed } }],
        due: dead.length < excess && !(isOver && next === undefined) ? [{ lane: TIMERS_LANE, item, atMs: nowMs }] : [],
      }
    },
  }
}

export const trimBacklog = makeTrimBacklog(WEBHOOK_BACKLOG_MAX)

const NOTHING: Decision<null> = { kind: 'done', reply: null }

function idOf(item: string): string {
  return item.slice(BACKLOG_TIMER.length + 1)
}

function slicesFact(shard: number, webhookId: string): SortedFact {
  return { read: 'sorted', key: slicesKey(shard, webhookId), min: 0, max: Number.MAX_SAFE_INTEGER, count: SLICES_MAX }
}

/** Entries after a delivery's; '' = from the first. */
function rangeFact(key: string, afterId: string): RangeFact {
  return { read: 'range', key, from: afterId === '' ? '-' : entryAfter(afterId), to: '+', count: STEP_ENTRIES }
}

/** The smallest entry id above a delivery's. */
function entryAfter(deliveryId: string): string {
  const entryId = entryIdOf(deliveryId)
  const dash = entryId.indexOf('-')
  return `${entryId.slice(0, dash)}-${BigInt(entryId.slice(dash + 1)) + 1n}`
}
