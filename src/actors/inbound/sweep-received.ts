/**
 * sweep-received - removes expired data of a server's received mail, each day, in small steps.
 *
 * References first: expired segments are removed as a whole, then the oldest messages of the oldest one. Then content
 * follows: the log is walked from the end of the removed content on, and each message past the retention of its stream
 * loses its head row, which has the key to its content, in the commit that orders the removal of its objects. At the
 * end of the walk, messages without content are packed (`pack-received.ts`). While more is left the next step is due at
 * once, otherwise in a day; without a segment there is no next one.
 *
 * Item: `received:<server>`, within the walk `received:<server>:<entry id to continue from>`, followed by `:f`
 * while no earlier message has content, then `received:<server>:pack:<n>`
 *
 * In a partly expired segment, postings are removed by the time at which they were written, so one of a late parsing
 * is removed later. Packed ones are removed with the first message.
 *
 * Keys: `received received-state received-blocks:<server>:<segment>`, `received-segments:<server>`,
 * `received-head:<server>:<day>:<n>`, `received-by-person received-by-hash:<server>:<segment>:<bucket>`
 *
 * Spec retention.inbound
 */

import type { CommandType, Decision, Done, Due, Entry, Fact, Facts, Op, TimerBody } from '../../../cluster/behaviour.ts'
import { entryIdAfter, idOfEntry, isEntryIdAbove, msOf, shortId } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { CONTENT_RETENTION_DAYS_MAX, LOG_RETENTION_MONTHS_MAX } from '../../../schemas/limits.ts'
import { cutoffMs } from '../../state/age.ts'
import { DAY_MS, MINUTE_MS } from '../../state/calendar.ts'
import { receivedKey, receivedSegmentsKey, receivedStateKey } from '../../state/keys.ts'
import { deleteOps } from '../../state/message/row.ts'
import { RECEIVED_DAYS } from '../../state/object-name.ts'
import {
  allReceivedBlocksFact,
  dropDamagedOps,
  type ReceivedBlocks,
  type ReceivedSegment,
  receivedBlocksFromFact,
  replaceBlockOps,
  unpackReceivedBlock,
} from '../../state/received/block.ts'
import { contentHeadKey, unpackContentHead } from '../../state/received/content-head.ts'
import { parseReceivedEntry } from '../../state/received/entry.ts'
import { dropPostingsOps } from '../../state/received/packed-posting.ts'
import { receivedPostingKeys, receivedSegmentKeys } from '../../state/received/posting.ts'
import { type ReceivedCounters, receivedOwner } from '../../state/received/sweep-cursor.ts'
import { segmentAfterFact, segmentAtFact, segmentEndMs } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { type StreamState, streamRef } from '../../state/stream.ts'
import { logMonths } from '../authorization/log-age.ts'
import { unlinkReceivedDue } from '../message/unlink.ts'
import { PACK, packReceived, packReceivedDue } from './pack-received.ts'
import { RECEIVED_TIMER, receivedSweepDue } from './receive.ts'

/** Messages of one step. */
const STEP_MESSAGES = 100
/** Ends an item of the walk while nothing before it has content. */
const FREED = 'f'
/** Whole segments removed in one step; each has up to 130 keys. */
const STEP_SEGMENTS = 8

type SortedFact = Fact & { readonly read: 'sorted' }
type RangeFact = Fact & { readonly read: 'range' }

/** A step of a server's sweep. */
interface Step {
  readonly serverId: string
  /** The position of the walk; null at its beginning. */
  readonly cursor: string | null
  /** Whether nothing before the cursor has content. */
  readonly isFreed: boolean
  readonly shard: number
  readonly nowMs: number
  readonly counters: ReceivedCounters
}

