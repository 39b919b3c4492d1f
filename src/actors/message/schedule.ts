/**
 * schedule - cancels a scheduled message, or gives it another time.
 *
 * States: a scheduled message waits in its lanes until its time; once an attempt of any recipient has begun, neither
 * order is accepted. Both act on all recipients in one commit, so no recipient gets a cancelled message.
 *
 * The items of a message have its time in their names, so another time is another item. The caller has read the
 * message before. If its time has changed since then, the reply is `changed`, and the caller reads it again.
 *
 * Spec message.cancel, message.reschedule
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Fact,
  Facts,
  Op,
  Staged,
  States,
} from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { claimsKey, laneKey } from '../../../cluster/keyspace.ts'
import { attachmentExpiresAtMs } from '../../state/age.ts'
import { attachmentKeepOps, rawKeepOps } from '../../state/message/content-part.ts'
import { type Head, packHead, unpackHead } from '../../state/message/head.ts'
import { itemPrefix, itemSuffix } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { packStatus, statusField, unpackStatus } from '../../state/message/status.ts'
import { changeScheduled } from '../../state/scheduled.ts'
import { type ServerCounters, serverOwner } from '../../state/server.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { authorizeKeyHolder, type TokenOrder, tokenOrderEntities } from '../authorization/token.ts'
import { endFiles } from './end-content.ts'
import { isUnderWay } from './operate-queue.ts'
import { sendTimeFault } from './send-time.ts'
import { mayBeSealed } from './thaw.ts'

/** A scheduled message as the asker has read it. */
export interface ScheduledMessage {
  readonly messageId: string
  readonly segment: string
  readonly contentId: string
  readonly hasAttachments: boolean
  readonly broadcastStreamId: string | null
  readonly sendAtMs: number
  /**
   * For each recipient the lanes in which its item may be, because the settings may have changed since its acceptance.
   */
  readonly lanes: readonly (readonly string[])[]
}

export interface OrderScheduledBody extends TokenOrder {
  readonly serverId: string
  readonly test: boolean
  readonly message: ScheduledMessage
  /** The new time, ms; null cancels the message. */
  readonly sendAtMs: number | null
}

export interface OrderScheduledReply {
  /** `changed` means that the message has another time than the caller has read. */
  readonly kind: 'ordered' | 'changed'
}

type Decided = Decision<OrderScheduledReply | Refused>

export const orderScheduled: CommandType<OrderScheduledBody, OrderScheduledReply | Refused> = {
  name: 'order-scheduled',
  entities: tokenOrderEntities,
  counters: ({ serverId }) => [serverOwner(serverId)],
  facts: (body, states, { shard }) => [
    headFact(shard, body),
    statusFact(shard, body),
    ...itemFacts(shard, body),
    ...sealedReads(shard, body, states),
  ],
  decide(body, states, facts, context): Decided {
    const holder = authorizeKeyHolder(body, states, { facts, context })
    if ('kind' in holder) return holder
    const { message, sendAtMs, test } = body
    const rows = rowsOf(context.shard, body)
    const packed = rows.head(facts, shortId(message.messageId))
    if (packed === null) return refuse(rows.isSealed(facts) ? 'message_not_scheduled' : 'not_found')
    const at = { test, nowMs: context.nowMs, acceptedAtMs: msOf(message.messageId) }
    const fault = sendAtMs === null ? null : sendTimeFault(sendAtMs, at)
    if (fault !== null) return refuse('invalid_request', { sendAt: fault })
    const head = unpackHead(packed, message.lanes.length)
    if (head.sendAtMs === undefined) return refuse('message_not_scheduled')
    const stage = findStage(facts, context, body)
    if (stage === 'cancelled' && sendAtMs === null) return { kind: 'done', reply: { kind: 'ordered' } }
    if (stage !== 'waiting') return refuse('message_not_scheduled')
    if (head.sendAtMs !== message.sendAtMs) return { kind: 'done', reply: { kind: 'changed' } }
    const waiting = waitingItems(facts, context.shard, body)
    const staged =
      sendAtMs === null ? cancel(body, context, { head }) : move(body, context, { head, waiting, sendAtMs })
    if (staged === null) return refuse('message_not_scheduled')
    const owner = serverOwner(body.serverId)
    const counters = states.counter<ServerCounters>(owner)
    const value = { ...counters, scheduled: scheduledAfter(counters, body, context.nowMs) }
    return {
      kind: 'done',
      reply: { kind: 'ordered' },
      ...staged,
      done: waiting.map(({ lane, item }) => ({ lane, item })),
      counters: [{ owner, value }],
    }
  },
}

interface WaitingItem {
  readonly lane: string
  readonly item: string
  readonly recipient: number
}

/** Whether the message still waits: whole, or cancelled before, or an attempt has begun. */
function findStage(facts: Facts, { shard }: Context, body: OrderScheduledBody): 'waiting' | 'cancelled' | 'begun' {
  const { key, fields } = statusFact(shard, body)
  const acceptedAtMs = msOf(body.message.messageId)
  const states = fields.map((field) => unpackStatus(facts.field(key, field), acceptedAtMs))
  if (states.every(({ status }) => status === 'cancelled')) return 'cancelled'
  const isFresh = states.every(({ attempts, events }) => attempts === 0 && events.length === 0)
  const isClaimed = itemsOf(body).some((item) => isUnderWay(facts.field(claimsKey(shard), item)))
  return isFresh && !isClaimed ? 'waiting' : 'begun'
}

