/**
 * walk-posts - the deliveries of a server's webhooks: what receivers answered to events of mail that was erased goes.
 *
 * A delivery tells of a message by reference, and its body is made anew for each attempt. What the receiver said is
 * kept without addresses; it can still name the person. Whether a message was erased its head tells, so this is last,
 * and waits for headers that are being read.
 *
 * Keys: `slices:<webhook>`, `queue delivery:<webhook>:<slice>`, head, received-head
 *
 * Spec erasure.messages, erasure.received
 */

import type { Entry, Fact, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, msOf, shortId } from '../../../cluster/id.ts'
import { deliveryKey, headKey, queueKey, slicesKey } from '../../state/keys.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { contentHeadKey } from '../../state/received/content-head.ts'
import { type DeliveryRecord, recordOp, unpackRecord } from '../../state/webhook/delivery.ts'
import { itemOf, type MailReference, type WebhookItem } from '../../state/webhook/item.ts'
import { listenersRef, type Subscriber } from '../../state/webhook/webhook.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Deliveries of one step. */
const STEP_DELIVERIES = 500

type SortedFact = Fact & { readonly read: 'sorted' }
type RangeFact = Fact & { readonly read: 'range' }

/** One step. `after` is the webhook, and behind a blank the entry to go on from. */
export function walkPosts(step: ServerStep): StepResult {
  const { place } = step
  return place.segment === null ? nextSlice(step) : walkSlice(step, place.segment)
}

function nextSlice(step: ServerStep): StepResult {
  const { server, place, states, facts, context } = step
  const ref = listenersRef(server.serverId)
  if (!states.has(ref)) return { kind: 'need', entities: [ref] }
  const listeners = states.get<readonly Subscriber[] | null>(ref) ?? []
  const ids = listeners.map(({ webhookId }) => webhookId).sort()
  const webhookId = place.after === '' ? ids[0] : place.after
  if (webhookId === undefined) return OVER
  const key = slicesKey(context.shard, webhookId)
  const fact: SortedFact = { read: 'sorted', key, min: place.segmentMs + 1, max: Number.MAX_SAFE_INTEGER, count: 1 }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const [found] = facts.sorted(fact)
  if (found !== undefined) {
    const [segment, segmentMs] = found
    return { kind: 'stepped', place: { ...place, segment, segmentMs, after: `${webhookId} -` } }
  }
  const next = ids.find((id) => id > webhookId)
  return next === undefined ? OVER : { kind: 'stepped', place: { ...place, segmentMs: -1, after: next } }
}

/** A delivery whose receiver said something. */
interface Answered {
  readonly item: WebhookItem & { readonly reference: MailReference }
  readonly record: DeliveryRecord
  readonly head: { readonly key: string; readonly field: string }
}

function walkSlice(step: ServerStep, slice: string): StepResult {
  const { server, place, facts, context } = step
  const { shard } = context
  const [webhookId = '', from = '-'] = place.after.split(' ')
  const fact: RangeFact = {
    read: 'range',
    key: queueKey(shard, webhookId, slice),
    from,
    to: '+',
    count: STEP_DELIVERIES,
  }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const entries = facts.range(fact)
  const next =
    entries.length === STEP_DELIVERIES
      ? { ...place, after: `${webhookId} ${entryIdAfter((entries.at(-1) as Entry).id)}` }
      : { ...place, segment: null, after: webhookId }
  const items = entries.map(itemOf)
  if (items.length === 0) return { kind: 'stepped', place: next }
  const key = deliveryKey(shard, webhookId, slice)
  const records: Fact = { read: 'fields', key, fields: items.map(({ deliveryId }) => shortId(deliveryId)) }
  if (!facts.has(records)) return { kind: 'need', facts: [records] }
  const answered = items.flatMap((item): Answered[] => {
    const { deliveryId, reference } = item
    const record = unpackRecord(facts.field(key, shortId(deliveryId)), msOf(deliveryId))
    if (record.lastResponse === null || (reference.kind !== 'message' && reference.kind !== 'inbound')) return []
    return [{ item: { ...item, reference }, record, head: headOf(shard, server.serverId, reference) }]
  })
  const heads = headFacts(answered)
  if (!heads.every((one) => facts.has(one))) return { kind: 'need', facts: heads }
  const ops = answered.flatMap(({ item, record, head }): Op[] => {
    const packed = facts.field(head.key, head.field)
    const { deliveryId, reference } = item
    const isErased =
      reference.kind === 'inbound' ? packed === null : packed !== null && isErasedHead(unpackHead(packed, 0))
    return isErased ? [recordOp({ shard, webhookId, deliveryId, slice }, { ...record, lastResponse: null })] : []
  })
  return { kind: 'stepped', place: next, staged: { ops } }
}

/** Where the head of a message is: of a received one without content there is none. */
function headOf(shard: number, serverId: string, reference: MailReference): Answered['head'] {
  const { messageId, segment } = reference
  const field = shortId(messageId)
  if (reference.kind === 'inbound') return { key: contentHeadKey(shard, serverId, messageId), field }
  return { key: headKey(shard, serverId, segment), field }
}

/** One read for each hash. */
function headFacts(answered: readonly Answered[]): Fact[] {
  const fields = new Map<string, Set<string>>()
  for (const { head } of answered) fields.set(head.key, (fields.get(head.key) ?? new Set()).add(head.field))
  return Array.from(fields, ([key, names]): Fact => ({ read: 'fields', key, fields: [...names] }))
}
