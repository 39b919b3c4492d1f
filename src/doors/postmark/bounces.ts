/**
 * bounces - /bounces, PUT /bounces/{id}/activate and GET /deliverystats, made of the events of the last 30 days
 *
 * A bounce is one of our events bounced, spam_complaint and unsubscribed.
 */

import { msOf } from '../../../cluster/id.ts'
import type { MessageSummary } from '../../../schemas/message.ts'
import type { EdgeRequest } from '../../http/request.ts'
import type { Answer } from '../../http/respond.ts'
import { BOUNCE_TYPES, bounceDetails, bounceNumber, classifyBounce, msOfBounce } from '../../views/format/bounce.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { type WalkedEvent, walkEvents } from '../common/event-walk.ts'
import { isAccepted, isReply, type OwnApi, refuseFields } from '../common/own-api.ts'
import { decodeParam } from '../common/path-address.ts'
import { CODES, refuseAs } from './errors.ts'
import { instant, parseListPart, parseSpan, readParameters } from './query.ts'
import { findStream, serverNumber, streamNames } from './streams.ts'
import { liftAddress } from './suppressions.ts'

const EVENTS = ['bounced', 'spam_complaint', 'unsubscribed'] as const
/** Bounces that the figures count. */
const COUNTED_MAX = 20_000
/** Messages that are read at once. */
const READS_AT_ONCE = 4
/** An event is written down at its time or, if the clock went back, soon after. */
const LATE_MS = 60_000
const KNOWN = [
  'count',
  'offset',
  'type',
  'inactive',
  'emailfilter',
  'tag',
  'messageid',
  'fromdate',
  'todate',
  'messagestream',
]

/** GET /bounces */
export const postmarkListBounces: DoorHandler = async (request, own) => {
  const { parameters, issues } = readParameters(request, KNOWN)
  const { count, offset } = parseListPart(parameters, issues)
  const { fromMs, toMs } = parseSpan(parameters, issues)
  const { type, inactive, emailfilter, tag, messageid, messagestream } = parameters
  if (issues.length > 0) return refuseFields(issues)
  const filter: Record<string, string> = {}
  if (messagestream !== undefined) {
    const stream = await findStream(request, own, messagestream)
    if ('answer' in stream) return stream.answer
    filter.streamId = stream.streamId
  }
  if (tag !== undefined) filter.tag = tag
  if (messageid !== undefined) filter.messageId = messageid
  const part = emailfilter?.toLowerCase() ?? ''
  const keep = (event: WalkedEvent) =>
    (type === undefined || classifyBounce(event).Type.toLowerCase() === type.toLowerCase()) &&
    (inactive === undefined || String(isInactive(event)) === inactive.toLowerCase()) &&
    event.recipient.toLowerCase().includes(part)
  const walked = await walkEvents(request, own, {
    events: EVENTS,
    filter,
    fromMs,
    toMs,
    enough: count + offset + 1,
    keep,
  })
  if ('answer' in walked) return walked.answer
  const bounces = await showAll(request, own, walked.events.slice(offset, offset + count))
  if ('answer' in bounces) return bounces.answer
  return { status: 200, json: { TotalCount: walked.events.length, Bounces: bounces.items } }
}

/** GET /bounces/{id} */
export const postmarkReadBounce: DoorHandler = async (request, own) => {
  const found = await findBounce(request, own)
  if ('answer' in found) return found.answer
  const bounces = await showAll(request, own, [found.event])
  return 'answer' in bounces ? bounces.answer : { status: 200, json: bounces.items[0] }
}

/** PUT /bounces/{id}/activate: removes the address from the suppression list of the stream. */
export const postmarkActivateBounce: DoorHandler = async (request, own) => {
  const found = await findBounce(request, own)
  if ('answer' in found) return found.answer
  const { streamId, recipient: address } = found.event
  const lifted = await liftAddress(request, own, { streamId, address })
  const isGone = isReply(lifted) && lifted.status === 404
  if (!isAccepted(lifted) && !isGone) return lifted
  const bounces = await showAll(request, own, [found.event])
  if ('answer' in bounces) return bounces.answer
  const [bounce] = bounces.items
  return { status: 200, json: { Message: 'OK', Bounce: { ...bounce, Inactive: false, CanActivate: false } } }
}

