/**
 * sweep - packs deliveries of a webhook and removes those that are past their age, each day, in small steps.
 *
 * The queue of a slice that is four days old moves to blocks (`../../state/webhook/block.ts`), 200 deliveries in each
 * commit, so that a crash leaves every delivery in one of them. From a slice that is 30 days old, delivered ones are
 * removed, with the queue and its blocks; dead and replayed ones stay listed among the dead. A slice whose messages
 * have expired is removed as a whole.
 *
 * Spec retention.delivery
 */

import type { CommandType, Decision, Due, Entry, Fact, Facts, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { cutoffMs } from '../../state/age.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { idScore } from '../../state/id-score.ts'
import { blocksKey, deadKey, deliveryKey, queueKey, slicesKey } from '../../state/keys.ts'
import { deleteOps } from '../../state/message/row.ts'
import {
  BLOCK_DELIVERIES,
  blockOp,
  blocksFromFact,
  isBlockAge,
  removeBlockOp,
  type StoredBlocks,
  unpackDeliveries,
} from '../../state/webhook/block.ts'
import { isThinned, recordFact, unpackRecord } from '../../state/webhook/delivery.ts'
import { itemOf, parseDeliveryItem } from '../../state/webhook/item.ts'
import { sliceEndMs, slicesFact } from '../../state/webhook/slice.ts'
import { type WebhookCounters, type WebhookState, webhookOwner, webhookRef } from '../../state/webhook/webhook.ts'
import { logMonths } from '../authorization/log-age.ts'

export const WEBHOOK_SWEEP_TIMER = 'webhook-sweep'

const STEP_ENTRIES = BLOCK_DELIVERIES
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
    const unthinned = slices.slice(slices.indexOf(counters?.thinned ?? '') + 1)
    const old = unthinned.find((name) => isThinned(name, nowMs))
    const unpacked = unthinned.slice(unthinned.indexOf(counters?.packed ?? '') + 1)
    const slice = old ?? unpacked.find((name) => isBlockAge(name, nowMs))
    if (slice === undefined) return { kind: 'done', reply: null, due: [webhookSweepDue(webhookId, nowMs)] }
    const range = oldestFact(queueKey(shard, webhookId, slice))
    const blocks = blocksFromFact({ shard, webhookId, slice }, '', 0)
    const reads = old === undefined ? [range] : [range, blocks]
    if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
    const entries = facts.range(range)
    if (old === undefined && entries.length > 0) return pack(entries, facts, { ...at, slice })
    const oldest = old === undefined ? [] : facts.sorted(blocks)
    if (oldest.length > 0 || entries.length > 0) return thin({ entries, blocks: oldest }, facts, { ...at, slice })
    const done = old === undefined ? { packed: slice } : { thinned: slice }
    const value: WebhookCounters = { ...(counters ?? { pending: 0, slice: null }), ...done }
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
    blocksKey(shard, webhookId, slice),
    deliveryKey(shard, webhookId, slice),
    deadKey(shard, webhookId, slice),
  ])
  const ops: Op[] = keys.map((key) => ({ key, write: 'UNLINK', args: [] }))
  ops.push({ key: slicesKey(shard, webhookId), write: 'ZREM', args: past })
  return { kind: 'done', reply: null, ops, due: [again(at)] }
}

/** The oldest entries move from the queue to a block, with the records of those that are delivered. */
function pack(entries: readonly Entry[], facts: Facts, at: SweepTurn & { slice: string }): Decision<null> {
  const { shard, webhookId, slice } = at
  const items = entries.map(itemOf)
  const missing = items.map((one) => recordFact(shard, webhookId, one)).filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const key = deliveryKey(shard, webhookId, slice)
  const packed: string[] = []
  const rows = items.map(({ name, deliveryId }) => {
    const short = shortId(deliveryId)
    const record = facts.field(key, short)
    const status = unlessDamaged(() => unpackRecord(record, msOf(deliveryId)).status)
    if (record === null || status !== 'delivered') return { name, record: '' }
    packed.push(short)
    return { name, record }
  })
  const trim: Op = { key: queueKey(shard, webhookId, slice), write: 'XTRIM', args: ['MINID', idAfter(entries)] }
  const ops = [blockOp({ shard, webhookId, slice }, rows), trim, ...deleteOps(key, packed)]
  return { kind: 'done', reply: null, ops, due: [again(at)] }
}

/** The oldest blocks and entries leave the queue; undelivered deliveries stay listed. */
function thin(
  { entries, blocks }: { readonly entries: readonly Entry[]; readonly blocks: StoredBlocks },
  facts: Facts,
  at: SweepTurn & { slice: string },
): Decision<null> {
  const { shard, webhookId, slice } = at
  const place = { shard, webhookId, slice }
  const opened = blocks.map(([packed]) => unlessDamaged(() => unpackDeliveries(slice, packed)))
  const rows = [
    ...opened.flatMap((some) => some ?? []),
    ...entries.map((entry) => ({ name: itemOf(entry).name, record: '' })),
  ].map((row) => ({ ...row, ...parseDeliveryItem(row.name) }))
  const missing = rows.map((one) => recordFact(shard, webhookId, one)).filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const key = deliveryKey(shard, webhookId, slice)
  const delivered: string[] = []
  const ops: Op[] = blocks.map(([packed]) => removeBlockOp(place, packed))
  // The bytes of a damaged block may be no UTF-8: then its text names no member, and only the key removes it.
  if (blocks.length > 0 && opened.every((some) => some === null))
    ops.push({ key: blocksKey(shard, webhookId, slice), write: 'UNLINK', args: [] })
  if (entries.length > 0)
    ops.push({ key: queueKey(shard, webhookId, slice), write: 'XTRIM', args: ['MINID', idAfter(entries)] })
  for (const { name, deliveryId, record } of rows) {
    const short = shortId(deliveryId)
    const field = facts.field(key, short)
    const status = unlessDamaged(() => unpackRecord(field ?? (record || null), msOf(deliveryId)).status) ?? 'delivered'
    if (status === 'delivered' && field !== null) delivered.push(short)
    if (status === 'pending')
      ops.push({ key: deadKey(shard, webhookId, slice), write: 'ZADD', args: [String(idScore(deliveryId)), name] })
  }
  return { kind: 'done', reply: null, ops: [...ops, ...deleteOps(key, delivered)], due: [again(at)] }
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
