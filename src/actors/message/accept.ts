/**
 * accept - may these messages be accepted?
 *
 * The decision is the list of steps below, in the order of refusals. The first one that refuses, or answers a replay,
 * ends it. All or nothing over every message of the request; a partial send judges each message (`accept-each.ts`).
 * The writes of an acceptance are in `acceptance.ts`.
 *
 * Guarantees: counts and accepted messages are one commit; a replay counts nothing; a refusal leaves the
 * Idempotency-Key free.
 *
 * Spec refusal.order, request.idempotency, send.refusals, limit.refusal
 */

import type { CommandType, Context, Decision, Fact, Known, Need, Ref, States } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { MESSAGE_BYTES_MAX, SCHEDULED_MAX } from '../../../schemas/limits.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import type { AccountCounters, AccountState } from '../../state/account.ts'
import { sendingFields, sendingRow } from '../../state/domain.ts'
import { sendingKey } from '../../state/keys.ts'
import { limitsOfServer } from '../../state/limit.ts'
import { findRecord, idempotencyFacts } from '../../state/message/idempotency.ts'
import { namingFacts, unreadPersons } from '../../state/person/person.ts'
import { firstRefusal, type Limit } from '../../state/quota.ts'
import { countScheduled } from '../../state/scheduled.ts'
import { SEGMENT_BOUNDS, type SegmentBounds } from '../../state/segment.ts'
import type { ServerCounters, ServerState } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { suppressedFacts } from '../../state/suppression.ts'
import { proves } from '../authorization/proof.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { judgeEach } from './accept-each.ts'
import { acceptAll } from './acceptance.ts'
import { tellReachedCaps, warnOfCaps } from './cap.ts'
import type { AcceptedMessage, RateLeft, RefusedMessage, SendBody, SendReply } from './send.ts'
import { sendTimeFault } from './send-time.ts'
import { type SendNames, type SendTurn, sendNames } from './send-turn.ts'
import { sendWire } from './send-wire.ts'

const NO_FACTS: readonly Fact[] = []

type Step = (turn: SendTurn) => Decision<SendReply> | null

/** The steps after the check of the key, in the order of refusals, first for the request, then for its messages. */
const REQUEST_STEPS: readonly Step[] = [answerBefore, timesAreAhead, isPaidFor, accountMaySend]
/** A partial send refuses a time message by message. */
const PARTIAL_STEPS: readonly Step[] = [answerBefore, isPaidFor, accountMaySend]
const MESSAGE_STEPS: readonly Step[] = [
  streamIsKnown,
  streamKindMaySend,
  domainsAreVerified,
  messagesFit,
  streamIsNotArchived,
  streamIsNotPaused,
]

export const accept = makeAccept(SEGMENT_BOUNDS)

/** The command type, with the given bounds of a segment. */
export function makeAccept(bounds: SegmentBounds): CommandType<SendBody, SendReply> {
  return {
    name: 'accept',
    entities: sendEntities,
    counters: (body) => sendNames(body).counters,
    facts: sendFacts,
    wire: sendWire,
    decide(body, states, facts, context, command) {
      const turn = keyIsLive(body, states, { facts, context, cmdId: command.cmdId, blobs: command.blobs ?? [] })
      if (turn === null) return refuse('unauthorized')
      if ('kind' in turn) return turn
      const answer = firstAnswer(turn, body.partial ? PARTIAL_STEPS : REQUEST_STEPS)
      if (answer !== null) return answer
      return body.partial ? acceptWhatPasses(turn, bounds) : acceptAllOrNone(turn, bounds)
    },
  }
}

function firstAnswer(turn: SendTurn, steps: readonly Step[]): Decision<SendReply> | null {
  for (const step of steps) {
    const answer = step(turn)
    if (answer !== null) return answer
  }
  return null
}

