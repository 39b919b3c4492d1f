/**
 * walk-posts - the deliveries of a server's webhooks: removes the receivers' answers to events of erased mail.
 *
 * A delivery refers to a message, and its body is rebuilt for each attempt. The receiver's answer is stored without
 * addresses, but can still name the person. The head of a message shows whether it was erased, so this phase is last,
 * and waits for headers that are being read. Later attempts store no answer (`posted.ts`).
 *
 * A delivery is made with its event, and its id has that time. So each webhook is checked for the times at which
 * events of the person's mail were announced, or completely if these are unknown. In a slice the queue is read
 * first, then the blocks to which deliveries may have moved since; once it is thinned, the deliveries listed as dead,
 * because they have left both. A block with such an answer is replaced by one without.
 *
 * Keys: `slices:<webhook>`, `queue blocks dead delivery:<webhook>:<slice>`, head, received-head
 *
 * Spec erasure.messages, erasure.received
 */

import type { Entry, Fact, Need, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, msOf, shortId } from '../../../cluster/id.ts'
import { TOLD_NO_END, type ToldSpan, toldAt, type WalkPlace } from '../../state/erasure.ts'
import { idScore } from '../../state/id-score.ts'
import { deadKey, deliveryKey, queueKey, slicesKey } from '../../state/keys.ts'
import { blockOp, blocksAtFact, blocksFromFact, removeBlockOp, unpackDeliveries } from '../../state/webhook/block.ts'
import { isThinned, recordOp, unpackRecord } from '../../state/webhook/delivery.ts'
import { formatItem, itemOf, parseDeliveryItem, type WebhookItem } from '../../state/webhook/item.ts'
import { listenersRef, type Subscriber } from '../../state/webhook/webhook.ts'
import { type HeadPlace, headPlace, isErasedMail, isOfMail } from '../webhook/event-message.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Deliveries of one step. */
const STEP_DELIVERIES = 500
/** Replaces an entry's id, before the delivery to continue from, while blocks are walked, or the dead. */
const BLOCKS = 'blocks:'
const DEAD = 'dead:'
/** A webhook, and the number of a span, which earlier versions did not write. */
const AT_SPAN = /^\S+ \d+(?: |$)/

type SortedFact = Fact & { readonly read: 'sorted' }
type RangeFact = Fact & { readonly read: 'range' }

/** One step. `after` is the webhook, the number of the span, and the position in a slice, separated by blanks. */
export function walkPosts(step: ServerStep): StepResult {
  const { place, states } = step
  const { segment, after } = place
  const told = toldAt(place)
  if (told.length === 0) return OVER
  if (after !== '' && !AT_SPAN.test(after))
    return { kind: 'stepped', place: { ...place, segment: null, segmentMs: -1, after: '' } }
  const ref = listenersRef(step.server.serverId)
  if (!states.has(ref)) return { kind: 'need', entities: [ref] }
  const ids = (states.get<readonly Subscriber[] | null>(ref) ?? []).map(({ webhookId }) => webhookId).sort()
  const [webhookId = '', index = '0', from = ''] = after === '' ? [ids[0]] : after.split(' ')
  if (webhookId === '') return OVER
  const span = told[Number(index)]
  if (span === undefined) {
    const next = ids.find((id) => id > webhookId)
    return next === undefined ? OVER : { kind: 'stepped', place: { ...place, segmentMs: -1, after: `${next} 0` } }
  }
  const at = { ...step, webhookId, index: Number(index), span }
  if (segment === null) return nextSlice(at)
  const slice: SliceStep = { ...at, slice: segment }
  if (from.startsWith(DEAD)) return walkDead(slice, from.slice(DEAD.length))
  return from.startsWith(BLOCKS) ? walkBlocks(slice, from.slice(BLOCKS.length)) : walkQueue(slice, from)
}

/** A step in a span of a webhook. */
interface SpanStep extends ServerStep {
  readonly webhookId: string
  readonly index: number
  readonly span: ToldSpan
}

/**
 * Continues with the slice that was open at the start of the span, then those opened within it, then the next span.
 */