function cancel(body: OrderScheduledBody, context: Context, { head }: { head: Head }): Staged {
  const { shard, nowMs } = context
  const { messageId, contentId } = body.message
  const { fields } = statusFact(shard, body)
  const events = [{ event: 'cancelled', occurredAtMs: nowMs }] as const
  const row = packStatus({ attempts: 0, nextAttemptAtMs: null, events, sizeBytes: null }, msOf(messageId))
  const statuses = fields.flatMap((field) => [field, row])
  const ops = rowsOf(shard, body).changeOps({ heads: [], statuses })
  // On a test server attachments stay as long as the text. Spec retention.attachments
  if (!body.message.hasAttachments || body.test) return { ops }
  const files = endFiles(context, { contentId, test: false, head })
  return { ops: [...ops, ...files.ops], due: files.due }
}

/**
 * Null if the item of a recipient is in none of its lanes, because its account's mail is held and its time has come.
 */
function move(
  body: OrderScheduledBody,
  context: Context,
  { head, waiting, sendAtMs }: { head: Head; waiting: readonly WaitingItem[]; sendAtMs: number },
): Staged | null {
  const { message } = body
  const { shard, nowMs } = context
  if (waiting.length < message.lanes.length) return null
  const ops: Op[] = [rowsOf(shard, body).headOp(shortId(message.messageId), packHead({ ...head, sendAtMs }))]
  const { attachments, stored, raw } = head
  if (message.hasAttachments && stored?.files !== true) {
    const endsAtMs = attachmentExpiresAtMs(msOf(message.messageId), { sendAtMs, test: body.test })
    const place = { shard, contentId: message.contentId, endsAtMs }
    const sizes = attachments.map(({ size }) => size)
    ops.push(...(raw === null ? attachmentKeepOps(place, sizes) : rawKeepOps(place, raw.bytes)))
  }
  const due = waiting.map(({ lane, recipient }): Due => {
    return { lane, item: itemOf(body, recipient, sendAtMs), atMs: Math.max(sendAtMs, nowMs) }
  })
  return { ops, due }
}

function scheduledAfter(counters: ServerCounters | null, { message, sendAtMs }: OrderScheduledBody, nowMs: number) {
  const recipients = message.lanes.length
  const left = changeScheduled(counters?.scheduled, { sendAtMs: message.sendAtMs, change: -recipients, nowMs })
  return sendAtMs === null ? left : changeScheduled(left, { sendAtMs, change: recipients, nowMs })
}

function waitingItems(facts: Facts, shard: number, body: OrderScheduledBody): WaitingItem[] {
  return body.message.lanes.flatMap((lanes, recipient) => {
    const item = itemOf(body, recipient, body.message.sendAtMs)
    const lane = lanes.find((one) => facts.score(laneKey(shard, one), item) !== null)
    return lane === undefined ? [] : [{ lane, item, recipient }]
  })
}

function itemsOf(body: OrderScheduledBody): string[] {
  return body.message.lanes.map((_, recipient) => itemOf(body, recipient, body.message.sendAtMs))
}

function itemOf({ serverId, message }: OrderScheduledBody, recipient: number, sendAtMs: number): string {
  const { segment, messageId, hasAttachments, broadcastStreamId, lanes } = message
  const of = { recipients: lanes.length, hasAttachments, broadcastStreamId, sendAtMs }
  return itemPrefix(serverId, segment, shortId(messageId)) + itemSuffix(recipient, of)
}

function rowsOf(shard: number, { serverId, message: { segment } }: OrderScheduledBody): MessageRows {
  return new MessageRows(shard, { serverId, segment })
}

/** All recipients of a sealed segment are in a final state. */
function sealedReads(shard: number, body: OrderScheduledBody, states: States): Fact[] {
  const counters = states.counter<ServerCounters>(serverOwner(body.serverId))
  return mayBeSealed(counters, body.message) ? [rowsOf(shard, body).sealedFact()] : []
}

function headFact(shard: number, body: OrderScheduledBody) {
  return rowsOf(shard, body).headsFact([shortId(body.message.messageId)])
}

function statusFact(shard: number, body: OrderScheduledBody) {
  const { messageId, lanes } = body.message
  return rowsOf(shard, body).statusesFact(lanes.map((_, recipient) => statusField(shortId(messageId), recipient)))
}

function itemFacts(shard: number, body: OrderScheduledBody): Fact[] {
  const items = itemsOf(body)
  const scores = body.message.lanes.flatMap((lanes, recipient) =>
    lanes.map((lane): Fact => ({ read: 'score', key: laneKey(shard, lane), member: items[recipient] as string })),
  )
  return [...scores, { read: 'fields', key: claimsKey(shard), fields: items }]
}