function acceptAllOrNone(turn: SendTurn, bounds: SegmentBounds): Decision<SendReply> {
  const answer = firstAnswer(turn, MESSAGE_STEPS) ?? limitsHold(turn) ?? scheduleHasRoom(turn)
  return answer ?? acceptMessages(turn, { bounds, capped: 0 })
}

// Spec batch.partial
function acceptWhatPasses(turn: SendTurn, bounds: SegmentBounds): Decision<SendReply> {
  const {
    turn: passing,
    refused,
    cappedRecipients,
  } = judgeEach(turn, [timesAreAhead, ...MESSAGE_STEPS], { byLimit: refusedBy, last: scheduleHasRoom })
  if (passing.body.messages.length > 0) return acceptMessages(passing, { bounds, capped: cappedRecipients, refused })
  const { test } = turn.body
  const answer = { kind: 'accepted', messages: [], refused, test, replayed: false, rate: rateAfter(turn, 0) } as const
  const told = cappedRecipients === 0 ? null : tellReachedCaps({ ...turn, requested: cappedRecipients })
  if (told !== null && 'kind' in told) return told
  return { kind: 'refuse', answer, ...(told !== null && { records: told }) }
}

function acceptMessages(
  turn: SendTurn,
  { bounds, capped, refused }: { bounds: SegmentBounds; capped: number; refused?: readonly RefusedMessage[] },
): Decision<SendReply> {
  const unread = unreadFacts(turn)
  if (unread.length > 0) return { kind: 'need', facts: unread }
  const telling = warnOfCaps(turn, capped)
  if (telling !== null && 'kind' in telling) return telling
  const rate = rateAfter(turn, turn.requested)
  return acceptAll(turn, { rate, telling, bounds, ...(refused && { refused }) })
}

function sendEntities(body: SendBody): readonly Ref[] {
  const { entities, account, server } = sendNames(body)
  if (body.messages.every(({ streamId }) => streamId === null)) return entities
  const ids = new Set<string>()
  for (const { streamId } of body.messages) ids.add(streamId ?? body.defaultStreamId)
  return [account, server, ...Array.from(ids, streamRef)]
}

function streamsOf({ messages }: SendBody, { defaultStream }: SendNames, states: States): (StreamState | null)[] {
  const streams: (StreamState | null)[] = []
  for (const { streamId } of messages)
    streams.push(states.get<StreamState | null>(streamId === null ? defaultStream : streamRef(streamId)))
  return streams
}

function sendFacts(body: SendBody, states: States, context: Context, known?: Known): Fact[] {
  const { shard, nowMs } = context
  const facts = namingFacts(placeOf(body, context), hmacsOf(body), known)
  const domains = new Set<string>()
  for (const { from } of body.messages)
    if (needsDomain(body, from.domain)) for (const field of sendingFields(from.domain, body.test)) domains.add(field)
  if (domains.size > 0) facts.push({ read: 'fields', key: sendingKey(shard, body.accountId), fields: [...domains] })
  if (body.idempotency !== null) facts.push(...idempotencyFacts(shard, body.idempotency, nowMs))
  facts.push(...listFacts(body, streamsOf(body, sendNames(body), states), shard))
  return facts
}

function placeOf({ accountId }: SendBody, { shard }: Context) {
  return { shard, accountId }
}

/** Everyone that the messages name, once. */
function hmacsOf({ messages }: SendBody): readonly string[] {
  const [only] = messages
  if (messages.length === 1 && only?.recipients.length === 1) {
    const [sender, recipient] = [only.from.hmac, only.recipients[0]?.hmac as string]
    return sender === recipient ? [sender] : [sender, recipient]
  }
  const hmacs = new Set<string>()
  for (const { from, recipients } of messages) {
    hmacs.add(from.hmac)
    for (const { hmac } of recipients) hmacs.add(hmac)
  }
  return [...hmacs]
}