function nextSlice({ webhookId, index, span, place, facts, context }: SpanStep): StepResult {
  const [fromMs, untilMs] = span
  const key = slicesKey(context.shard, webhookId)
  const min = Math.max(fromMs, place.segmentMs + 1)
  const open: SortedFact = { read: 'sorted', key, min: 0, max: fromMs - 1, count: 1, newest: true }
  const later: SortedFact = { read: 'sorted', key, min, max: untilMs, count: 1 }
  const reads = place.segmentMs < 0 ? [open, later] : [later]
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const [found] = reads.flatMap((fact) => facts.sorted(fact).slice(0, 1))
  if (found === undefined)
    return { kind: 'stepped', place: { ...place, segmentMs: -1, after: `${webhookId} ${index + 1}` } }
  const [segment, segmentMs] = found
  return { kind: 'stepped', place: { ...place, segment, segmentMs, after: `${webhookId} ${index} ${fromMs}` } }
}

/** A step in a slice. */
interface SliceStep extends SpanStep {
  readonly slice: string
}

/** The position of a step in its slice; null if it is done. */
function placeAfter({ place, webhookId, index }: SliceStep, from: string | null): WalkPlace {
  if (from === null) return { ...place, segment: null, after: `${webhookId} ${index}` }
  return { ...place, after: `${webhookId} ${index} ${from}` }
}

function walkQueue(step: SliceStep, from: string): StepResult {
  const { webhookId, slice, span, facts, context } = step
  const { shard, nowMs } = context
  const key = queueKey(shard, webhookId, slice)
  const to = span[1] === TOLD_NO_END ? '+' : String(span[1])
  const fact: RangeFact = { read: 'range', key, from, to, count: STEP_DELIVERIES }
  const blocks = blocksAtFact({ shard, webhookId, slice }, { fromMs: span[0], count: 0 })
  if (![fact, blocks].every((one) => facts.has(one))) return { kind: 'need', facts: [fact, blocks] }
  const entries = facts.range(fact)
  const forget = forgetAnswers(
    step,
    entries.map((entry) => ({ ...itemOf(entry), record: '' })),
  )
  if ('kind' in forget) return forget
  const isMore = entries.length === STEP_DELIVERIES
  // Deliveries that leave the queue from now on were checked, or are in a block, or among the dead, when these are.
  const end = facts.sorted(blocks).length > 0 ? BLOCKS : afterBlocks(slice, nowMs)
  const place = placeAfter(step, isMore ? entryIdAfter((entries.at(-1) as Entry).id) : end)
  return { kind: 'stepped', place, staged: { ops: forget.ops } }
}

/** Deliveries in blocks, after the last one checked; '' to begin. */
function walkBlocks(step: SliceStep, after: string): StepResult {
  const { webhookId, slice, span, facts, context } = step
  const [fromMs, untilMs] = span
  const { shard, nowMs } = context
  const place = { shard, webhookId, slice }
  const count = STEP_DELIVERIES
  const fact = after === '' ? blocksAtFact(place, { fromMs, count }) : blocksFromFact(place, after, count)
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const read = facts.sorted(fact)
  const blocks = read.map(([packed]) => ({ packed, rows: unpackDeliveries(slice, packed) }))
  const items = blocks.flatMap(({ rows }) => rows.map((row) => ({ ...row, ...parseDeliveryItem(row.name) })))
  const last = items.at(-1)?.deliveryId ?? ''
  const inSpan = items.filter(({ deliveryId }) => deliveryId > after && isIn(span, msOf(deliveryId)))
  const forget = forgetAnswers(step, inSpan)
  if ('kind' in forget) return forget
  const { records } = forget
  const rewritten = blocks
    .filter(({ rows }) => rows.some(({ name }) => records.has(name)))
    .flatMap(({ packed, rows }) => [
      removeBlockOp(place, packed),
      blockOp(
        place,
        rows.map(({ name, record }) => ({ name, record: records.get(name) ?? record })),
      ),
    ])
  const isMore = read.length === fact.count && last > after && msOf(last) <= untilMs
  return {
    kind: 'stepped',
    place: placeAfter(step, isMore ? `${BLOCKS}${last}` : afterBlocks(slice, nowMs)),
    staged: { ops: [...forget.ops, ...rewritten] },
  }
}

