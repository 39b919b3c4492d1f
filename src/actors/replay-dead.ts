/**
 * replay-dead - queues what is dead again, oldest first, one step of it. Who asks goes on until nothing is left.
 *
 * A step looks at some slices from a cursor on. It takes no more than the backlog has room for.
 *
 * Spec webhook.replay
 */

import type { CommandType, Fact, Op } from '../../cluster/behaviour.ts'
import { msOf, shortId } from '../../cluster/id.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../schemas/limits.ts'
import { deadKey, deliveryKey, slicesKey } from '../state/keys.ts'
import {
  DEAD_SCORE_STEP,
  deadScore,
  isGone,
  isThinned,
  morePending,
  recordFact,
  recordOp,
  unpackRecord,
} from '../state/webhook/delivery.ts'
import { parseItem, postLane } from '../state/webhook/item.ts'
import { sliceEndMs } from '../state/webhook/slice.ts'
import { type WebhookCounters, webhookOwner } from '../state/webhook/webhook.ts'
import { type Refused, refuse } from './order/refusal.ts'
import { type WebhookOrder, webhookOfOrder, webhookOrderCounters, webhookOrderEntities } from './order/webhook.ts'
import { requeued } from './webhook/replay.ts'

/** Deliveries of one step, and slices that it looks at. */
const STEP_ITEMS = 200
const STEP_SLICES = 20
/** Read of a slice: of an old one, what was looked at last stays listed, and comes first again in the next step. */
const READ_ITEMS = STEP_ITEMS + 1
/** Slices of thirteen months, several a day. */
const SLICES_MAX = 5_000

type SortedFact = Fact & { read: 'sorted' }

export interface ReplayDeadBody extends WebhookOrder {
  readonly fromMs: number
  /** Before this; null = whatever is there. */
  readonly toMs: number | null
  /** Where to go on; null from the oldest. */
  readonly after: ReplayCursor | null
}

/** A slice, and the last delivery that was looked at. */
export interface ReplayCursor {
  readonly slice: string
  readonly deliveryId: string
}

export interface ReplayDeadReply {
  readonly kind: 'replayed'
  readonly queued: number
  /** Go on after this; null: that was all, or all that there is room for. */
  readonly next: ReplayCursor | null
}

export const replayDead: CommandType<ReplayDeadBody, ReplayDeadReply | Refused> = {
  name: 'replay-dead',
  entities: webhookOrderEntities,
  counters: webhookOrderCounters,
  facts: ({ webhookId }, _states, { shard }) => [slicesFact(shard, webhookId)],
  decide(body, states, facts, { shard, nowMs }) {
    const webhook = webhookOfOrder(body, states)
    if ('kind' in webhook) return webhook
    if (!webhook.enabled) return refuse('webhook_disabled')
    const { webhookId, after } = body
    const seenMs = after === null || after.deliveryId === '' ? 0 : deadScore(after.deliveryId)
    const fromMs = Math.max(body.fromMs, seenMs)
    const toMs = body.toMs ?? Number.MAX_SAFE_INTEGER
    const known = facts.sorted(slicesFact(shard, webhookId))
    const begun = Math.max(
      0,
      known.findIndex(([name]) => name === after?.slice),
    )
    const all = known.slice(begun).filter(([name, ms]) => sliceEndMs(name) > fromMs && ms < toMs)
    const slices = all.slice(0, STEP_SLICES).map(([name]) => name)
    const wished = slices.map((slice) => deadFact(deadKey(shard, webhookId, slice), fromMs, toMs - DEAD_SCORE_STEP))
    if (wished.some((fact) => !facts.has(fact))) return { kind: 'need', facts: wished }
    const counters = states.counter<WebhookCounters>(webhookOwner(webhookId))
    const room = Math.max(0, WEBHOOK_BACKLOG_MAX - (counters?.pending ?? 0))
    const found = wished
      .flatMap((fact) => facts.sorted(fact).map(([name]) => ({ name, ...parseItem(name) })))
      .filter(({ deliveryId }) => deliveryId > (after?.deliveryId ?? ''))
      .slice(0, STEP_ITEMS)
    const missing = found.map((one) => recordFact(shard, webhookId, one)).filter((fact) => !facts.has(fact))
    if (missing.length > 0) return { kind: 'need', facts: missing }
    const dead = found
      .map((one) => {
        const key = deliveryKey(shard, webhookId, one.slice)
        return { ...one, record: unpackRecord(facts.field(key, shortId(one.deliveryId)), msOf(one.deliveryId)) }
      })
      .filter((one) => one.record.status === 'dead' && !isGone(one, { nowMs, test: webhook.test }))
      .slice(0, room)
    const ops = dead.flatMap(({ name, deliveryId, slice, record }): Op[] => {
      const written = recordOp({ shard, webhookId, deliveryId, slice }, requeued(record, { row: null, nowMs }))
      if (isThinned(slice, nowMs)) return [written]
      return [written, { key: deadKey(shard, webhookId, slice), write: 'ZREM', args: [name] }]
    })
    const last = found.length === STEP_ITEMS ? found.at(-1) : undefined
    const unseen = all[STEP_SLICES]?.[0]
    const next = last ?? (unseen === undefined ? null : { slice: unseen, deliveryId: after?.deliveryId ?? '' })
    return {
      kind: 'done',
      reply: { kind: 'replayed', queued: dead.length, next: dead.length >= room ? null : cursorOf(next) },
      ops,
      counters: dead.length === 0 ? [] : [morePending(webhookId, counters, dead)],
      due: dead.map(({ name }) => ({ lane: postLane(webhookId), item: name, atMs: nowMs })),
    }
  },
}

function cursorOf(place: ReplayCursor | null): ReplayCursor | null {
  return place === null ? null : { slice: place.slice, deliveryId: place.deliveryId }
}

function slicesFact(shard: number, webhookId: string): SortedFact {
  return { read: 'sorted', key: slicesKey(shard, webhookId), min: 0, max: Number.MAX_SAFE_INTEGER, count: SLICES_MAX }
}

function deadFact(key: string, min: number, max: number): SortedFact {
  return { read: 'sorted', key, min, max, count: READ_ITEMS }
}