/** The facts that are still missing in the turn. */
function unreadFacts({ body, streams, facts, context }: SendTurn): readonly Fact[] {
  const persons = unreadPersons(facts, placeOf(body, context), hmacsOf(body))
  const lists = listFacts(body, streams, context.shard)
  return lists.length === 0 ? persons : [...persons, ...lists.filter((fact) => !facts.has(fact))]
}

/** The reads of suppression lists; none for streams without suppressions. Spec send.suppressed */
function listFacts({ messages }: SendBody, streams: readonly (StreamState | null)[], shard: number): readonly Fact[] {
  if (!streams.some((stream) => stream?.hasSuppressions === true)) return NO_FACTS
  const lists = new Map<string, Set<string>>()
  for (const [index, stream] of streams.entries()) {
    if (stream?.hasSuppressions !== true) continue
    const hmacs = lists.get(stream.streamId) ?? new Set()
    for (const { hmac } of messages[index]?.recipients ?? []) hmacs.add(hmac)
    lists.set(stream.streamId, hmacs)
  }
  return [...lists].flatMap(([streamId, hmacs]) => suppressedFacts(shard, streamId, hmacs))
}

// Spec key.revoke
function keyIsLive(
  body: SendBody,
  states: States,
  given: Pick<SendTurn, 'facts' | 'context' | 'cmdId' | 'blobs'>,
): SendTurn | Need | null {
  const names = sendNames(body)
  const account = states.get<AccountState | null>(names.account)
  const server = states.get<ServerState | null>(names.server)
  if (account === null || server === null || server.accountId !== account.accountId) return null
  const held = proves(body, server.keys, given)
  if (held !== true) return held === false ? null : held
  // Its keys have ended with it; a session has not.
  if (server.removedAtMs !== undefined) return null
  const streams = streamsOf(body, names, states)
  const accountCounters = states.counter<AccountCounters>(names.accountOwner)
  const serverCounters = states.counter<ServerCounters>(names.serverOwner)
  const of = { account, counters: accountCounters, nowMs: given.context.nowMs }
  const limits = limitsOfServer(server, serverCounters, of)
  let requested = 0
  for (const { recipients } of body.messages) requested += recipients.length
  const { facts, context, cmdId, blobs } = given
  return {
    body,
    names,
    account,
    server,
    streams,
    accountCounters,
    serverCounters,
    limits,
    requested,
    states,
    facts,
    context,
    cmdId,
    blobs,
  }
}

// Spec request.idempotency
function answerBefore(turn: SendTurn): Decision<SendReply> | null {
  const { idempotency, test } = turn.body
  if (idempotency === null) return null
  const record = findRecord(turn.facts, idempotency, turn.context)
  if (record === null) return null
  if (!record.same) return refuse('idempotency_key_reused')
  const messages = record.messageIds.map((messageId): AcceptedMessage => {
    return { messageId, submittedAtMs: msOf(messageId) }
  })
  const { refused } = record
  const rate = rateAfter(turn, 0)
  return {
    kind: 'done',
    reply: { kind: 'accepted', messages, ...(refused && { refused }), test, replayed: true, rate },
  }
}

function isPaidFor({ body, account }: SendTurn): Decision<SendReply> | null {
  return body.billing && !account.subscriptionActive ? refuse('payment_required') : null
}

// Spec send.at
function timesAreAhead({ body, context }: SendTurn): Decision<SendReply> | null {
  for (const [index, { sendAtMs }] of body.messages.entries()) {
    const fault = sendAtMs === null ? null : sendTimeFault(sendAtMs, { test: body.test, nowMs: context.nowMs })
    if (fault !== null) return refuse('invalid_request', { sendAt: fault, ...indexOf(body, index) })
  }
  return null
}

// Spec send.at
function scheduleHasRoom({ body, serverCounters }: SendTurn): Decision<SendReply> | null {
  let waiting = 0
  for (const { sendAtMs, recipients } of body.messages) if (sendAtMs !== null) waiting += recipients.length
  if (waiting === 0 || countScheduled(serverCounters?.scheduled) + waiting <= SCHEDULED_MAX) return null
  return refuse('scheduled_limit', { max: SCHEDULED_MAX })
}

