/**
 * record-report - a later report about a recipient, either a bounce after delivery or a complaint.
 *
 * States (message.states): only a delivered recipient becomes bounced; a complaint changes no status. While an attempt
 * is in flight, the meaning of a report is undecided, and it must be reported again.
 *
 * Guarantees: at most one bounce and one complaint for each recipient; nothing for a message past its age;
 * suppression, event and counters come in one commit.
 *
 * Spec bounce.late, bounce.once, complaint.once, message.states
 */

import type { CommandType, Context, Done, States } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { BOUNCE_DAYS_MAX } from '../../../schemas/limits.ts'
import { classifyFeedback } from '../../mail/report/arf.ts'
import type { Dsn } from '../../mail/report/dsn.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { endNotes } from '../../state/message/end.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { type AttemptItem, parseAttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldDue } from '../../state/message/sealed.ts'
import { isOpen, packStatus, type RecipientState, type StatusEvent, unpackStatus } from '../../state/message/status.ts'
import { STATUS_BYTES } from '../../state/segment.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { eventLogOwner } from '../../state/webhook/event-log.ts'
import { isPastLog } from '../authorization/log-age.ts'
import { reportLogged } from '../bounce-mail/events/report-event.ts'
import { NO_WRITES, suppressRecipient } from '../suppression/suppress.ts'
import { announced, announceMessages } from '../webhook/announce.ts'
import { announceOutcome, bothNeeds } from './delivery-outcome.ts'
import { figuresAfter, figuresOwners } from './figures.ts'
import { countersAfterAttempt } from './segment-growth.ts'
import { mayBeSealed, thaw } from './thaw.ts'

/** A report about the recipient that its return path names. */
export type Report =
  | Extract<Dsn, { kind: 'bounce' }>
  | { readonly kind: 'complaint'; readonly feedbackType: string | null }

export interface ReportBody {
  /** The recipient, by the name of its item. */
  readonly item: string
  /** HMAC of its address within the account; null once the address is erased. */
  readonly hmac: string | null
  readonly report: Report
}

/**
 * `open`: it may be reported again once the attempt that is under way has ended. `sealed` means that the message is
 * being recalled from its segment, and the report can be repeated in a moment.
 */
export type ReportReply = 'recorded' | 'ignored' | 'open' | 'sealed'

export const recordReport: CommandType<ReportBody, ReportReply> = {
  name: 'record-report',
  frees: true,
  entities: (body) => [serverRef(parseAttemptItem(body.item).serverId)],
  counters(body) {
    const { serverId } = parseAttemptItem(body.item)
    return [serverOwner(serverId), ...figuresOwners(serverId), eventLogOwner(serverId)]
  },
  facts(body, states, { shard }) {
    const item = parseAttemptItem(body.item)
    const rows = new MessageRows(shard, item)
    const counters = states.counter<ServerCounters>(serverOwner(item.serverId))
    const sealed = mayBeSealed(counters, item) ? [rows.sealedFact()] : []
    return [rows.statusFact(item), rows.headsFact([item.short]), ...sealed]
  },
  decide({ item: name, hmac, report }, states, facts, context) {
    const item = parseAttemptItem(name)
    const counters = states.counter<ServerCounters>(serverOwner(item.serverId))
    const isPast = isPastLog(item, { states, facts, context })
    if (typeof isPast !== 'boolean') return isPast
    if (counters === null || isPast) return answer('ignored')
    const rows = new MessageRows(context.shard, item)
    const packed = rows.status(facts, item)
    if (packed === null && rows.isSealed(facts)) return recall(item, states, context.nowMs)
    const state = unpackStatus(packed, msOf(item.messageId))
    const head = rows.head(facts, item.short)
    const isErased = hmac === null || (head !== null && isErasedHead(unpackHead(head, 0)))
    const event = decideEvent(report, { item, state, nowMs: context.nowMs, isErased })
    if (typeof event === 'string') return answer(event)
    const turn = { states, facts, context }
    const listed = listFor(event, hmac, { item, turn })
    const announcement = announceMessages(announceOutcome(item, [event], state.events.length), turn)
    const figures = figuresAfter(item, { told: [event], before: state.events }, turn)
    if ('kind' in listed || 'kind' in figures || announcement.kind === 'need')
      return bothNeeds(listed, figures, announcement)
    const reported = reportLogged(states, {
      ...{ name, event, before: state.events, acceptedAtMs: msOf(item.messageId), head, counters },
      nowMs: context.nowMs,
    })
    const after = packStatus({ ...state, events: [...state.events, event] }, msOf(item.messageId))
    const grown = Math.max(after.length, STATUS_BYTES) - Math.max(packed?.length ?? 0, STATUS_BYTES)
    const thawed = thaw(rows, facts, context)
    const done: Done<ReportReply> = {
      ...answer('recorded'),
      ops: [rows.statusOp(item, after), ...listed.ops, ...figures.ops, ...thawed.ops],
      due: [...thawed.due, ...reported.due],
      counters: [
        ...countersAfterAttempt(reported.counters, item, grown, reported.counters !== counters),
        ...listed.counters,
        ...figures.counters,
      ],
      events: listed.events,
      notes: endNotes(item, event, { lane: null, attempts: state.attempts }),
    }
    return announced(done, announcement.staged)
  },
}

