/**
 * backlog - ends the oldest deliveries of a webhook with too many pending ones. They become dead and may be replayed.
 *
 * A cursor moves along the deliveries, and those before it are no longer pending. A replayed delivery counts by the
 * place of its first queueing, so the cursor goes back to it. In a thinned slice, replayed deliveries are listed among
 * the dead.
 *
 * Spec webhook.backlog
 */

import type { CommandType, Context, Decision, Fact, Facts, TimerBody } from '../../../cluster/behaviour.ts'
import { entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { WEBHOOK_BACKLOG_MAX } from '../../../schemas/limits.ts'
import { idScore } from '../../state/id-score.ts'
import { deadKey, deliveryKey, queueKey } from '../../state/keys.ts'
import { blocksFromFact, rowsOfBlocks } from '../../state/webhook/block.ts'
import {
  attemptsMade,
  deadOps,
  deadRecord,
  deliveryFacts,
  isThinned,
  lessPending,
  unpackRecord,
} from '../../state/webhook/delivery.ts'
import { itemOf, parseDeliveryItem, postLane } from '../../state/webhook/item.ts'
import { slicesFact } from '../../state/webhook/slice.ts'
import { type WebhookCounters, type WebhookState, webhookOwner, webhookRef } from '../../state/webhook/webhook.ts'
import { BACKLOG_TIMER } from './announce.ts'

/** Deliveries looked at in one step. */
const STEP_ENTRIES = 200

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
      if (webhook === null || webhook.removedAtMs !== null || counters === null) return NOTHING
      const excess = counters.pending - pendingMax
      if (excess <= 0) return NOTHING
      return trimStep({ item, webhookId, counters, excess }, facts, { shard, nowMs })
    },
  }
}

/** Ends the oldest deliveries of the slice in which the last step stopped, up to `excess` of them. */
function trimStep(
  { item, webhookId, counters, excess }: { item: string; webhookId: string; counters: WebhookCounters; excess: number },
  facts: Facts,
  { shard, nowMs }: Pick<Context, 'shard' | 'nowMs'>,
): Decision<null> {
  const slices = facts.sorted(slicesFact(shard, webhookId)).map(([name]) => name)
  const [trimmedSlice = '', from = ''] = counters.trimmed ?? []
  const at = Math.max(0, slices.indexOf(trimmedSlice))
  const slice = slices[at]
  if (slice === undefined) return NOTHING
  const reads = listedFacts({ shard, webhookId, slice }, { from, isThin: isThinned(slice, nowMs) })
  const wished = [reads.queued, reads.blocks, ...(reads.dead === null ? [] : [reads.dead])]
  if (wished.some((fact) => !facts.has(fact))) return { kind: 'need', facts: wished }
  const entries = listedOf(reads, facts, { slice, from })
  const missing = entries
    .flatMap(({ name }) => deliveryFacts(shard, webhookId, name))
    .filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const records = entries.flatMap((one) => {
    const packed = facts.field(deliveryKey(shard, webhookId, slice), shortId(one.deliveryId)) ?? one.record
    const record = unlessDamaged(() => unpackRecord(packed || null, msOf(one.deliveryId)))
    if (record === null) return []
    return [{ ...one, record: { ...record, attempts: attemptsMade(record, facts.field(claimsKey(shard), one.name)) } }]
  })
  const dead = records.filter(({ record }) => record.status === 'pending').slice(0, excess)
  const isEnough = dead.length === excess
  const last = (isEnough ? dead : entries).at(-1)?.deliveryId ?? from
  const isOver = entries.length < STEP_ENTRIES && !isEnough
  const next = isOver ? slices[at + 1] : slice
  const trimmed: WebhookCounters['trimmed'] = [next ?? slice, last]
  const { value, owner } = lessPending(webhookId, counters, dead.length)
  return {
    kind: 'done',
    reply: null,
    ops: dead.flatMap(({ name, deliveryId, record }) =>
      deadOps({ shard, webhookId, deliveryId, slice }, { item: name, record: deadRecord(record, 'backlog_full') }),
    ),
    done: dead.map(({ name }) => ({ lane: postLane(webhookId), item: name })),
    counters: [{ owner, value: { ...value, trimmed } }],
    due: isEnough || next === undefined ? [] : [{ lane: TIMERS_LANE, item, atMs: nowMs }],
  }
}

export const trimBacklog = makeTrimBacklog(WEBHOOK_BACKLOG_MAX)

const NOTHING: Decision<null> = { kind: 'done', reply: null }

function idOf(item: string): string {
  return item.slice(BACKLOG_TIMER.length + 1)
}

/** The reads of a slice from a delivery on; '' = from the first. */
function listedFacts(
  { shard, webhookId, slice }: { shard: number; webhookId: string; slice: string },
  { from, isThin }: { from: string; isThin: boolean },
): { queued: RangeFact; blocks: SortedFact; dead: SortedFact | null } {
  const queue = queueKey(shard, webhookId, slice)
  const count = STEP_ENTRIES
  const queued = { read: 'range', key: queue, from: from === '' ? '-' : entryIdOf(from), to: '+', count } as const
  const blocks = blocksFromFact({ shard, webhookId, slice }, from, count)
  if (!isThin) return { queued, blocks, dead: null }
  const min = from === '' ? 0 : idScore(from)
  const key = deadKey(shard, webhookId, slice)
  return { queued, blocks, dead: { read: 'sorted', key, min, max: Number.MAX_SAFE_INTEGER, count } }
}

/** The deliveries that these reads have found, oldest first, each once, with the record in a block, if any. */
function listedOf(
  { queued, blocks, dead }: ReturnType<typeof listedFacts>,
  facts: Facts,
  { slice, from }: { slice: string; from: string },
) {
  // A block that is damaged names nothing that could be ended.
  const packed = facts.sorted(blocks).flatMap((block) => unlessDamaged(() => rowsOfBlocks(slice, [block])) ?? [])
  const rows = new Map(packed.map(({ name, record }) => [name, record]))
  for (const entry of facts.range(queued)) rows.set(itemOf(entry).name, '')
  if (dead !== null) for (const [name] of facts.sorted(dead)) if (!rows.has(name)) rows.set(name, '')
  return [...rows]
    .filter(([name]) => name >= from)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .slice(0, STEP_ENTRIES)
    .map(([name, record]) => ({ name, record, ...parseDeliveryItem(name) }))
}
