/**
 * create-broadcast - decides whether a broadcast is accepted, and makes its writes.
 *
 * Content and buckets of recipients were written before, under their final names with a lifetime of a minute; the
 * commit sets each expiry and is refused if one is missing. Suppressed recipients were left out before: `total` and
 * `suppressed` are final here.
 *
 * Guarantees: one commit precedes the 202; a refusal counts nothing and leaves the Idempotency-Key free; no address is
 * in the state.
 *
 * Keys: broadcasts, running, broadcasting, content, idempotency
 *
 * Spec broadcast.create, refusal.order, request.idempotency
 */

import type { CommandType, Context, Decision, Done, Facts, Op, States } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { BROADCAST_BYTES_MAX, MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'
import { SIMULATOR_DOMAIN } from '../../mail/simulator.ts'
import { type AccountCounters, type AccountState, accountOwner, accountRef } from '../../state/account.ts'
import { hasLiveKey } from '../../state/api-key.ts'
import {
  type BroadcastState,
  broadcastEndsAtMs,
  broadcastOwner,
  broadcastRef,
  isScheduled,
  NO_PROGRESS,
  type SharedPart,
} from '../../state/broadcast/broadcast.ts'
import { bucketPart, expiryOps, keepSharedOps } from '../../state/broadcast/content.ts'
import { endNote } from '../../state/broadcast/note.ts'
import { monthName } from '../../state/calendar.ts'
import { type StreamCounters, streamOwner } from '../../state/complaint-threshold.ts'
import { sendingFields, sendingRow } from '../../state/domain.ts'
import { broadcastingKey, broadcastsKey, runningKey, sendingKey } from '../../state/keys.ts'
import { limitsOfServer } from '../../state/limit.ts'
import { findRecord, type IdempotencyInput, idempotencyFacts, recordOps } from '../../state/message/idempotency.ts'
import type { LanePrefix } from '../../state/message/item.ts'
import { namingFacts, PersonNumbers, unreadPersons } from '../../state/person/person.ts'
import { firstRefusal, type Limit, periodOf, take } from '../../state/quota.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { type CapTelling, tellReachedCaps, warnOfCaps } from '../message/cap.ts'
import { sendTimeFault } from '../message/send-time.ts'
import { announced } from '../webhook/announce.ts'
import { beginDue } from './begin-broadcast.ts'
import { endDue, forgetDue, leastTurnFact, PAUSED_TURN, stepDue, turnBeside } from './running.ts'

export interface CreateBroadcastBody {
  readonly accountId: string
  readonly serverId: string
  readonly test: boolean
  /** SHA-256 of the server key, hex. */
  readonly keyHash: string
  /** Whether sending requires an active subscription. */
  readonly billing: boolean
  readonly streamId: string
  /** With the HMAC of its address, and its domain in lower case. */
  readonly sender: { readonly address: string; readonly hmac: string; readonly domain: string }
  readonly tagHash: string | null
  readonly lane: LanePrefix
  readonly contentId: string
  /** The shared parts of content. */
  readonly parts: readonly SharedPart[]
  readonly buckets: number
  readonly total: number
  readonly suppressed: number
  /** Size as built of the whole; and of its largest message if that may exceed the limit, otherwise null. */
  readonly sizeBytes: number
  readonly largestBytes: number | null
  readonly idempotency: IdempotencyInput | null
  /** When it begins, ms; absent: at once. */
  readonly sendAtMs?: number
}

/** The broadcast as it was accepted; `replayed`: before, under the same Idempotency-Key. */
export interface BroadcastAccepted {
  readonly kind: 'broadcast'
  readonly broadcast: BroadcastState
  readonly replayed: boolean
}

type Reply = BroadcastAccepted | Refused

/** Input of the steps. */
interface CreateTurn {
  readonly body: CreateBroadcastBody
  readonly account: AccountState
  readonly server: ServerState
  readonly stream: StreamState | null
  readonly accountCounters: AccountCounters | null
  readonly serverCounters: ServerCounters | null
  /** Limits of the month; those of the minute do not apply to broadcasts. */
  readonly limits: readonly Limit[]
  readonly requested: number
  readonly states: States
  readonly facts: Facts
  readonly context: Context
}

/** Steps after the key was found live, in the order of refusals. */
const STEPS: readonly ((turn: CreateTurn) => Decision<Reply> | null)[] = [
  answerBefore,
  timeIsAhead,
  isPaidFor,
  accountMaySend,
  streamIsKnown,
  domainIsVerified,
  broadcastFits,
  streamTakesMail,
  capHolds,
]

export const createBroadcast: CommandType<CreateBroadcastBody, Reply> = {
  name: 'create-broadcast',
  entities: ({ accountId, serverId, streamId }) => [accountRef(accountId), serverRef(serverId), streamRef(streamId)],
  counters: ({ accountId, serverId, streamId }) => [
    accountOwner(accountId),
    serverOwner(serverId),
    streamOwner(streamId),
  ],
  facts(body, _states, context, known) {
    const { shard, nowMs } = context
    const { accountId, sender, idempotency, streamId } = body
    const facts = namingFacts({ shard, accountId }, [sender.hmac], known)
    facts.push({ read: 'fields', key: sendingKey(shard, accountId), fields: sendingFields(sender.domain, body.test) })
    facts.push(leastTurnFact(shard, streamId))
    if (idempotency !== null) facts.push(...idempotencyFacts(shard, idempotency, nowMs))
    return facts
  },
  decide(body, states, facts, context) {
    const turn = keyIsLive(body, { states, facts, context })
    if (turn === null) return refuse('unauthorized')
    for (const step of STEPS) {
      const answer = step(turn)
      if (answer !== null) return answer
    }
    const unread = unreadPersons(facts, { shard: context.shard, accountId: body.accountId }, [body.sender.hmac])
    if (unread.length > 0) return { kind: 'need', facts: unread }
    const telling = warnOfCaps(turn)
    if (telling !== null && 'kind' in telling) return telling
    return accepted(turn, telling)
  },
}

function keyIsLive(
  body: CreateBroadcastBody,
  given: Pick<CreateTurn, 'states' | 'facts' | 'context'>,
): CreateTurn | null {
  const { states } = given
  const account = states.get<AccountState | null>(accountRef(body.accountId))
  const server = states.get<ServerState | null>(serverRef(body.serverId))
  if (account === null || server === null || server.accountId !== account.accountId) return null
  if (!hasLiveKey(server.keys, body.keyHash)) return null
  const accountCounters = states.counter<AccountCounters>(accountOwner(body.accountId))
  const serverCounters = states.counter<ServerCounters>(serverOwner(body.serverId))
  const of = { account, counters: accountCounters, nowMs: given.context.nowMs }
  const limits = limitsOfServer(server, serverCounters, of).filter(({ period }) => period === 'month')
  const stream = states.get<StreamState | null>(streamRef(body.streamId))
  return { body, account, server, stream, accountCounters, serverCounters, limits, requested: body.total, ...given }
}

/** The stored answer, without reading the broadcast again. Spec request.idempotency */
function answerBefore({ body, states, facts, context }: CreateTurn): Decision<Reply> | null {
  if (body.idempotency === null) return null
  const record = findRecord(facts, body.idempotency, context)
  if (record === null) return null
  if (!record.same) return refuse('idempotency_key_reused')
  const ref = broadcastRef(record.messageIds[0] as string)
  if (!states.has(ref)) return { kind: 'need', entities: [ref] }
  const known = states.get<BroadcastState | null>(ref)
  if (known === null) return null
  return { kind: 'done', reply: { kind: 'broadcast', broadcast: asAccepted(known), replayed: true } }
}

function asAccepted(broadcast: BroadcastState): BroadcastState {
  const isEmpty = broadcast.total === 0
  const status = isEmpty ? 'completed' : 'accepted'
  const endedAtMs = isEmpty ? broadcast.submittedAtMs : null
  return { ...broadcast, status, endedAtMs, released: 0, failed: 0, pausedAtMs: null }
}

// Spec broadcast.at
function timeIsAhead({ body: { sendAtMs, test }, context }: CreateTurn): Decision<Reply> | null {
  const fault = sendAtMs === undefined ? null : sendTimeFault(sendAtMs, { test, nowMs: context.nowMs })
  return fault === null ? null : refuse('invalid_request', { sendAt: fault })
}

function isPaidFor({ body, account }: CreateTurn): Decision<Reply> | null {
  return body.billing && !account.subscriptionActive ? refuse('payment_required') : null
}

function accountMaySend({ body, account }: CreateTurn): Decision<Reply> | null {
  if (account.status === 'closed' || (account.status === 'pending' && !body.test)) return refuse('account_not_active')
  return account.status === 'paused' ? refuse('account_paused') : null
}

function streamIsKnown({ body, stream }: CreateTurn): Decision<Reply> | null {
  if (stream === null || stream.serverId !== body.serverId) return refuse('stream_not_found')
  return stream.kind === 'broadcast' ? null : refuse('stream_kind_not_allowed')
}

function domainIsVerified({ body, facts, context }: CreateTurn): Decision<Reply> | null {
  const { domain } = body.sender
  if (body.test && domain === SIMULATOR_DOMAIN) return null
  const key = sendingKey(context.shard, body.accountId)
  const row = sendingRow(facts, key, { domain, isTest: body.test })
  return row !== null ? null : refuse('domain_not_verified', { domain, mode: body.test ? 'test' : 'live' })
}

// Spec broadcast.size
function broadcastFits({ body: { sizeBytes, largestBytes } }: CreateTurn): Decision<Reply> | null {
  if (largestBytes !== null && largestBytes > MESSAGE_BYTES_MAX)
    return refuse('message_too_large', { sizeBytes: largestBytes, max: MESSAGE_BYTES_MAX })
  return sizeBytes > BROADCAST_BYTES_MAX ? refuse('broadcast_too_large', { sizeBytes, max: BROADCAST_BYTES_MAX }) : null
}

function streamTakesMail({ stream }: CreateTurn): Decision<Reply> | null {
  const { streamId, archivedAtMs, pausedAtMs } = stream as StreamState
  if (archivedAtMs !== null) return refuse('stream_archived', { streamId })
  return pausedAtMs === null ? null : refuse('stream_paused', { streamId, pausedAtMs })
}

function capHolds(turn: CreateTurn): Decision<Reply> | null {
  // Without recipients nothing is used, even if a cap was lowered below its use.
  if (turn.requested === 0) return null
  const named = firstRefusal(turn.limits, turn.requested)
  if (named === null) return null
  const { scope, period, limit, used, resetsAtMs } = named
  const refusal = refuse('cap_reached', { scope, period, limit, used, requested: turn.requested, resetsAtMs })
  const told = tellReachedCaps(turn)
  if (told === null || 'kind' in told) return told ?? refusal
  return { ...refusal, records: told }
}

function accepted(turn: CreateTurn, telling: CapTelling | null): Decision<Reply> {
  const { body, context, facts, states } = turn
  const { shard, nowMs } = context
  const { accountId, serverId, streamId, contentId, parts, buckets, total, suppressed, sender } = body
  const broadcastId = context.newId()
  const submittedAtMs = msOf(broadcastId)
  const persons = new PersonNumbers(facts, { shard, accountId })
  const isEmpty = total === 0
  const broadcast: BroadcastState = {
    broadcastId,
    accountId,
    serverId,
    streamId,
    test: body.test,
    lane: body.lane,
    contentId,
    parts,
    buckets,
    sender: persons.numberOfFrom(sender, monthName(submittedAtMs)),
    senderHmac: sender.hmac,
    senderDomain: sender.domain,
    tagHash: body.tagHash,
    status: isEmpty ? 'completed' : 'accepted',
    total,
    suppressed,
    submittedAtMs,
    ...(body.sendAtMs !== undefined && { sendAtMs: body.sendAtMs }),
    pausedAtMs: null,
    endedAtMs: isEmpty ? submittedAtMs : null,
    released: 0,
    failed: 0,
  }
  const ops: Op[] = [
    { key: broadcastsKey(shard, serverId), write: 'ZADD', args: [String(submittedAtMs), broadcastId] },
    ...contentOps(shard, broadcast),
    ...persons.ops(),
  ]
  if (body.idempotency !== null) ops.push(...recordOps(body.idempotency, { messageIds: [broadcastId] }, context))
  const done: Done<Reply> = {
    kind: 'done',
    reply: { kind: 'broadcast', broadcast, replayed: false },
    events: [{ ref: broadcastRef(broadcastId), event: { type: 'created', broadcast } }],
    counters: countersAfter(turn, telling),
    ops,
  }
  if (isEmpty) {
    const notes = [endNote(broadcast, NO_PROGRESS, 'completed')]
    const ended = { ...done, due: [forgetDue(broadcast)], notes }
    return telling === null ? ended : announced(ended, telling.staged)
  }
  const waits = isScheduled(broadcast, nowMs)
  const itsTurn = waits ? PAUSED_TURN : turnBeside(facts.sorted(leastTurnFact(shard, streamId)))
  ops.push({ key: runningKey(shard, streamId), write: 'ZADD', args: [String(itsTurn), broadcastId] })
  ops.push({ key: broadcastingKey(shard, accountId), write: 'ZADD', args: [String(msOf(streamId)), streamId] })
  const nextMs = states.counter<StreamCounters>(streamOwner(streamId))?.nextMs ?? 0
  const begun = {
    ...done,
    counters: [...(done.counters ?? []), { owner: broadcastOwner(broadcastId), value: NO_PROGRESS }],
    due: [waits ? beginDue(broadcast) : stepDue(streamId, Math.max(nowMs, nextMs)), endDue(broadcast)],
  }
  return telling === null ? begun : announced(begun, telling.staged)
}

/** Writes that keep the content until the broadcast and its released messages must have ended. */
function contentOps(shard: number, broadcast: BroadcastState): Op[] {
  const { contentId, buckets, total } = broadcast
  const endsAtMs = broadcastEndsAtMs(broadcast)
  const place = { shard, contentId }
  const shared = keepSharedOps(shard, broadcast, endsAtMs)
  if (total === 0) return shared
  const waiting = Array.from({ length: buckets }, (_, bucket) => ({ part: bucketPart(bucket), chunks: 1 }))
  return [...shared, ...waiting.flatMap((part) => expiryOps(place, part, endsAtMs + GRACE_MS))]
}

/** A bucket outlives the broadcast's end by this time; the end unlinks it. */
const GRACE_MS = 86_400_000

function countersAfter(turn: CreateTurn, telling: CapTelling | null): { owner: string; value: unknown }[] {
  const { body, context, accountCounters, serverCounters, requested } = turn
  const month = periodOf('month', context.nowMs)
  const open = requested > 0 ? { openBroadcasts: (serverCounters?.openBroadcasts ?? 0) + 1 } : {}
  const account = body.test
    ? { ...accountCounters, testMonth: take(accountCounters?.testMonth, month, requested) }
    : { ...accountCounters, month: take(accountCounters?.month, month, requested) }
  const server = body.test
    ? serverCounters
    : { ...serverCounters, month: take(serverCounters?.month, month, requested) }
  return [
    { owner: accountOwner(body.accountId), value: { ...account, ...telling?.account } },
    { owner: serverOwner(body.serverId), value: { ...server, ...open, ...telling?.server } },
  ]
}