export const sweepReceived: CommandType<TimerBody, null> = {
  name: 'sweep received',
  frees: true,
  entities: (body) => [serverRef(parse(body).serverId)],
  counters: (body) => [receivedOwner(parse(body).serverId)],
  facts: (body, _states, { shard }) => [oldestSegments(shard, parse(body).serverId)],
  decide(body, states, facts, context): Decision<null> {
    const { shard } = context
    // The reads of several rounds depend on it, so it must not change in between.
    const nowMs = context.nowMs - (context.nowMs % MINUTE_MS)
    const { serverId, cursor, mark, isFreed: wasFreed } = parse(body)
    const counters = states.counter<ReceivedCounters>(receivedOwner(serverId)) ?? {}
    const step: Step = { serverId, cursor, isFreed: wasFreed, shard, nowMs, counters }
    const segments = facts.sorted(oldestSegments(shard, serverId))
    if (segments.length === 0) return { kind: 'done', reply: null }
    const server = states.get<ServerState | null>(serverRef(serverId))
    const months = server === null ? LOG_RETENTION_MONTHS_MAX : logMonths({ states, facts, context }, server.accountId)
    if (typeof months !== 'number') return months
    if (cursor === PACK) return packReceived({ serverId, buckets: Number(mark), shard, nowMs, counters }, facts)
    const references = cursor === null ? pastReferences({ ...step, months }, segments, facts) : null
    if (references !== null) return references
    const from = cursor ?? walkStart(step)
    const key = receivedSegmentsKey(shard, serverId)
    const places = [segmentAtFact(key, msOfEntry(from)), segmentAfterFact(key, msOfEntry(from))]
    if (!places.every((fact) => facts.has(fact))) return { kind: 'need', facts: places }
    const [at, after] = places.map((fact) => facts.sorted(fact)[0])
    if (at === undefined) return goOn(step, after)
    const fact = entriesFact(step, at[0], from)
    if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
    const messages = findMessages(facts.range(fact), { step, segment: at[0] })
    if (messages.length === 0) return goOn(step, after)
    const streams = [...new Set(messages.map(({ streamId }) => streamId))].map(streamRef)
    const heads = messages.map(({ key, short }): Fact => ({ read: 'fields', key, fields: [short] }))
    if (!streams.every((ref) => states.has(ref)) || !heads.every((head) => facts.has(head)))
      return { kind: 'need', entities: streams, facts: heads }
    const ended = messages.filter(({ streamId, messageId }) => {
      const stream = states.get<StreamState | null>(streamRef(streamId))
      return msOf(messageId) + daysOf(stream) * DAY_MS <= nowMs
    })
    const rows = ended.map((message) => ({ ...message, head: facts.field(message.key, message.short) }))
    const due = rows.flatMap(({ head }) => (head === null ? [] : unlinks({ shard, nowMs }, serverId, head)))
    const last = messages.at(-1) as Message
    const isFreed = wasFreed && ended.length === messages.length
    const walked = { ...step, isFreed }
    const next = messages.length < STEP_MESSAGES ? nextDue(walked, after) : dueAt(walked, entryIdAfter(last.entryId))
    return {
      kind: 'done',
      reply: null,
      ops: headOps(rows.filter(({ head }) => head !== null)),
      due: [...due, next],
      ...(isFreed && {
        counters: [{ owner: receivedOwner(serverId), value: { ...counters, freed: entryIdAfter(last.entryId) } }],
      }),
    }
  },
}

/** Days for which a stream keeps content; zero for a removed stream. Spec stream.patch */
function daysOf(stream: StreamState | null): number {
  return stream === null ? 0 : (stream.contentRetentionDays ?? CONTENT_RETENTION_DAYS_MAX)
}

function parse({ item }: TimerBody): Pick<Step, 'serverId' | 'cursor' | 'isFreed'> & { readonly mark: string } {
  const [, serverId = '', cursor = null, mark = ''] = item.split(':')
  return { serverId, cursor, mark, isFreed: cursor === null || mark === FREED }
}

function dueAt({ serverId, nowMs, isFreed }: Step, cursor: string): Due {
  const mark = isFreed ? `:${FREED}` : ''
  return { lane: TIMERS_LANE, item: `${RECEIVED_TIMER}:${serverId}:${cursor}${mark}`, atMs: nowMs }
}

/** The next segment, or the end of the walk. */
function nextDue(step: Step, after: readonly [string, number] | undefined): Due {
  if (after === undefined || after[1] > latestMs(step)) return packReceivedDue(step.serverId, step.nowMs)
  return dueAt(step, `${after[1]}-0`)
}

function goOn(step: Step, after: readonly [string, number] | undefined): Done<null> {
  return { kind: 'done', reply: null, due: [nextDue(step, after)] }
}

/** The latest message that may have to be removed, because a stream keeps content for at least a day. */
function latestMs({ nowMs }: Step): number {
  return nowMs - DAY_MS
}

/** Content of messages before this one has left, by its day at the latest. */
function walkStart({ nowMs, counters }: Step): string {
  const oldest = `${nowMs - (RECEIVED_DAYS + 1) * DAY_MS}-0`
  const { freed } = counters
  return freed !== undefined && isEntryIdAbove(freed, oldest) ? freed : oldest
}

function oldestSegments(shard: number, serverId: string): SortedFact {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: receivedSegmentsKey(shard, serverId), min: 0, max, count: STEP_SEGMENTS + 1 }
}

function msOfEntry(entryId: string): number {
  return Number(entryId.slice(0, entryId.indexOf('-')))
}

function entriesFact({ shard, serverId, nowMs }: Step, segment: string, from: string): RangeFact {
  const to = String(nowMs - DAY_MS)
  return { read: 'range', key: receivedKey(shard, serverId, segment), from, to, count: STEP_MESSAGES }
}

/** A message of the walk, and the place of its head row. */
interface Message {
  readonly entryId: string
  readonly messageId: string
  readonly streamId: string
  readonly short: string
  readonly key: string
}

function findMessages(entries: readonly Entry[], { step }: { step: Step; segment: string }): Message[] {
  return entries.flatMap((entry) => {
    const streamId = unlessDamaged(() => parseReceivedEntry(entry))?.streamId
    if (streamId === undefined) return []
    const messageId = idOfEntry(entry.id, step.shard)
    const key = contentHeadKey(step.shard, step.serverId, messageId)
    return [{ entryId: entry.id, messageId, streamId, short: shortId(messageId), key }]
  })
}

