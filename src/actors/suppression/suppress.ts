/**
 * suppress - puts the recipient of a message onto its stream's suppression list.
 *
 * Its data (stream, person, whether the address is already on the list) is read only now, because most outcomes
 * suppress no address.
 *
 * Guarantees: there is one entry for each stream and address; entry, row, count of the person's lists and the stream's
 * mark are in the commit of the event.
 *
 * Spec suppression.entry, suppression.worse, stream.brake
 */

import type { Context, Facts, Need, Op, Ref, Staged, States } from '../../../cluster/behaviour.ts'
import { entryIdOf } from '../../../cluster/id.ts'
import {
  countInWindow,
  isOverComplaintThreshold,
  type StreamCounters,
  streamOwner,
} from '../../state/complaint-threshold.ts'
import { suppressionsKey } from '../../state/keys.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { countListOp, personFacts, personRowIn } from '../../state/person/person.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import {
  isWorse,
  packPlace,
  packSuppression,
  SUPPRESSION_FIELD,
  type Suppression,
  type SuppressionPlace,
  suppressedFacts,
  suppressedKeyOf,
  suppressionIn,
} from '../../state/suppression.ts'

/** Context of a turn. */
export interface SuppressTurn {
  readonly states: States
  readonly facts: Facts
  readonly context: Context
}

/** Whom to suppress, and why. */
export interface SuppressInput {
  readonly item: AttemptItem
  /** HMAC of the recipient's address within the account. */
  readonly hmac: string
  readonly reason: 'hard_bounce' | 'unsubscribe' | 'spam_complaint'
  readonly code: number | null
  /** The address in it is masked. */
  readonly response: string | null
  /** Whether the same turn counts a delivery, which a simulated complaint includes. */
  readonly delivered?: true
}

/** The writes of a turn about a stream and its list. */
export type StreamWrites = Required<Pick<Staged, 'ops' | 'events' | 'counters'>>

export const NO_WRITES: StreamWrites = { ops: [], events: [], counters: [] }

/** The writes of a suppression, or the reads needed first, twice at most. */
export function suppressRecipient(turn: SuppressTurn, input: SuppressInput): StreamWrites | Need {
  const { states, facts, context } = turn
  const { item, hmac } = input
  const rows = new MessageRows(context.shard, item)
  const missing = rows.missingEntry(facts, item.messageId)
  if (missing.length > 0 || !states.has(serverRef(item.serverId)))
    return { kind: 'need', entities: [serverRef(item.serverId)], facts: missing }
  const server = states.get<ServerState | null>(serverRef(item.serverId))
  const entry = rows.entry(facts, item.messageId)
  const number = entry?.recipients[item.recipient]
  if (server === null || entry === null || number === undefined) return NO_WRITES
  const place = { streamId: entry.streamId ?? server.defaultStreamId, hmac }
  const reads = [
    ...suppressedFacts(context.shard, place.streamId, [hmac]),
    ...personFacts({ shard: context.shard, accountId: server.accountId }, [hmac]),
  ]
  const ref = streamRef(place.streamId)
  const owner = streamOwner(place.streamId)
  if (!states.has(ref) || !states.hasCounter(owner) || !reads.every((fact) => facts.has(fact)))
    return { kind: 'need', entities: [ref], counters: [owner], facts: reads }
  const stream = states.get<StreamState | null>(ref)
  if (stream === null) return NO_WRITES
  const { code, response, reason } = input
  const of = { reason, code, response, number, messageId: item.messageId }
  const listed = listPerson(turn, { place, server, stream, of })
  const braked = reason === 'spam_complaint' ? brake(turn, stream, input.delivered === true) : NO_WRITES
  return { ops: listed.ops, events: [...listed.events, ...braked.events], counters: braked.counters }
}

/** The writes for a person that leaves a stream by a mail that has left the log, or the reads needed first. */
export function suppressLeaver(
  turn: SuppressTurn,
  { serverId, streamId, hmac }: SuppressionPlace & { readonly serverId: string },
): StreamWrites | Need {
  const { states, facts, context } = turn
  const { shard } = context
  const server = states.get<ServerState | null>(serverRef(serverId))
  if (server === null) return NO_WRITES
  const account = { shard, accountId: server.accountId }
  const place = { streamId, hmac }
  const reads = [...suppressedFacts(shard, streamId, [hmac]), ...personFacts(account, [hmac])]
  const ref = streamRef(streamId)
  if (!states.has(ref) || !reads.every((fact) => facts.has(fact)))
    return { kind: 'need', entities: [ref], facts: reads }
  const stream = states.get<StreamState | null>(ref)
  const person = personRowIn(facts, { ...account, hmac })
  if (stream?.serverId !== serverId || person === null) return NO_WRITES
  const of = { reason: 'unsubscribe', code: null, response: null, number: person.number, messageId: null } as const
  return { ...NO_WRITES, ...listPerson(turn, { place, server, stream, of }) }
}