function accountMaySend({ body, account }: SendTurn): Decision<SendReply> | null {
  if (account.status === 'closed' || (account.status === 'pending' && !body.test)) return refuse('account_not_active')
  return account.status === 'paused' ? refuse('account_paused') : null
}

function streamIsKnown({ body, streams }: SendTurn): Decision<SendReply> | null {
  const index = streams.findIndex((stream) => stream === null || stream.serverId !== body.serverId)
  return index < 0 ? null : refuse('stream_not_found', indexOf(body, index))
}

function streamKindMaySend({ body, streams }: SendTurn): Decision<SendReply> | null {
  const index = streams.findIndex((stream) => stream?.kind === 'inbound')
  return index < 0 ? null : refuse('stream_kind_not_allowed', indexOf(body, index))
}

function domainsAreVerified({ body, facts, context }: SendTurn): Decision<SendReply> | null {
  const key = sendingKey(context.shard, body.accountId)
  for (const [index, { from }] of body.messages.entries()) {
    const { domain } = from
    if (needsDomain(body, domain) && sendingRow(facts, key, { domain, isTest: body.test }) === null)
      return refuse('domain_not_verified', { domain, mode: body.test ? 'test' : 'live', ...indexOf(body, index) })
  }
  return null
}

// Spec send.size
function messagesFit({ body }: SendTurn): Decision<SendReply> | null {
  for (const [index, { builtBytes }] of body.messages.entries()) {
    if (builtBytes !== null && builtBytes > MESSAGE_BYTES_MAX)
      return refuse('message_too_large', { sizeBytes: builtBytes, max: MESSAGE_BYTES_MAX, ...indexOf(body, index) })
  }
  return null
}

function streamIsNotArchived({ body, streams }: SendTurn): Decision<SendReply> | null {
  for (const [index, stream] of streams.entries()) {
    if (stream !== null && stream.archivedAtMs !== null)
      return refuse('stream_archived', { streamId: stream.streamId, ...indexOf(body, index) })
  }
  return null
}

function streamIsNotPaused({ body, streams }: SendTurn): Decision<SendReply> | null {
  for (const [index, stream] of streams.entries()) {
    if (stream !== null && stream.pausedAtMs !== null)
      return refuse('stream_paused', {
        streamId: stream.streamId,
        pausedAtMs: stream.pausedAtMs,
        ...indexOf(body, index),
      })
  }
  return null
}

function limitsHold(turn: SendTurn): Decision<SendReply> | null {
  const { limits, requested } = turn
  const named = firstRefusal(limits, requested)
  if (named === null) return null
  const refusal = { kind: 'refuse', answer: refusedBy(named, requested) } as const
  const told = tellReachedCaps(turn)
  if (told === null || 'kind' in told) return told ?? refusal
  return { ...refusal, records: told }
}

/** The refusal of `requested` emails that do not fit under a limit. */
function refusedBy({ scope, period, limit, used, resetsAtMs }: Limit, requested: number): Refused {
  const code = period === 'minute' ? 'rate_limited' : 'cap_reached'
  return { kind: 'refused', code, extra: { scope, period, limit, used, requested, resetsAtMs } }
}

/** Every test server may send from the simulator's domain; any other must be verified. */
function needsDomain({ test }: SendBody, domain: string): boolean {
  return !test || domain !== SIMULATOR_DOMAIN
}

function indexOf({ batch }: SendBody, index: number): { readonly index?: number } {
  return batch ? { index } : {}
}

/** The remainder of the per-minute limits after `taken` more. */
function rateAfter({ limits }: SendTurn, taken: number): RateLeft[] {
  const rate: RateLeft[] = []
  for (const { scope, period, limit, used, resetsAtMs } of limits)
    if (period === 'minute') rate.push({ scope, limit, left: Math.max(0, limit - used - taken), resetsAtMs })
  return rate
}
