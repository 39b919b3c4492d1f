/**
 * delivery-outcome - the effect of an attempt's outcome on its recipient.
 *
 * States: an open recipient (accepted, deferred) becomes delivered, bounced or failed, or waits for its next attempt.
 * A temporary failure whose next attempt would come too late ends it as bounced, expired.
 *
 * Guarantees: an outcome never changes a recipient in a final state; a final outcome counts for any attempt, other
 * outcomes only for the current one; the attachments' bytes are removed in the commit that ends a message's last
 * recipient. A recipient without a row is fresh, so the row does not show whether the message still exists. Its age
 * does, and so do the counters of its server, which exist for every server that has accepted mail. Both are known
 * without a read.
 *
 * A hard bounce suppresses the address in the same commit.
 *
 * Spec message.states, message.hard, delivery.retry, delivery.expiry, retention.attachments
 */

import type {
  CommandType,
  Done,
  Due,
  Fact,
  Facts,
  HashFields,
  Need,
  Op,
  OutcomeBody,
  States,
} from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { classifyReply } from '../../mail/classify.ts'
import { DELIVERY_AGE_MAX_MS, nextAttemptAtMs, parseRetryHintMs } from '../../mail/retry.ts'
import { streamOwner } from '../../state/complaint-threshold.ts'
import { hashFraction } from '../../state/hash-fraction.ts'
import { endNotes } from '../../state/message/end.ts'
import { type AttemptItem, parseAttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import {
  isOpen,
  packStatus,
  type RecipientState,
  type StatusEvent,
  statusField,
  unpackStatus,
} from '../../state/message/status.ts'
import { STATUS_BYTES } from '../../state/segment.ts'
import { type ServerCounters, serverOwner, serverRef } from '../../state/server.ts'
import { eventLogOwner } from '../../state/webhook/event-log.ts'
import type { MessageReference } from '../../state/webhook/item.ts'
import { isPastLog } from '../authorization/log-age.ts'
import { reportLogged } from '../bounce-mail/events/report-event.ts'
import { unsubscribeDue } from '../suppression/click.ts'
import {
  countDelivery,
  NO_WRITES,
  type StreamWrites,
  type SuppressTurn,
  suppressRecipient,
} from '../suppression/suppress.ts'
import { type Announced, announced, announceMessages } from '../webhook/announce.ts'
import { type AttemptOutcome, routeOf } from './attempt-outcome.ts'
import { type FiguresWrites, figuresAfter, figuresOwners } from './figures.ts'
import { onLastRecipient } from './on-last-recipient.ts'
import { countersAfterAttempt } from './segment-growth.ts'
import { withoutScheduled } from './send-time.ts'
import { mayBeSealed, thaw } from './thaw.ts'

const EXPIRED_CLASS = 'MessageExpired'
const ABANDONED_CLASS = 'Uncategorized'

type DeliveryTurn = {
  readonly body: OutcomeBody<AttemptOutcome>
  readonly item: AttemptItem
  readonly state: RecipientState
  readonly acceptedAtMs: number
  readonly nowMs: number
}

export const attemptOutcome: CommandType<OutcomeBody<AttemptOutcome>, null> = {
  name: 'delivery outcome',
  frees: true,
  entities: (body) => [serverRef(parseAttemptItem(body.item).serverId)],
  counters: (body) => outcomeCounters(parseAttemptItem(body.item)),
  facts: (body, states, { shard }) => outcomeFacts(shard, parseAttemptItem(body.item), states),
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const item = parseAttemptItem(body.item)
    const counters = states.counter<ServerCounters>(serverOwner(item.serverId))
    const isPast = isPastLog(item, { states, facts, context })
    if (typeof isPast !== 'boolean') return isPast
    if (counters === null || isPast) return NOTHING
    const rows = new MessageRows(shard, item)
    const packed = rows.status(facts, item)
    const acceptedAtMs = msOf(item.messageId)
    const state = unpackStatus(packed, acceptedAtMs)
    // A recipient of a sealed segment is in a final state, and its row is in the object, so a missing row does not
    // mean fresh.
    if (!isOpen(state.status) || rows.isSealed(facts)) return NOTHING
    // The 48 hours of a scheduled message count from its time.
    const delivery = { body, item, state, acceptedAtMs: Math.max(acceptedAtMs, item.sendAtMs ?? 0), nowMs }
    const again = waitsAgain(delivery)
    if (again !== null) return again
    const attempts = attemptsAfter(delivery)
    const event = decideEvent(delivery, attempts)
    if (event === null) return NOTHING
    const told = [event.event, ...decideComplaint(body.outcome, event.event)]
    const turn = { states, facts, context }
    const listed = suppressTold(turn, { item, told, hmac: body.outcome?.hmac ?? null })
    const announcement = announceMessages(announceOutcome(item, told, state.events.length), turn)
    const { streamId, tagHash, classification: deferralClass } = body.outcome ?? {}
    const figures = figuresAfter(item, { told, before: state.events, streamId, tagHash, deferralClass }, turn)
    if ('kind' in listed || 'kind' in figures || announcement.kind === 'need')
      return bothNeeds(listed, figures, announcement)
    const events = [...state.events, ...told]
    const sizeBytes = item.recipient === 0 ? (state.sizeBytes ?? body.outcome?.sizeBytes ?? null) : null
    const after = packStatus({ attempts, nextAttemptAtMs: event.nextAtMs, events, sizeBytes }, acceptedAtMs)
    const thawed = thaw(rows, facts, context)
    const ops: Op[] = [rows.statusOp(item, after), ...listed.ops, ...figures.ops, ...thawed.ops]
    ops.push(...sizeOps(facts, { rows, item, acceptedAtMs, sizeBytes: body.outcome?.sizeBytes ?? null }))
    const grown = Math.max(after.length, STATUS_BYTES) - Math.max(packed?.length ?? 0, STATUS_BYTES)
    const reported = reportLogged(states, {
      ...{ name: body.item, event: event.event, before: state.events, nowMs, counters },
      acceptedAtMs: delivery.acceptedAtMs,
      head: item.hasAttachments ? rows.head(facts, item.short) : null,
    })
    const begun = withoutScheduled(reported.counters, item.sendAtMs, delivery)
    const counted = [
      ...countersAfterAttempt(begun, item, grown, begun !== counters),
      ...listed.counters,
      ...figures.counters,
    ]
    const { lane, item: name } = body
    const done: Done<null> = { kind: 'done', reply: null, ops, counters: counted }
    if (event.nextAtMs !== null)
      return announced(
        { ...done, due: [{ lane, item: name, atMs: event.nextAtMs }, ...thawed.due, ...reported.due] },
        announcement.staged,
      )
    const last = onLastRecipient(facts, context, item)
    ops.push(...last.ops)
    const due = [...last.due, ...clickDue(body, { item, told, nowMs }), ...thawed.due, ...reported.due]
    const notes = endNotes(item, event.event, { lane, attempts })
    const end = { done: [{ lane, item: name }], due, forgets: forgotten(item, rows), notes }
    const ended = { ...done, events: listed.events, ...end }
    return announced(ended, announcement.staged)
  },
}

