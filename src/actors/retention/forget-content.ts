/**
 * forget-content - removes expired text and HTML of a server's mail, in small steps, four times a day.
 *
 * The service's default needs no walk, because content expires by itself. Each shorter number of days that a stream
 * may have is a walk over the log, from the end of the last walk to the messages of that age. A message that still has
 * an attempt left gets a separate timer, which checks it again; content of a sealed segment is removed by the lane
 * that reads its object. Once a setting changes, every walk begins with the oldest content again: removing twice is
 * removing once.
 *
 * Items: `content:<server>` begins the walks, `content:<server>:<days>:<entry id>` is a step, `content-of:<server
 * short>.<segment>.<message short>` one message
 *
 * Keys: `log head status:<server>:<segment>`, `segments sealed:<server>`, `bodies`, `content`
 *
 * Spec retention.settings
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Entry,
  Fact,
  Facts,
  Op,
  States,
  TimerBody,
} from '../../../cluster/behaviour.ts'
import { entryIdAfter, idOfEntry, idOfShort, isEntryIdAbove, msOf, shortId } from '../../../cluster/id.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { contentExpiresAtMs } from '../../state/age.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../state/calendar.ts'
import { segmentsKey } from '../../state/keys.ts'
import { headWithoutPack, isErasedHead, unpackHead } from '../../state/message/head.ts'
import { type LogEntry, parseLogEntry } from '../../state/message/log-entry.ts'
import {
  CONTENT_TIMER,
  type ContentOwners,
  contentDue,
  markOfSettings,
  sentContentEndsAtMs,
  shortContentDays,
} from '../../state/message/retention.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldDue } from '../../state/message/sealed.ts'
import { isOpen, statusField, unpackStatus } from '../../state/message/status.ts'
import { isTestSegment, segmentAfterFact, segmentAtFact } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { thaw } from '../message/thaw.ts'
import {
  daysOfStream,
  type EndedMessage,
  endContents,
  keepShared,
  missingBroadcasts,
  missingStreams,
  ownersIn,
} from './ended-content.ts'

export const CONTENT_OF_TIMER = 'content-of'

/** Messages of one step; each may have 50 recipients. */
const STEP_MESSAGES = 100
const AGAIN_MS = 6 * HOUR_MS
/** A message is not looked at before: most have no attempt left by then. */
const YOUNGEST_MS = HOUR_MS

/** How far the walks of a server have come. */
export interface ContentCounters {
  /** The settings that they were made with. */
  readonly mark: string
  /** For each number of days, the entry id below which no content is left. */
  readonly at: Readonly<Record<string, string>>
}

/** Owner of the counters of a server's walks. */
export function contentOwner(serverId: string): string {
  return `${CONTENT_TIMER}:${serverId}`
}

/** A step of one walk. */
interface Step {
  readonly server: ServerState
  readonly owners: ContentOwners
  /** Days of all walks of the server, ascending. */
  readonly classes: readonly number[]
  readonly days: number
  readonly from: string
  readonly shard: number
  readonly nowMs: number
  readonly counters: ContentCounters | null
}

/** A logged message, and the data for reading its statuses. */
interface Logged {
  readonly messageId: string
  readonly short: string
  readonly entry: LogEntry
}

export const forgetContent: CommandType<TimerBody, null> = {
  name: 'forget content',
  frees: true,
  entities: (body) => [serverRef(parse(body).serverId)],
  counters: (body) => [contentOwner(parse(body).serverId)],
  facts: () => [],
  decide(body, states, facts, context): Decision<null> {
    const { serverId, days, from } = parse(body)
    const server = states.get<ServerState | null>(serverRef(serverId))
    if (server === null) return NOTHING
    const owners = ownersIn(states, server)
    if ('missing' in owners) {
      const places = days === null ? [] : placesFacts(context.shard, serverId, from)
      return { kind: 'need', entities: [owners.missing], facts: places }
    }
    const classes = shortContentDays(owners)
    const counters = states.counter<ContentCounters>(contentOwner(serverId))
    const [first] = classes
    if (first === undefined)
      return { ...NOTHING, counters: counters === null ? [] : [{ owner: contentOwner(serverId), value: null }] }
    // The reads of several rounds depend on it, so it must not change in between.
    const nowMs = context.nowMs - (context.nowMs % MINUTE_MS)
    const common = { server, owners, classes, shard: context.shard, nowMs, counters }
    if (days === null) return { ...NOTHING, due: [walkDue(common, first)] }
    // A setting that no stream has any more; the order that changed it has started the other walks.
    return classes.includes(days) ? walk({ ...common, days, from }, states, facts) : NOTHING
  },
}

