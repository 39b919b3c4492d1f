/**
 * walk-posts - the deliveries of a server's webhooks: removes the receivers' answers to events of erased mail.
 *
 * A delivery refers to a message, and its body is rebuilt for each attempt. The receiver's answer is stored without
 * addresses, but can still name the person. The head of a message shows whether it was erased, so this phase is last,
 * and waits for headers that are being read. Later attempts store no answer (`posted.ts`).
 *
 * A delivery is made with its event, and its id has that time. So each webhook is checked for the times at which
 * events of the person's mail were announced, or completely if these are unknown. In a slice the queue is read
 * first; once it is thinned, the deliveries listed as dead, because they have left the queue.
 *
 * Keys: `slices:<webhook>`, `queue dead delivery:<webhook>:<slice>`, head, received-head
 *
 * Spec erasure.messages, erasure.received
 */

import type { Entry, Fact, Need, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, msOf, shortId } from '../../../cluster/id.ts'
import { TOLD_NO_END, type ToldSpan, toldAt, type WalkPlace } from '../../state/erasure.ts'
import { deadKey, deliveryKey, queueKey, slicesKey } from '../../state/keys.ts'
import { deadScore, isThinned, recordOp, unpackRecord } from '../../state/webhook/delivery.ts'
import { itemOf, parseDeliveryItem, type WebhookItem } from '../../state/webhook/item.ts'
import { listenersRef, type Subscriber } from '../../state/webhook/webhook.ts'
import { type HeadPlace, headPlace, isErasedMail, isOfMail } from '../webhook/event-message.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Deliveries of one step. */
const STEP_DELIVERIES = 500
/** Replaces an entry's id, before the delivery to continue from, while the dead are walked. */
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
  return from.startsWith(DEAD) ? walkDead(slice, from.slice(DEAD.length)) : walkQueue(slice, from)
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
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const entries = facts.range(fact)
  const forget = forgetAnswers(step, entries.map(itemOf))
  if ('kind' in forget) return forget
  const isMore = entries.length === STEP_DELIVERIES
  // Deliveries that leave the queue from now on were checked, or are in the list of dead ones when it is walked.
  const end = isThinned(slice, nowMs) ? DEAD : null
  const place = placeAfter(step, isMore ? entryIdAfter((entries.at(-1) as Entry).id) : end)
  return { kind: 'stepped', place, staged: { ops: forget.ops } }
}

/** Dead deliveries, and replayed ones, after the last one checked; '' to begin. */
function walkDead(step: SliceStep, after: string): StepResult {
  const { webhookId, slice, span, facts, context } = step
  const [fromMs, untilMs] = span
  const key = deadKey(context.shard, webhookId, slice)
  const min = after === '' ? fromMs : deadScore(after)
  // The last one checked comes first again.
  const count = STEP_DELIVERIES + 1
  const fact: SortedFact = { read: 'sorted', key, min, max: untilMs, count }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const listed = facts.sorted(fact)
  const items = listed.map(([name]) => parseDeliveryItem(name)).filter(({ deliveryId }) => deliveryId > after)
  const forget = forgetAnswers(step, items)
  if ('kind' in forget) return forget
  const last = items.at(-1)
  const isMore = listed.length === count && last !== undefined
  const place = placeAfter(step, isMore ? `${DEAD}${last.deliveryId}` : null)
  return { kind: 'stepped', place, staged: { ops: forget.ops } }
}

/** The write that removes receivers' answers to events of erased mail. */
function forgetAnswers(step: SliceStep, items: readonly WebhookItem[]): { readonly ops: readonly Op[] } | Need {
  const { server, webhookId, slice, facts, context } = step
  if (items.length === 0) return { ops: [] }
  const { shard } = context
  const place = { shard, webhookId, slice }
  const key = deliveryKey(shard, webhookId, slice)
  const records: Fact = { read: 'fields', key, fields: items.map(({ deliveryId }) => shortId(deliveryId)) }
  if (!facts.has(records)) return { kind: 'need', facts: [records] }
  const answered = items.flatMap(({ deliveryId, reference }) => {
    const record = unpackRecord(facts.field(key, shortId(deliveryId)), msOf(deliveryId))
    if (record.lastResponse === null || !isOfMail(reference)) return []
    return [{ deliveryId, reference, record, head: headPlace(shard, server.serverId, reference) }]
  })
  const heads = headFacts(answered)
  if (!heads.every((one) => facts.has(one))) return { kind: 'need', facts: heads }
  const args = answered
    .filter(({ reference, head }) => isErasedMail(reference, facts.field(head.key, head.field)))
    .flatMap(({ deliveryId, record }) => recordOp({ ...place, deliveryId }, { ...record, lastResponse: null }).args)
  return { ops: args.length === 0 ? [] : [{ key, write: 'HSET', args }] }
}

/** One read for each hash. */
function headFacts(answered: readonly { readonly head: HeadPlace }[]): Fact[] {
  const fields = new Map<string, Set<string>>()
  for (const { head } of answered) fields.set(head.key, (fields.get(head.key) ?? new Set()).add(head.field))
  return Array.from(fields, ([key, names]): Fact => ({ read: 'fields', key, fields: [...names] }))
}