const NOTHING: Done<null> = { kind: 'done', reply: null }

/**
 * Rows that are not read any more once a recipient is in a final state. Other outcomes look at the first one; with
 * attachments, at all.
 */
function forgotten(item: AttemptItem, rows: MessageRows): HashFields[] {
  const { short, recipient, recipients, hasAttachments } = item
  const isAsked = hasAttachments || (recipient === 0 && recipients > 1)
  return isAsked ? [] : [rows.statuses([statusField(short, recipient)])]
}

/** Owners of the counters of an outcome, for mail on a broadcast stream also the stream. */
function outcomeCounters({ serverId, broadcastStreamId }: AttemptItem): string[] {
  const owners = [serverOwner(serverId), ...figuresOwners(serverId), eventLogOwner(serverId)]
  if (broadcastStreamId !== null) owners.push(streamOwner(broadcastStreamId))
  return owners
}

/** The complaint that follows a simulated delivery at once. */
function decideComplaint(outcome: AttemptOutcome | null, { event, occurredAtMs }: StatusEvent): StatusEvent[] {
  const feedbackType = outcome?.complaint
  if (feedbackType === undefined || event !== 'delivered') return []
  return [{ event: 'spam_complaint', occurredAtMs, feedbackType }]
}

/** The timer of a simulated click, as if the recipient had clicked at the delivery. Spec unsubscribe.simulated */
function clickDue(
  { outcome }: OutcomeBody<AttemptOutcome>,
  { item, told, nowMs }: { readonly item: AttemptItem; readonly told: readonly StatusEvent[]; readonly nowMs: number },
): Due[] {
  const { clicks, hmac } = outcome ?? {}
  if (!clicks || hmac == null || item.broadcastStreamId === null || told[0]?.event !== 'delivered') return []
  return [unsubscribeDue({ source: 'one_click', hmac, item }, nowMs)]
}