const NOTHING = { kind: 'done', reply: null } as const

function walk(step: Step, states: States, facts: Facts): Decision<null> {
  const { server, shard, from } = step
  const { serverId } = server
  const places = placesFacts(shard, serverId, from)
  if (!places.every((fact) => facts.has(fact))) return { kind: 'need', facts: places }
  const [at, after] = places.map((fact) => facts.sorted(fact)[0])
  if (at === undefined) return goOn(step, after)
  const segment = at[0]
  const rows = new MessageRows(shard, { serverId, segment })
  const fact = rows.entriesFact({ from, to: String(latestMs(step)), count: STEP_MESSAGES })
  // Read together, because a segment that has left Redis since must not be taken for an empty one.
  if (!facts.has(fact) || !facts.has(rows.sealedFact())) return { kind: 'need', facts: [fact, rows.sealedFact()] }
  if (rows.isSealed(facts)) {
    const order = { act: 'forget', serverId, segment, days: step.days, from, toMs: latestMs(step) } as const
    return goOn(step, after, [coldDue(server.accountId, order, step.nowMs)])
  }
  const entries = facts.range(fact)
  const last = entries.at(-1)
  if (last === undefined) return goOn(step, after)
  const found = forgetSome(entries, step, { rows, segment, states, facts })
  if (found.kind === 'need') return found
  const { ops, due } = found
  if (entries.length < STEP_MESSAGES) return { ...goOn(step, after, due), ops }
  return { ...NOTHING, ops, due: [...due, stepDue(step, step.days, entryIdAfter(last.id))] }
}

/** The segment of an entry id, and the one after it. */
function placesFacts(shard: number, serverId: string, entryId: string) {
  const key = segmentsKey(shard, serverId)
  return [segmentAtFact(key, msOfEntry(entryId)), segmentAfterFact(key, msOfEntry(entryId))]
}

type Some = { readonly kind: 'some' } & ReturnType<typeof endContents>

/** Removes the content of the messages of a step, or gives them separate timers. */
function forgetSome(
  entries: readonly Entry[],
  step: Step,
  { rows, segment, states, facts }: { rows: MessageRows; segment: string; states: States; facts: Facts },
): Some | Extract<Decision<null>, { kind: 'need' }> {
  const { server, owners, days, shard, nowMs } = step
  const logged = entries.flatMap((entry): Logged[] => {
    const messageId = idOfEntry(entry.id, shard)
    const found = unlessDamaged(() => parseLogEntry(entry))
    return found === null ? [] : [{ messageId, short: shortId(messageId), entry: found }]
  })
  const streamOf = ({ entry }: Logged) => entry.streamId ?? server.defaultStreamId
  const streams = missingStreams(states, logged.map(streamOf))
  if (streams.length > 0) return { kind: 'need', entities: streams }
  const mine = logged.filter((one) => daysOfStream(states, owners, streamOf(one)) === days)
  if (mine.length === 0) return { kind: 'some', ops: [], due: [] }
  const reads = [rows.headsFact(mine.map(({ short }) => short)), rows.statusesFact(mine.flatMap(fieldsOf))]
  if (!reads.every((one) => facts.has(one))) return { kind: 'need', facts: reads }
  const kept: Due[] = []
  const ended: FoundMessage[] = []
  for (const one of mine) {
    // Damaged content expires with the service's default.
    const message = unlessDamaged(() => messageIn(rows, facts, { logged: one, segment, streamId: streamOf(one) }))
    if (message === null) continue
    if (message.isOpen) kept.push(messageDue({ serverId: server.serverId, segment }, one.short, nowMs))
    else ended.push(message)
  }
  const broadcasts = missingBroadcasts(states, ended)
  if (broadcasts.length > 0) return { kind: 'need', entities: broadcasts }
  const { ops, due } = endContents({ shard, nowMs }, states, { messages: ended, days })
  const heads = withoutPacks(rows, ended, { facts, context: { shard, nowMs } })
  return { kind: 'some', ops: [...ops, ...heads.ops], due: [...due, ...heads.due, ...kept] }
}