/** The writes of one entry: added, taken over by a worse reason, or left as it is. */
function listPerson(
  { facts, context }: SuppressTurn,
  input: {
    readonly place: SuppressionPlace
    readonly server: ServerState
    readonly stream: StreamState
    readonly of: Omit<Suppression, 'suppressionId'>
  },
): { ops: Op[]; events: { ref: Ref; event: unknown }[] } {
  const { place, server, stream, of } = input
  const { shard } = context
  const known = suppressionIn(facts, shard, place)
  if (known !== null)
    return {
      ops: isWorse(of.reason, known.reason) ? [rowOp(shard, place, { ...known, ...of, number: known.number })] : [],
      events: [],
    }
  const entry = { ...of, suppressionId: context.newId() }
  const counted = countListOp(facts, 1, { shard, accountId: server.accountId, hmac: place.hmac, number: of.number })
  return {
    ops: [...suppressionEntryOps(shard, server.serverId, { place, entry }), ...(counted === null ? [] : [counted])],
    events: markEvents(stream),
  }
}

/** The writes of a new entry. */
export function suppressionEntryOps(
  shard: number,
  serverId: string,
  { place, entry }: { readonly place: SuppressionPlace; readonly entry: Suppression },
): Op[] {
  const args = [entryIdOf(entry.suppressionId), SUPPRESSION_FIELD, packPlace(place)]
  return [rowOp(shard, place, entry), { key: suppressionsKey(shard, serverId), write: 'XADD', args }]
}

/** The event that makes sends on the stream look at its list from now on. */
export function markEvents({ streamId, hasSuppressions }: StreamState): { ref: Ref; event: unknown }[] {
  return hasSuppressions === true ? [] : [{ ref: streamRef(streamId), event: { type: 'suppressing' } }]
}

/** Writes an entry's row in place of the one before. */
export function rowOp(shard: number, place: SuppressionPlace, entry: Suppression): Op {
  return { key: suppressedKeyOf(shard, place), write: 'HSET', args: [place.hmac, packSuppression(entry)] }
}

/**
 * The writes of a delivery on a broadcast stream, or the state to be read first, because a delivery that makes the
 * window large enough may pause the stream, like a complaint.
 *
 * Spec stream.brake
 */
export function countDelivery({ states, context }: Omit<SuppressTurn, 'facts'>, streamId: string): StreamWrites | Need {
  const { nowMs } = context
  const ref = streamRef(streamId)
  const owner = streamOwner(streamId)
  const value = countInWindow(states.counter<StreamCounters>(owner), 'delivery', nowMs)
  const isOver = isOverComplaintThreshold(value, nowMs)
  if (isOver && !states.has(ref)) return { kind: 'need', entities: [ref] }
  const stream = isOver ? states.get<StreamState | null>(ref) : null
  return { ops: [], events: stream === null ? [] : pauseEvents(stream, nowMs), counters: [{ owner, value }] }
}

// Spec stream.brake
function brake(
  { states, context }: SuppressTurn,
  stream: StreamState,
  delivered: boolean,
): Pick<StreamWrites, 'events' | 'counters'> {
  if (stream.kind !== 'broadcast') return NO_WRITES
  const { nowMs } = context
  const owner = streamOwner(stream.streamId)
  const before = states.counter<StreamCounters>(owner)
  const value = countInWindow(delivered ? countInWindow(before, 'delivery', nowMs) : before, 'complaint', nowMs)
  return {
    events: isOverComplaintThreshold(value, nowMs) ? pauseEvents(stream, nowMs) : [],
    counters: [{ owner, value }],
  }
}

function pauseEvents({ streamId, pausedAtMs }: StreamState, nowMs: number): { ref: Ref; event: unknown }[] {
  return pausedAtMs !== null ? [] : [{ ref: streamRef(streamId), event: { type: 'paused', pausedAtMs: nowMs } }]
}