function afterBlocks(slice: string, nowMs: number): string | null {
  return isThinned(slice, nowMs) ? DEAD : null
}

function isIn([fromMs, untilMs]: ToldSpan, ms: number): boolean {
  return ms >= fromMs && ms <= untilMs
}

/** Dead deliveries, and replayed ones, after the last one checked; '' to begin. */
function walkDead(step: SliceStep, after: string): StepResult {
  const { webhookId, slice, span, facts, context } = step
  const [fromMs, untilMs] = span
  const key = deadKey(context.shard, webhookId, slice)
  const min = after === '' ? fromMs : idScore(after)
  // The last one checked comes first again.
  const count = STEP_DELIVERIES + 1
  const fact: SortedFact = { read: 'sorted', key, min, max: untilMs, count }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const listed = facts.sorted(fact)
  const items = listed.map(([name]) => parseDeliveryItem(name)).filter(({ deliveryId }) => deliveryId > after)
  const forget = forgetAnswers(
    step,
    items.map((item) => ({ ...item, record: '' })),
  )
  if ('kind' in forget) return forget
  const last = items.at(-1)
  const isMore = listed.length === count && last !== undefined
  const place = placeAfter(step, isMore ? `${DEAD}${last.deliveryId}` : null)
  return { kind: 'stepped', place, staged: { ops: forget.ops } }
}

/** A delivery, with its record in a block, or ''. */
type Posted = WebhookItem & { readonly record: string }

/**
 * The write that removes receivers' answers to events of erased mail, and by item the records of those in blocks
 * without their answers.
 */
function forgetAnswers(
  step: SliceStep,
  items: readonly Posted[],
): { readonly ops: readonly Op[]; readonly records: ReadonlyMap<string, string> } | Need {
  const { server, webhookId, slice, facts, context } = step
  if (items.length === 0) return { ops: [], records: new Map() }
  const { shard } = context
  const place = { shard, webhookId, slice }
  const key = deliveryKey(shard, webhookId, slice)
  const fields: Fact = { read: 'fields', key, fields: items.map(({ deliveryId }) => shortId(deliveryId)) }
  if (!facts.has(fields)) return { kind: 'need', facts: [fields] }
  const answered = items.flatMap((item) => {
    const { deliveryId, reference } = item
    if (!isOfMail(reference)) return []
    const head = headPlace(shard, server.serverId, reference)
    const field = facts.field(key, shortId(deliveryId))
    // A block may hold an older record of a delivery that was replayed since.
    return [field, item.record].flatMap((packed, at) => {
      const record = unpackRecord(packed || null, msOf(deliveryId))
      return record.lastResponse === null ? [] : [{ item, reference, record, head, isInBlock: at === 1 }]
    })
  })
  const heads = headFacts(answered)
  if (!heads.every((one) => facts.has(one))) return { kind: 'need', facts: heads }
  const args: string[] = []
  const records = new Map<string, string>()
  for (const { item, reference, record, head, isInBlock } of answered) {
    if (!isErasedMail(reference, facts.field(head.key, head.field))) continue
    const { deliveryId } = item
    const [field = '', packed = ''] = recordOp({ ...place, deliveryId }, { ...record, lastResponse: null })
      .args as string[]
    if (isInBlock) records.set(formatItem(item), packed)
    else args.push(field, packed)
  }
  return { ops: args.length === 0 ? [] : [{ key, write: 'HSET', args }], records }
}

/** One read for each hash. */
function headFacts(answered: readonly { readonly head: HeadPlace }[]): Fact[] {
  const fields = new Map<string, Set<string>>()
  for (const { head } of answered) fields.set(head.key, (fields.get(head.key) ?? new Set()).add(head.field))
  return Array.from(fields, ([key, names]): Fact => ({ read: 'fields', key, fields: [...names] }))
}