/** Looks again at a message that had an attempt left. */
export const forgetContentOf: CommandType<TimerBody, null> = {
  name: 'forget content of',
  frees: true,
  entities: (body) => [serverRef(placeOf(body).serverId)],
  counters: () => [],
  facts(body, _states, { shard }): Fact[] {
    const { messageId, short, ...place } = placeOf(body)
    const rows = new MessageRows(shard, place)
    return [rows.entryFact(messageId), rows.headsFact([short]), rows.sealedFact()]
  },
  decide(body, states, facts, { shard, nowMs }): Decision<null> {
    const { messageId, short, serverId, segment } = placeOf(body)
    const rows = new MessageRows(shard, { serverId, segment })
    const server = states.get<ServerState | null>(serverRef(serverId))
    const entry = rows.entry(facts, messageId)
    const submittedAtMs = msOf(messageId)
    const isLeft = nowMs < contentExpiresAtMs(submittedAtMs, isTestSegment(segment))
    if (server === null || entry === null || !isLeft) return NOTHING
    const owners = ownersIn(states, server)
    if ('missing' in owners) return { kind: 'need', entities: [owners.missing] }
    const logged = { messageId, short, entry }
    const streamId = entry.streamId ?? server.defaultStreamId
    const streams = missingStreams(states, [streamId])
    const statuses = rows.statusesFact(fieldsOf(logged))
    if (streams.length > 0 || !facts.has(statuses)) return { kind: 'need', entities: streams, facts: [statuses] }
    const days = daysOfStream(states, owners, streamId)
    const message = messageIn(rows, facts, { logged, segment, streamId })
    if (message === null || nowMs < sentContentEndsAtMs(submittedAtMs, days)) return NOTHING
    const broadcasts = missingBroadcasts(states, [message])
    if (broadcasts.length > 0) return { kind: 'need', entities: broadcasts }
    if (!message.isOpen) {
      const { ops, due } = endContents({ shard, nowMs }, states, { messages: [message], days })
      const heads = withoutPacks(rows, [message], { facts, context: { shard, nowMs } })
      return { ...NOTHING, ops: [...ops, ...heads.ops], due: [...due, ...heads.due] }
    }
    return {
      ...NOTHING,
      ops: keepShared({ shard, nowMs }, states, { message, days }),
      due: [messageDue({ serverId, segment }, short, nowMs)],
    }
  },
}

interface FoundMessage extends EndedMessage {
  readonly short: string
  readonly isOpen: boolean
}

/** The heads of messages whose bodies lie in packs lose place and key. */
function withoutPacks(
  rows: MessageRows,
  messages: readonly FoundMessage[],
  { facts, context }: { readonly facts: Facts; readonly context: Pick<Context, 'shard' | 'nowMs'> },
): { readonly ops: readonly Op[]; readonly due: readonly Due[] } {
  const packed = messages.filter(({ head }) => head.stored?.packed !== undefined)
  if (packed.length === 0) return { ops: [], due: [] }
  const heads = packed.flatMap(({ short, head }) => [short, headWithoutPack(head)])
  const thawed = thaw(rows, facts, context)
  return { ops: [...rows.changeOps({ heads, statuses: [] }), ...thawed.ops], due: thawed.due }
}