/** The removals of the objects in a head row. */
function unlinks(context: { shard: number; nowMs: number }, serverId: string, packed: string): Due[] {
  const head = unlessDamaged(() => unpackContentHead(packed))
  return [head?.objectId ?? null, head?.parsedId ?? null]
    .filter((id) => id !== null)
    .map((objectId) => unlinkReceivedDue(context, serverId, objectId))
}

function headOps(messages: readonly Message[]): Op[] {
  const byKey = new Map<string, string[]>()
  for (const { key, short } of messages) byKey.set(key, [...(byKey.get(key) ?? []), short])
  return [...byKey].flatMap(([key, shorts]) => deleteOps(key, shorts))
}

/** The expired references, or null. */
function pastReferences(
  step: Step & { readonly months: number },
  segments: readonly (readonly [string, number])[],
  facts: Pick<Facts, 'has' | 'range' | 'sorted'>,
): Decision<null> | null {
  const { serverId, shard, nowMs, months, counters } = step
  const cutoff = cutoffMs(nowMs, false, months)
  const again: Due = { ...receivedSweepDue(serverId, nowMs), atMs: nowMs }
  const past = segments.slice(0, STEP_SEGMENTS).filter(([name], index) => {
    const nextMs = segments[index + 1]?.[1] ?? Number.POSITIVE_INFINITY
    const lastMs = counters.segment?.name === name ? counters.segment.lastMs : Number.POSITIVE_INFINITY
    return Math.min(nextMs, lastMs + 1, segmentEndMs(name)) <= cutoff
  })
  if (past.length > 0) {
    const names = past.map(([name]) => name)
    const ops = names.flatMap((segment) =>
      receivedSegmentKeys({ shard, serverId, segment }).map((key): Op => ({ key, write: 'UNLINK', args: [] })),
    )
    ops.push({ key: receivedSegmentsKey(shard, serverId), write: 'ZREM', args: names })
    const { segment, ...rest } = counters
    const left = segment !== undefined && !names.includes(segment.name) ? counters : rest
    return { kind: 'done', reply: null, ops, due: [again], counters: [{ owner: receivedOwner(serverId), value: left }] }
  }
  const [oldest, firstMs] = segments[0] as readonly [string, number]
  const isPacked = counters.packed !== undefined && counters.packed >= firstMs
  const place = { shard, serverId, segment: oldest }
  return firstMs < cutoff ? pastMessages(place, facts, { cutoff, again, isPacked }) : null
}

/** The oldest messages of a segment that have expired, in blocks first; null if there are none. */
function pastMessages(
  place: ReceivedSegment,
  facts: Pick<Facts, 'has' | 'range' | 'sorted'>,
  { cutoff, again, isPacked }: { readonly cutoff: number; readonly again: Due; readonly isPacked: boolean },
): Decision<null> | null {
  const { shard, serverId, segment } = place
  const key = receivedKey(shard, serverId, segment)
  const trims = receivedPostingKeys(place).map((posting): Op => {
    return { key: posting, write: 'XTRIM', args: ['MINID', `${cutoff}-0`] }
  })
  const postings = isPacked ? dropPostingsOps(place) : trims
  const fact: RangeFact = { read: 'range', key, from: '-', to: String(cutoff - 1), count: STEP_MESSAGES }
  const oldest = receivedBlocksFromFact(place, '-', 0)
  if (![fact, oldest].every((one) => facts.has(one))) return { kind: 'need', facts: [fact, oldest] }
  const past = pastOfBlocks(place, facts.sorted(oldest), cutoff)
  if (past === 'damaged') {
    const all = allReceivedBlocksFact(place)
    if (!facts.has(all)) return { kind: 'need', facts: [all] }
    return { kind: 'done', reply: null, ops: dropDamagedOps(place, facts.sorted(all), cutoff), due: [again] }
  }
  if (past.length > 0) return { kind: 'done', reply: null, ops: [...past, ...postings], due: [again] }
  const entries = facts.range(fact)
  const last = entries.at(-1)
  if (last === undefined) return null
  const shorts = entries.map(({ id }) => shortId(idOfEntry(id, shard)))
  const isLastStep = entries.length < STEP_MESSAGES
  const ops: Op[] = [
    { key, write: 'XTRIM', args: ['MINID', entryIdAfter(last.id)] },
    ...deleteOps(receivedStateKey(shard, serverId, segment), shorts),
    ...(isLastStep ? postings : []),
  ]
  return { kind: 'done', reply: null, ops, due: [again] }
}

/** The writes that take expired messages out of blocks; `damaged` if an expired block cannot be opened. */
function pastOfBlocks(place: ReceivedSegment, blocks: ReceivedBlocks, cutoff: number): Op[] | 'damaged' {
  const ops: Op[] = []
  for (const [packed, score] of blocks) {
    const rows = unlessDamaged(() => unpackReceivedBlock(packed))
    // Damaged, and its last message is not past its age.
    if (rows === null && score >= cutoff) break
    if (rows === null) return 'damaged'
    const kept = rows.filter(({ entryId }) => msOfEntry(entryId) >= cutoff)
    if (kept.length < rows.length) ops.push(...replaceBlockOps(place, packed, kept))
  }
  return ops
}