interface Told {
  readonly item: AttemptItem
  readonly told: readonly StatusEvent[]
  readonly hmac: string | null
}

/** The effect of the events on the stream's list and counters, or the reads needed first. */
function suppressTold(turn: SuppressTurn, { item, told, hmac }: Told): StreamWrites | Need {
  const { broadcastStreamId } = item
  const last = told.at(-1)
  if (hmac !== null && last?.event === 'spam_complaint') {
    const said = { code: null, response: null }
    return suppressRecipient(turn, { item, hmac, reason: 'spam_complaint', ...said, delivered: true })
  }
  if (hmac !== null && last?.event === 'bounced' && last.hard) {
    const { code, response } = last
    return suppressRecipient(turn, { item, hmac, reason: 'hard_bounce', code, response })
  }
  if (broadcastStreamId === null || last?.event !== 'delivered') return NO_WRITES
  return countDelivery(turn, broadcastStreamId)
}

/** Status of the recipient and of the first one; with attachments, of all, and the rows that name their bytes. */
function outcomeFacts(shard: number, item: AttemptItem, states: States): Fact[] {
  const { messageId, short, recipient, recipients, hasAttachments } = item
  const rows = new MessageRows(shard, item)
  const counters = states.counter<ServerCounters>(serverOwner(item.serverId))
  const sealed = mayBeSealed(counters, item) ? [rows.sealedFact()] : []
  if (!hasAttachments)
    return [rows.statusesFact(recipient === 0 ? [short] : [short, statusField(short, recipient)]), ...sealed]
  return [
    ...sealed,
    rows.statusesFact(Array.from({ length: recipients }, (_, index) => statusField(short, index))),
    rows.headsFact([short]),
    rows.entryFact(messageId),
  ]
}

/** The events to announce, by their place among those of the recipient. */
export function announceOutcome(
  { serverId, segment, messageId, recipient }: AttemptItem,
  told: readonly StatusEvent[],
  first: number,
) {
  const news: MessageReference[] = []
  for (const [place, { event }] of told.entries())
    if (event !== 'cancelled')
      news.push({ kind: 'message', event, segment, messageId, recipient, index: first + place })
  return { serverId, news }
}

/** One round of reading for both. */
export function bothNeeds(...asked: readonly (StreamWrites | FiguresWrites | Announced | Need)[]): Need {
  const needs = asked.filter((one): one is Need => 'kind' in one && one.kind === 'need')
  return {
    kind: 'need',
    entities: needs.flatMap(({ entities }) => entities ?? []),
    counters: needs.flatMap(({ counters }) => counters ?? []),
    facts: needs.flatMap(({ facts }) => facts ?? []),
  }
}

/** Attempts made so far. Returned attempts do not count; an abandoned item counts all that were begun. */
function attemptsAfter({ body: { outcome, attempt }, state }: DeliveryTurn): number {
  if (outcome?.uncounted) return state.attempts
  return outcome === null ? Math.max(state.attempts, attempt) : state.attempts + 1
}

/**
 * The effect of a returned attempt, only a new time; null if it was not returned, or the mail is too old.
 *
 * Spec delivery.returned
 */
function waitsAgain({ body, acceptedAtMs, nowMs }: DeliveryTurn): Done<null> | null {
  const { outcome, current, lane, item } = body
  if (outcome?.result !== 'returned') return null
  if (!current) return NOTHING
  const atMs = nowMs + (outcome.retryAfterMs ?? 0)
  if (atMs > acceptedAtMs + DELIVERY_AGE_MAX_MS) return null
  return { kind: 'done', reply: null, due: [{ lane, item, atMs }] }
}