/** A message whose rows were read; null: it was erased, or has left the log. */
function messageIn(
  rows: MessageRows,
  facts: Facts,
  { logged, segment, streamId }: { logged: Logged; segment: string; streamId: string },
): FoundMessage | null {
  const { messageId, short, entry } = logged
  const packed = rows.head(facts, short)
  if (packed === null) return null
  const head = unpackHead(packed, entry.recipients.length)
  if (isErasedHead(head)) return null
  const submittedAtMs = msOf(messageId)
  const states = entry.recipients.map((_, recipient) =>
    unpackStatus(rows.status(facts, { short, recipient }), submittedAtMs),
  )
  return {
    short,
    contentId: entry.contentId,
    head,
    submittedAtMs,
    streamId,
    test: isTestSegment(segment),
    sizeBytes: states[0]?.sizeBytes ?? null,
    isOpen: states.some(({ status }) => isOpen(status)),
  }
}

function fieldsOf({ short, entry }: Logged): string[] {
  return entry.recipients.map((_, recipient) => statusField(short, recipient))
}

/** The latest message that the walk reaches. */
function latestMs({ days, nowMs }: Pick<Step, 'days' | 'nowMs'>): number {
  return nowMs - Math.max(days * DAY_MS, YOUNGEST_MS)
}

/** The next segment, the next walk, or the next time. */
function goOn(step: Step, after: readonly [string, number] | undefined, more: readonly Due[] = []) {
  const { server, owners, classes, days, nowMs, counters } = step
  if (after !== undefined && after[1] <= latestMs(step))
    return { ...NOTHING, due: [...more, stepDue(step, days, `${after[1]}-0`)] }
  const mark = markOfSettings(owners)
  const before = counters?.mark === mark ? counters.at : {}
  const value: ContentCounters = { mark, at: { ...before, [days]: `${latestMs(step) + 1}-0` } }
  const next = classes[classes.indexOf(days) + 1]
  const due = next === undefined ? contentDue(server.serverId, nowMs + AGAIN_MS) : walkDue(step, next)
  return { ...NOTHING, counters: [{ owner: contentOwner(server.serverId), value }], due: [...more, due] }
}

/** The first step of a walk, which starts at the end of the previous walk, unless a setting has changed. */
function walkDue(step: Omit<Step, 'days' | 'from'>, days: number): Due {
  const { server, owners, nowMs, counters } = step
  const isTest = server.mode === 'test'
  const oldest = `${nowMs - (contentExpiresAtMs(0, isTest) + DAY_MS)}-0`
  const known = counters?.mark === markOfSettings(owners) ? counters.at[days] : undefined
  return stepDue(step, days, known !== undefined && isEntryIdAbove(known, oldest) ? known : oldest)
}

function stepDue({ server, nowMs }: Pick<Step, 'server' | 'nowMs'>, days: number, from: string): Due {
  return { lane: TIMERS_LANE, item: `${CONTENT_TIMER}:${server.serverId}:${days}:${from}`, atMs: nowMs }
}

function messageDue({ serverId, segment }: { serverId: string; segment: string }, short: string, nowMs: number): Due {
  const item = `${CONTENT_OF_TIMER}:${shortId(serverId)}.${segment}.${short}`
  return { lane: TIMERS_LANE, item, atMs: nowMs + AGAIN_MS }
}

function parse({ item }: TimerBody): { serverId: string; days: number | null; from: string } {
  const [, serverId = '', days, from = '0-0'] = item.split(':')
  return { serverId, days: days === undefined ? null : Number(days), from }
}

function placeOf({ item }: TimerBody): { serverId: string; segment: string; short: string; messageId: string } {
  const [server = '', segment = '', short = ''] = item.slice(CONTENT_OF_TIMER.length + 1).split('.')
  return { serverId: idOfShort(server), segment, short, messageId: idOfShort(short) }
}

function msOfEntry(entryId: string): number {
  return Number.parseInt(entryId, 10)
}
