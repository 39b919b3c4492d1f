/**
 * sweep - removes expired data from a server's log, each day, in small steps.
 *
 * An expired segment is removed as a whole: its keys and its row in `segments`, and its place in the server's
 * counters. From a partly expired one, the oldest messages are removed: log entries and postings by XTRIM, heads and
 * statuses by HDEL in the same commit. A removed server without any data is removed too, after its suppression lists.
 * From the log of events, entries over 30 days old are removed. An attempt that ends later writes no row any more,
 * because its outcome checks the message's age. A sealed segment loses what is past its age by a rewrite, and closed
 * ones are offered to the lane that seals. If more is left, the next step is due at once, otherwise in a day. Content
 * and idempotency records expire by themselves. Content that is kept for a shorter time has separate walks, which the
 * last step of a day begins.
 *
 * Spec retention.message, event.search
 */

import type {
  CommandType,
  Decision,
  Done,
  Due,
  Entry,
  Fact,
  Facts,
  Need,
  Op,
  States,
  TimerBody,
} from '../../../cluster/behaviour.ts'
import { entryIdAfter, idOfEntry, shortId } from '../../../cluster/id.ts'
import { entityKey, TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { LOG_RETENTION_MONTHS_MAX } from '../../../schemas/limits.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { cutoffMs } from '../../state/age.ts'
import { forgetLookDue } from '../../state/broadcast/broadcast.ts'
import { DAY_MS, MINUTE_MS } from '../../state/calendar.ts'
import {
  broadcastsKey,
  byPersonKey,
  byTagKey,
  namesKey,
  receivedSegmentsKey,
  removedServersKey,
  segmentsKey,
  streamsKey,
  suppressionsKey,
  tokenIdsKey,
  tokensKey,
} from '../../state/keys.ts'
import { type PeopleCounters, peopleDue, peopleOwner } from '../../state/log-retention.ts'
import { parseLogEntry } from '../../state/message/log-entry.ts'
import { packOwner } from '../../state/message/packed.ts'
import { bucketOfPosting, bucketOfTag } from '../../state/message/posting.ts'
import { contentDue, shortContentDays } from '../../state/message/retention.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldDue, type SealedRow } from '../../state/message/sealed.ts'
import { statusField } from '../../state/message/status.ts'
import { allSegmentKeys, bucketsOfSegment, hasPostings, segmentEndMs } from '../../state/segment.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { inboundName, type StreamState, streamName, streamRef } from '../../state/stream.ts'
import { eventCutoffMs, eventLogOwner } from '../../state/webhook/event-log.ts'
import { logMonths } from '../authorization/log-age.ts'
import { listedFact, sweepListed } from '../suppression/sweep-suppressions.ts'
import { oldestSlicesFact, sweepEvents } from '../webhook/sweep-events.ts'
import { unlinkColdDue } from './unlink.ts'

export const SWEEP_TIMER = 'sweep'

/** Messages of one step. */
const STEP_MESSAGES = 200
/** Whole segments of one step, each of which has up to 515 keys. */
const STEP_SEGMENTS = 2
/** Maximum number of broadcasts checked in a day. */
const STEP_BROADCASTS = 200
/** Streams of one step. */
const STEP_STREAMS = 100

type SortedFact = Fact & { read: 'sorted' }

/** The oldest segment, and the first instant that is certainly not in it. */
interface Stretch {
  readonly name: string
  readonly endMs: number
}

/** A server's next sweep, in a day. */
export function sweepDue(serverId: string, nowMs: number): Due {
  return { lane: TIMERS_LANE, item: `${SWEEP_TIMER}:${serverId}`, atMs: nowMs + DAY_MS }
}

export const sweep: CommandType<TimerBody, null> = {
  name: 'sweep',
  frees: true,
  entities: (body) => [serverRef(serverOf(body))],
  counters: (body) => [serverOwner(serverOf(body)), eventLogOwner(serverOf(body)), packOwner(serverOf(body))],
  facts: (body, _states, { shard }) => [segmentsFact(shard, serverOf(body)), oldestSlicesFact(shard, serverOf(body))],
  decide(body, states, facts, { shard, nowMs }): Decision<null> {
    const serverId = serverOf(body)
    const server = states.get<ServerState | null>(serverRef(serverId))
    if (server === null) return { kind: 'done', reply: null }
    // Rounded to the minute, because the reads depend on it, and the clock advances between two rounds of reading.
    const minuteMs = nowMs - (nowMs % MINUTE_MS)
    const months = logMonths({ states, facts, context: { shard, nowMs } }, server.accountId)
    if (typeof months !== 'number') return { ...months, ...firstReads(months, { server, facts, shard }) }
    const isRemoved = server.removedAtMs !== undefined
    const events = sweepEvents(facts, { shard, serverId, cutoff: eventCutoffMs(minuteMs), isRemoved })
    if ('kind' in events) return events
    const swept = sweepMessages(
      server,
      { states, facts },
      { shard, nowMs, minuteMs, months, hasEvents: events.isLeft || events.ops.length > 0 },
    )
    if (swept.kind !== 'done') return swept
    const walks = walksOfDay(server, swept, { states, facts, months, shard, nowMs })
    if ('kind' in walks) return walks
    if (events.ops.length === 0) return { ...swept, due: [...(swept.due ?? []), ...walks] }
    const owner = eventLogOwner(serverId)
    return {
      ...swept,
      ops: [...(swept.ops ?? []), ...events.ops],
      // A later event opens its slice again.
      counters: [...(swept.counters ?? []), ...(isRemoved && !events.isLeft ? [{ owner, value: null }] : [])],
      // The last due of an item counts, so this sweep continues at once.
      due: [...(swept.due ?? []), { ...sweepDue(serverId, nowMs), atMs: nowMs }],
    }
  },
}

/** The reads of every step apart from the months, so that all are read together. */
function firstReads(
  months: Need,
  { server, facts, shard }: { server: ServerState; facts: Facts; shard: number },
): Pick<Need, 'counters' | 'facts'> {
  const { serverId, accountId } = server
  const segments = facts.sorted(segmentsFact(shard, serverId))
  const sealed = segments.map(([segment]) => new MessageRows(shard, { serverId, segment }).sealedFact())
  const last = segments.length === 0 && server.removedAtMs !== undefined ? lastReads(server, shard) : []
  return { counters: [peopleOwner(accountId)], facts: [...(months.facts ?? []), ...sealed, ...last] }
}

/**
 * Adds, with the last step of a day, what account or installation may have configured since: the walks that remove
 * content before it expires; if the log is kept for fewer months than by default, the broadcasts that are past their
 * age, and after a change the persons of the account.
 */
function walksOfDay(
  server: ServerState,
  { due = [] }: Done<null>,
  of: { states: States; facts: Facts; months: number; shard: number; nowMs: number },
): Due[] | Need {
  const { states, facts, months, shard, nowMs } = of
  const { serverId, accountId } = server
  if (!due.some(({ item, atMs }) => item === sweepDue(serverId, nowMs).item && atMs > nowMs)) return []
  const owner = peopleOwner(accountId)
  const isShort = months < LOG_RETENTION_MONTHS_MAX
  const fact = broadcastsFact(shard, serverId, cutoffMs(nowMs - (nowMs % MINUTE_MS), false, months))
  if (!states.hasCounter(owner) || (isShort && !facts.has(fact)))
    return { kind: 'need', counters: [owner], facts: isShort ? [fact] : [] }
  const account = states.get<AccountState | null>(accountRef(accountId))
  const walked = states.counter<PeopleCounters>(owner)?.months ?? LOG_RETENTION_MONTHS_MAX
  return [
    ...(shortContentDays({ server, account }).length === 0 ? [] : [contentDue(serverId, nowMs)]),
    ...(walked === months ? [] : [peopleDue(accountId, 0, nowMs)]),
    ...(isShort ? facts.sorted(fact).map(([broadcastId]) => forgetLookDue(broadcastId, nowMs)) : []),
  ]
}

/** The step without the log of events. A removed server waits until that log has no entries (`hasEvents`). */
function sweepMessages(
  server: ServerState,
  { states, facts }: { states: States; facts: Facts },
  of: { shard: number; nowMs: number; minuteMs: number; months: number; hasEvents: boolean },
): Decision<null> {
  const { shard, nowMs, minuteMs, months, hasEvents } = of
  const { serverId } = server
  const cutoff = cutoffMs(minuteMs, server.mode === 'test', months)
  const counters = states.counter<ServerCounters>(serverOwner(serverId))
  const segments = stretchesOf(facts.sorted(segmentsFact(shard, serverId)), counters)
  const rows = segments.map(({ name }) => new MessageRows(shard, { serverId, segment: name }))
  const sealed = rows.map((one) => one.sealedFact())
  if (!sealed.every((fact) => facts.has(fact))) return { kind: 'need', facts: sealed }
  const past = segments.filter(({ endMs }) => endMs <= cutoff).slice(0, STEP_SEGMENTS)
  if (past.length > 0) return removeWhole(past, { serverId, shard, nowMs, counters, facts })
  const oldest = segments[0]
  if (oldest === undefined) {
    // Received mail is removed by its own sweep, which needs the streams.
    if (server.removedAtMs === undefined || hasEvents)
      return { kind: 'done', reply: null, due: [sweepDue(serverId, nowMs)] }
    return sweepRemoved(server, { states, facts }, { shard, nowMs })
  }
  const seals = segments.length > 1 ? [coldDue(server.accountId, { act: 'seal', serverId, after: '' }, nowMs)] : []
  const order = [coldDue(server.accountId, { act: 'pack', serverId, look: 0 }, nowMs), ...seals]
  const row = rows[0]?.sealed(facts) ?? null
  if (row !== null) return sweepSealed(row, server, { segment: oldest.name, cutoff, order, nowMs })
  const range = { from: '-', to: String(cutoff - 1), count: STEP_MESSAGES }
  const fact = (rows[0] as MessageRows).entriesFact(range)
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  return removeOldest(facts.range(fact), { serverId, shard, nowMs, segment: oldest.name, order })
}

/** The step of a removed server that has no more messages. */
function sweepRemoved(
  server: ServerState,
  { states, facts }: { states: States; facts: Facts },
  { shard, nowMs }: { shard: number; nowMs: number },
): Decision<null> {
  const { serverId, accountId } = server
  const reads = lastReads(server, shard)
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  // Received mail is removed by its own sweep, which needs the streams.
  if (facts.sorted(receivedSegmentFact(shard, serverId)).length > 0)
    return { kind: 'done', reply: null, due: [sweepDue(serverId, nowMs)] }
  const listed = sweepListed(facts, { shard, serverId, accountId })
  if (listed !== null && 'kind' in listed) return listed
  if (listed !== null)
    return { kind: 'done', reply: null, ops: listed.ops, due: [{ ...sweepDue(serverId, nowMs), atMs: nowMs }] }
  const refs = facts.sorted(streamsFact(shard, serverId)).map(([streamId]) => streamRef(streamId))
  if (!refs.every((ref) => states.has(ref))) return { kind: 'need', entities: refs }
  const streams = refs.map((ref) => states.get<StreamState | null>(ref)).filter((stream) => stream !== null)
  return removeLast(server, streams, { shard, nowMs })
}

/** The oldest segment has left Redis, or is about to, so expired messages in it are removed by a rewrite. */
function sweepSealed(
  row: SealedRow,
  { serverId, accountId }: ServerState,
  of: { segment: string; cutoff: number; order: readonly Due[]; nowMs: number },
): Done<null> {
  const { segment, cutoff, order, nowMs } = of
  const next = sweepDue(serverId, nowMs)
  if (row.generation === 0) return { kind: 'done', reply: null, due: [{ ...next, atMs: nowMs + MINUTE_MS }] }
  const isPast = row.firstMs < cutoff
  const trim = isPast ? [coldDue(accountId, { act: 'trim', serverId, segment }, nowMs)] : []
  return { kind: 'done', reply: null, due: [next, ...order, ...trim] }
}

function serverOf({ item }: TimerBody): string {
  return item.slice(item.indexOf(':') + 1)
}

/** The reads for a removed server whose log is empty. */
function lastReads({ serverId, accountId }: ServerState, shard: number): Fact[] {
  const of = { shard, serverId, accountId }
  return [listedFact(of), streamsFact(shard, serverId), receivedSegmentFact(shard, serverId)]
}

function segmentsFact(shard: number, serverId: string): SortedFact {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: segmentsKey(shard, serverId), min: 0, max, count: STEP_SEGMENTS + 1 }
}