/** GET /deliverystats */
export const postmarkDeliveryStats: DoorHandler = async (request, own) => {
  const walked = await walkEvents(request, own, { events: EVENTS, fromMs: null, toMs: null, enough: COUNTED_MAX })
  if ('answer' in walked) return walked.answer
  const counts = new Map<string, number>()
  const inactive = new Set<string>()
  for (const event of walked.events) {
    const { Type } = classifyBounce(event)
    counts.set(Type, (counts.get(Type) ?? 0) + 1)
    if (isInactive(event)) inactive.add(event.recipient.toLowerCase())
  }
  const Bounces = BOUNCE_TYPES.filter(({ Type }) => counts.has(Type)).map(({ Type, Name }) => {
    return { Type, Name, Count: counts.get(Type) ?? 0 }
  })
  const all = { Name: 'All', Count: walked.events.length }
  return { status: 200, json: { InactiveMails: inactive.size, Bounces: [all, ...Bounces] } }
}

async function findBounce(
  request: EdgeRequest,
  own: OwnApi,
): Promise<{ readonly event: WalkedEvent } | { readonly answer: Answer }> {
  const number = Number(decodeParam(request, 'id'))
  const missing = { answer: refuseAs(404, CODES.unknownBounce, 'Bounce was not found.') }
  if (!Number.isSafeInteger(number) || number < 0) return missing
  const ms = msOfBounce(number)
  const span = { fromMs: ms - LATE_MS, toMs: ms + LATE_MS }
  const keep = (event: WalkedEvent) => bounceNumber(event) === number
  const walked = await walkEvents(request, own, { events: EVENTS, ...span, enough: 1, keep })
  if ('answer' in walked) return walked
  const [event] = walked.events
  return event === undefined ? missing : { event }
}

/** Whether the event put its address on the suppression list. */
function isInactive({ event, details }: Pick<WalkedEvent, 'event' | 'details'>): boolean {
  return event !== 'bounced' || details.hard === true || details.classification === 'Suppressed'
}

/** Bounces with sender and subject of their messages. */
async function showAll(
  request: EdgeRequest,
  own: OwnApi,
  events: readonly WalkedEvent[],
): Promise<{ readonly items: readonly object[] } | { readonly answer: Answer }> {
  const names = await streamNames(request, own)
  if ('answer' in names) return names
  const items: object[] = []
  for (let start = 0; start < events.length; start += READS_AT_ONCE) {
    const some = events.slice(start, start + READS_AT_ONCE)
    const summaries = await Promise.all(some.map((event) => readSummary(request, own, event)))
    for (const [place, summary] of summaries.entries()) {
      if (summary !== undefined && 'answer' in summary) return summary
      const event = some[place] as WalkedEvent
      const MessageStream = names.get(event.streamId) ?? ''
      items.push({ ...shown(event, summary), ServerID: serverNumber(request), MessageStream })
    }
  }
  return { items }
}

/** The summary of an event's message: our search finds it by its time and recipient, and reads no content. */
async function readSummary(
  request: EdgeRequest,
  own: OwnApi,
  { messageId, recipient }: WalkedEvent,
): Promise<MessageSummary | { readonly answer: Answer } | undefined> {
  const ms = msOf(messageId)
  const body = { recipient, submittedFrom: instant(ms), submittedTo: instant(ms + 1), limit: 100 }
  const seen = await own.call('searchMessages', request, { body })
  // The address of an erased recipient is a pseudonym, which no search finds.
  if (isReply(seen) && seen.status === 400) return undefined
  if (!isAccepted(seen)) return { answer: seen }
  const { messages } = seen.json as { readonly messages: readonly MessageSummary[] }
  return messages.find((one) => one.messageId === messageId)
}

function shown(event: WalkedEvent, summary: MessageSummary | undefined): object {
  const { messageId, recipient, occurredAt, tag, details } = event
  const { Type, TypeCode, Name, Description } = classifyBounce(event)
  return {
    RecordType: 'Bounce',
    ID: bounceNumber(event),
    Type,
    TypeCode,
    Name,
    Tag: tag ?? '',
    MessageID: messageId,
    Description,
    Details: bounceDetails(event),
    Email: recipient,
    From: summary?.from.email ?? '',
    BouncedAt: occurredAt,
    DumpAvailable: false,
    Inactive: isInactive(event),
    CanActivate: event.event === 'bounced' && isInactive({ event: event.event, details }),
    Subject: summary?.subject ?? '',
    Content: '',
  }
}
