/**
 * walk-posts - the deliveries of a server's webhooks: what receivers answered to events of mail that was erased goes.
 *
 * A delivery tells of a message by reference, and its body is made anew for each attempt. What the receiver said is
 * kept without addresses; it can still name the person. Whether a message was erased its head tells, so this is last,
 * and waits for headers that are being read. What ends later keeps no answer by itself (`posted.ts`).
 *
 * A delivery comes after what it tells of. So a webhook's slices are walked from the one on that was open when the
 * earliest message of the person came to be, and none where the server has no such message. Of a slice first the queue
 * is looked at; once it is thinned, those that are listed as dead, for they have left the queue.
 *
 * Keys: `slices:<webhook>`, `queue dead delivery:<webhook>:<slice>`, head, received-head
 *
 * Spec erasure.messages, erasure.received
 */

import type { Entry, Fact, Need, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, entryIdOf, msOf, shortId } from '../../../cluster/id.ts'
import type { WalkPlace } from '../../state/erasure.ts'
import { deadKey, deliveryKey, queueKey, slicesKey } from '../../state/keys.ts'
import { deadScore, isThinned, recordOp, unpackRecord } from '../../state/webhook/delivery.ts'
import { itemOf, parseDeliveryItem, type WebhookItem } from '../../state/webhook/item.ts'
import { listenersRef, type Subscriber } from '../../state/webhook/webhook.ts'
import { type HeadPlace, headPlace, isErasedMail, isOfMail } from '../webhook/told-mail.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Deliveries of one step. */
const STEP_DELIVERIES = 500
/** Before the delivery to go on from, where the dead are walked. */
const DEAD = 'dead:'

type SortedFact = Fact & { readonly read: 'sorted' }
type RangeFact = Fact & { readonly read: 'range' }

/** One step. `after` is the webhook, and behind a blank where to go on in its slice. */
export function walkPosts(step: ServerStep): StepResult {
  const { place } = step
  if (place.earliest === '') return OVER
  if (place.segment === null) return nextSlice(step)
  const [webhookId = '', from = ''] = place.after.split(' ')
  const at: SliceStep = { ...step, webhookId, slice: place.segment }
  return from.startsWith(DEAD) ? walkDead(at, from.slice(DEAD.length)) : walkQueue(at, from)
}

function nextSlice(step: ServerStep): StepResult {
  const { server, place, states, facts, context } = step
  const ref = listenersRef(server.serverId)
  if (!states.has(ref)) return { kind: 'need', entities: [ref] }
  const listeners = states.get<readonly Subscriber[] | null>(ref) ?? []
  const ids = listeners.map(({ webhookId }) => webhookId).sort()
  const webhookId = place.after === '' ? ids[0] : place.after
  if (webhookId === undefined) return OVER
  const reads = sliceFacts(slicesKey(context.shard, webhookId), place)
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const [found] = reads.flatMap((fact) => facts.sorted(fact).slice(0, 1))
  if (found !== undefined) {
    const [segment, segmentMs] = found
    return {
      kind: 'stepped',
      place: { ...place, segment, segmentMs, after: `${webhookId} ${entryIdOf(place.earliest)}` },
    }
  }
  const next = ids.find((id) => id > webhookId)
  return next === undefined ? OVER : { kind: 'stepped', place: { ...place, segmentMs: -1, after: next } }
}

/** The slice that was open when the earliest message came to be, then those behind it. */
function sliceFacts(key: string, { earliest, segmentMs }: WalkPlace): SortedFact[] {
  const max = Number.MAX_SAFE_INTEGER
  const fromMs = msOf(earliest)
  if (segmentMs >= 0) return [{ read: 'sorted', key, min: Math.max(fromMs, segmentMs + 1), max, count: 1 }]
  const open: SortedFact = { read: 'sorted', key, min: 0, max: fromMs - 1, count: 1, newest: true }
  return [open, { read: 'sorted', key, min: fromMs, max, count: 1 }]
}

/** A step in a slice. */
interface SliceStep extends ServerStep {
  readonly webhookId: string
  readonly slice: string
}

function walkQueue(step: SliceStep, from: string): StepResult {
  const { place, webhookId, slice, facts, context } = step
  const { shard, nowMs } = context
  const key = queueKey(shard, webhookId, slice)
  const fact: RangeFact = { read: 'range', key, from, to: '+', count: STEP_DELIVERIES }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const entries = facts.range(fact)
  const forget = forgetAnswers(step, entries.map(itemOf))
  if ('kind' in forget) return forget
  const staged = { ops: forget.ops }
  if (entries.length === STEP_DELIVERIES) {
    const after = `${webhookId} ${entryIdAfter((entries.at(-1) as Entry).id)}`
    return { kind: 'stepped', place: { ...place, after }, staged }
  }
  // What leaves the queue from here on is listed then, or was looked at.
  const next = isThinned(slice, nowMs)
    ? { ...place, after: `${webhookId} ${DEAD}${place.earliest}` }
    : { ...place, segment: null, after: webhookId }
  return { kind: 'stepped', place: next, staged }
}

/** Those that are dead, or were and wait again, behind the one that was looked at last. */
function walkDead(step: SliceStep, after: string): StepResult {
  const { place, webhookId, slice, facts, context } = step
  const key = deadKey(context.shard, webhookId, slice)
  // The one that was looked at last comes first again.
  const count = STEP_DELIVERIES + 1
  const fact: SortedFact = { read: 'sorted', key, min: deadScore(after), max: Number.MAX_SAFE_INTEGER, count }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const listed = facts.sorted(fact)
  const items = listed.map(([name]) => parseDeliveryItem(name)).filter(({ deliveryId }) => deliveryId > after)
  const forget = forgetAnswers(step, items)
  if ('kind' in forget) return forget
  const last = items.at(-1)
  const isMore = listed.length === count && last !== undefined
  const next = isMore
    ? { ...place, after: `${webhookId} ${DEAD}${last.deliveryId}` }
    : { ...place, segment: null, after: webhookId }
  return { kind: 'stepped', place: next, staged: { ops: forget.ops } }
}

/** The write that takes out what was answered to events of erased mail. */
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