function streamsFact(shard: number, serverId: string): SortedFact {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: streamsKey(shard, serverId), min: 0, max, count: STEP_STREAMS }
}

/** The oldest broadcasts of those that may be past their age. */
function broadcastsFact(shard: number, serverId: string, maxMs: number): SortedFact {
  return { read: 'sorted', key: broadcastsKey(shard, serverId), min: 0, max: maxMs, count: STEP_BROADCASTS }
}

function receivedSegmentFact(shard: number, serverId: string): SortedFact {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: receivedSegmentsKey(shard, serverId), min: 0, max, count: 1 }
}

/**
 * A segment ends at the next one's beginning, the open one with its last id, or at the latest with its month or day.
 */
function stretchesOf(rows: readonly (readonly [string, number])[], counters: ServerCounters | null): Stretch[] {
  return rows.map(([name], index) => {
    const nextMs = rows[index + 1]?.[1] ?? Number.POSITIVE_INFINITY
    const lastMs = counters?.segment?.name === name ? counters.segment.lastMs : Number.POSITIVE_INFINITY
    return { name, endMs: Math.min(nextMs, lastMs + 1, segmentEndMs(name)) }
  })
}

/** Removes a removed server without any data, after its streams, and ends its sweep. */
function removeLast(
  { serverId, accountId }: ServerState,
  streams: readonly StreamState[],
  { shard, nowMs }: { shard: number; nowMs: number },
): Done<null> {
  const goes = (kind: string, id: string): Op => {
    return { key: entityKey(shard, kind, id), write: 'PEXPIREAT', args: [String(nowMs + DAY_MS)] }
  }
  const ops: Op[] = streams.flatMap(({ streamId, name }) => [
    goes('stream', streamId),
    { key: streamsKey(shard, serverId), write: 'ZREM', args: [streamId] },
    { key: namesKey(shard, accountId), write: 'HDEL', args: [streamName(serverId, name)] },
  ])
  if (streams.length === STEP_STREAMS)
    return { kind: 'done', reply: null, ops, due: [{ ...sweepDue(serverId, nowMs), atMs: nowMs }] }
  ops.push({ key: namesKey(shard, accountId), write: 'HDEL', args: [inboundName(serverId)] })
  ops.push({ key: removedServersKey(shard, accountId), write: 'ZREM', args: [serverId] })
  // Trimmed to nothing it is still a key.
  ops.push({ key: suppressionsKey(shard, serverId), write: 'UNLINK', args: [] })
  ops.push({ key: tokensKey(shard, serverId), write: 'UNLINK', args: [] })
  ops.push({ key: tokenIdsKey(shard, serverId), write: 'UNLINK', args: [] }, goes('server', serverId))
  return { kind: 'done', reply: null, ops, counters: [{ owner: packOwner(serverId), value: null }] }
}