function answer(reply: ReportReply): Done<ReportReply> {
  return { kind: 'done', reply }
}

/** Has a message of a sealed segment brought back. */
function recall({ serverId, segment, messageId }: AttemptItem, states: States, nowMs: number): Done<ReportReply> {
  const server = states.get<ServerState | null>(serverRef(serverId))
  if (server === null) return answer('ignored')
  const due = coldDue(server.accountId, { act: 'recall', serverId, segment, messageId }, nowMs)
  return { ...answer('sealed'), due: [due] }
}

interface Judged {
  readonly item: AttemptItem
  readonly state: RecipientState
  readonly nowMs: Context['nowMs']
  readonly isErased: boolean
}

/** The event that a report adds to a recipient, or why it adds none. */
function decideEvent(report: Report, { item, state, nowMs, isErased }: Judged): StatusEvent | 'ignored' | 'open' {
  if (report.kind === 'complaint') {
    const { feedbackType } = report
    const meaning = classifyFeedback(feedbackType ?? '')
    // A recipient who leaves a list still gets receipts.
    if (meaning === 'none' || (meaning === 'opt-out' && item.broadcastStreamId === null)) return 'ignored'
    if (state.status === 'suppressed' || state.events.some(({ event }) => event === 'spam_complaint')) return 'ignored'
    return { event: 'spam_complaint', occurredAtMs: nowMs, feedbackType }
  }
  // A server may bounce a message that it accepted before its answer is recorded here.
  if (isOpen(state.status)) return 'open'
  if (state.status !== 'delivered' || nowMs - state.statusAtMs > BOUNCE_DAYS_MAX * DAY_MS) return 'ignored'
  const { code, classification, hard, expired } = report
  // A report about an erased person may name the person in an unrecognizable form.
  const response = isErased ? null : report.response
  return { event: 'bounced', occurredAtMs: nowMs, code, response, classification, hard, expired, status: 'bounced' }
}

function listFor(
  event: StatusEvent,
  hmac: string | null,
  { item, turn }: { item: AttemptItem; turn: Parameters<typeof suppressRecipient>[0] },
): ReturnType<typeof suppressRecipient> {
  if (hmac === null) return NO_WRITES
  if (event.event === 'spam_complaint')
    return suppressRecipient(turn, { item, hmac, reason: 'spam_complaint', code: null, response: null })
  if (event.event !== 'bounced' || !event.hard) return NO_WRITES
  const { code, response } = event
  return suppressRecipient(turn, { item, hmac, reason: 'hard_bounce', code, response })
}