/** The end of mail that waited too long for its site, with the last reply and its class. */
function expiredWaiting({ state, nowMs }: DeliveryTurn): StatusEvent {
  const last = state.events.at(-1)
  const { code, response } = last !== undefined && 'response' in last ? last : { code: null, response: null }
  const classification = code === null || response === null ? EXPIRED_CLASS : classOfDeferral(code, response)
  const event = { event: 'bounced', occurredAtMs: nowMs, code, response, classification, hard: false } as const
  return { ...event, expired: true, status: 'bounced' }
}

/** A 5xx that only deferred was a server's greeting or its answer to EHLO, and is not about a recipient. */
function classOfDeferral(code: number, response: string): string {
  return classifyReply({ phase: code >= 500 ? 'conn' : 'rcpt', response }).classification
}

/** The event that the outcome adds to the recipient, and the time of the next attempt; null if it does not count. */
function decideEvent(turn: DeliveryTurn, attempts: number): { event: StatusEvent; nextAtMs: number | null } | null {
  const { body, nowMs } = turn
  const { outcome } = body
  if (outcome === null) return { event: failedEvent(nowMs), nextAtMs: null }
  if (outcome.result === 'returned') return { event: expiredWaiting(turn), nextAtMs: null }
  if (outcome.result === 'deferred') return body.current ? deferredOrExpired(outcome, turn, attempts) : null
  const { code, response } = outcome
  if (outcome.result === 'delivered')
    return { event: { event: 'delivered', occurredAtMs: nowMs, code, response, ...routeOf(outcome) }, nextAtMs: null }
  const status = outcome.suppressed ? 'suppressed' : outcome.unbuildable ? 'failed' : 'bounced'
  return { event: bounced(outcome, { nowMs, status, expired: outcome.expired }), nextAtMs: null }
}

function deferredOrExpired(
  outcome: AttemptOutcome,
  { body, acceptedAtMs, nowMs }: DeliveryTurn,
  attempt: number,
): { event: StatusEvent; nextAtMs: number | null } {
  const { code, response, retryAfterMs } = outcome
  const { item } = body
  const unit = hashFraction(`${item}#${attempt}`)
  const hintMs = response === null ? null : parseRetryHintMs(response)
  const nextAtMs =
    retryAfterMs === null ? nextAttemptAtMs({ attempt, acceptedAtMs, nowMs, unit, hintMs }) : nowMs + retryAfterMs
  if (nextAtMs !== null)
    return { event: { event: 'deferred', occurredAtMs: nowMs, code, response, ...routeOf(outcome) }, nextAtMs }
  const classification = outcome.classification ?? EXPIRED_CLASS
  const last = { ...outcome, classification, hard: false }
  return { event: bounced(last, { nowMs, status: 'bounced', expired: true }), nextAtMs: null }
}

function bounced(
  { code, response, classification, hard, route }: AttemptOutcome,
  { nowMs, status, expired }: { nowMs: number; status: 'bounced' | 'failed' | 'suppressed'; expired: boolean },
): StatusEvent {
  const reply = { code, response, ...(route !== undefined && { route }) }
  return { event: 'bounced', occurredAtMs: nowMs, ...reply, classification, hard, expired, status }
}

/** The end of a recipient to which nothing can be sent any more, for any reason. */
export function failedEvent(nowMs: number): StatusEvent {
  return {
    event: 'bounced',
    occurredAtMs: nowMs,
    code: null,
    response: null,
    classification: ABANDONED_CLASS,
    hard: false,
    expired: false,
    status: 'failed',
  }
}

/** The size as built is stored with the first recipient, even if another one's attempt built the message. */
function sizeOps(
  facts: Facts,
  of: { rows: MessageRows; item: AttemptItem; acceptedAtMs: number; sizeBytes: number | null },
): Op[] {
  const { rows, item, acceptedAtMs, sizeBytes } = of
  if (item.recipient === 0 || sizeBytes === null) return []
  const { short } = item
  const first = unpackStatus(rows.status(facts, { short, recipient: 0 }), acceptedAtMs)
  if (first.sizeBytes !== null) return []
  return [rows.statusOp({ short, recipient: 0 }, packStatus({ ...first, sizeBytes }, acceptedAtMs))]
}