function removeWhole(
  past: readonly Stretch[],
  of: { serverId: string; shard: number; nowMs: number; counters: ServerCounters | null; facts: Facts },
): Done<null> {
  const { serverId, shard, nowMs, counters, facts } = of
  const names = past.map(({ name }) => name)
  const ops: Op[] = names.flatMap((name) =>
    allSegmentKeys(shard, serverId, name).map((key): Op => ({ key, write: 'UNLINK', args: [] })),
  )
  ops.push({ key: segmentsKey(shard, serverId), write: 'ZREM', args: names })
  const due = [{ ...sweepDue(serverId, nowMs), atMs: nowMs }]
  for (const name of names) {
    const rows = new MessageRows(shard, { serverId, segment: name })
    const row = rows.sealed(facts)
    if (row === null) continue
    ops.push(rows.unsealOp())
    const objects = row.next === '' ? [row] : [row, { ...row, leaf: row.next }]
    due.push(...objects.map((object) => unlinkColdDue({ shard, nowMs }, object)))
  }
  if (counters?.segment === undefined || !names.includes(counters.segment.name))
    return { kind: 'done', reply: null, ops, due }
  const { segment: _, ...rest } = counters
  return { kind: 'done', reply: null, ops, due, counters: [{ owner: serverOwner(serverId), value: rest }] }
}

function removeOldest(
  entries: readonly Entry[],
  of: { serverId: string; shard: number; nowMs: number; segment: string; order: readonly Due[] },
): Done<null> {
  const { serverId, shard, nowMs, segment, order } = of
  const next = sweepDue(serverId, nowMs)
  const last = entries.at(-1)
  if (last === undefined) return { kind: 'done', reply: null, due: [next, ...order] }
  const due = entries.length < STEP_MESSAGES ? [next, ...order] : [{ ...next, atMs: nowMs }]
  const buckets = bucketsOfSegment(segment)
  const postings = new Set<string>()
  const heads: string[] = []
  const statuses: string[] = []
  for (const entry of entries) {
    const short = shortId(idOfEntry(entry.id, shard))
    const message = unlessDamaged(() => parseLogEntry(entry))
    heads.push(short)
    if (message === null) continue
    for (const index of message.recipients.keys()) statuses.push(statusField(short, index))
    if (!hasPostings(segment)) continue
    for (const number of message.recipients)
      postings.add(byPersonKey(shard, serverId, segment, bucketOfPosting(number, buckets)))
    if (message.tagHash !== null)
      postings.add(byTagKey(shard, serverId, segment, bucketOfTag(message.tagHash, buckets)))
  }
  const minId = entryIdAfter(last.id)
  const ops = [
    ...Array.from(postings, (key): Op => ({ key, write: 'XTRIM', args: ['MINID', minId] })),
    ...new MessageRows(shard, { serverId, segment }).removeOps({ heads, statuses, below: minId }),
  ]
  return { kind: 'done', reply: null, ops, due }
}
