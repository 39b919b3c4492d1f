/**
 * walk-log - the sent messages of a server, segment by segment. Messages to the person are found by postings, and
 * those from the person in the whole log. A sealed segment is rewritten if its filter may hold the person.
 *
 * The head of each message is emptied and all content removed. The person's own recipient loses the replies of
 * servers; if pending, it ends as cancelled without an event, and the others of the message, which no longer has
 * content, bounce. Lanes are not searched, because an item of an ended recipient is removed when it is due.
 *
 * Guarantees: a message is counted once, in the commit that empties its head, and only if it is to the person; a
 * message of a number that was given out after the order is never touched.
 *
 * Keys: `segments:<server>`, `by-person log head status:<server>:<segment>`, bodies, content
 *
 * Spec erasure.messages, message.states
 */

import type { Entry, Fact, Ref } from '../../../cluster/behaviour.ts'
import { entryIdAfter, entryIdOf, idOfEntry, msOf, shortId } from '../../../cluster/id.ts'
import { type ErasureWalk, type WalkPlace, withTold } from '../../state/erasure.ts'
import { byPersonKey, segmentsKey } from '../../state/keys.ts'
import { type LogEntry, parseLogEntry } from '../../state/message/log-entry.ts'
import { mayBeOf } from '../../state/message/person-filter.ts'
import { bucketOfPosting, postsPerson } from '../../state/message/posting.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldDue } from '../../state/message/sealed.ts'
import { statusField } from '../../state/message/status.ts'
import { bucketsOfSegment, hasPostings } from '../../state/segment.ts'
import { type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { listenersRef, type Subscriber } from '../../state/webhook/webhook.ts'
import { thaw } from '../message/thaw.ts'
import { announced, announceMessages } from '../webhook/announce.ts'
import { ErasedMessages, type PersonsMessage } from './erased-messages.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Messages that one step erases: more in one commit hold up those who send. */
const STEP_MESSAGES = 200
/** Entries that one step reads from a posting's bucket, and from a log. */
const POSTINGS_LOOKED_AT = 250
const ENTRIES_LOOKED_AT = 250
/** Sealed segments that one step asks for the person; the filter of a full one has some 70 KB. */
const SEALED_AT_ONCE = 20
/**
 * Recipients of one step, without those of its first message, because each has a status, and one that fails is
 * announced.
 */
const STEP_RECIPIENTS = 150
/**
 * Writes of one step apart from heads, statuses and small bodies, which are combined; each names only a key of some 80
 * bytes. A body in Redis of unknown size counts as 41 chunks, so a step erases 8 such messages. The last message may
 * go beyond it, by its own chunks (some 200) and by the webhook events of its recipients.
 */
const STEP_WRITES = 300
/** The writes of an announced event for each webhook: its entry in the queue and its place in the lane. */
const WRITES_OF_EVENT = 2

type RangeFact = Fact & { readonly read: 'range' }

/** One step. */
export function walkLog(step: ServerStep): StepResult {
  const { walk, place } = step
  if (walk.number === 0) return OVER
  return place.segment === null ? nextSegment(step) : walkSegment(step, place.segment)
}

/** The reads of a step within a segment, which depend on its position. */
export function logStepFacts(shard: number, step: Pick<ServerStep, 'erasureId' | 'walk' | 'place'>): Fact[] {
  const { serverId, segment } = step.place
  if (segment === null) return []
  return [rangeFact(shard, { ...step, serverId }, segment), new MessageRows(shard, { serverId, segment }).sealedFact()]
}

function nextSegment(step: ServerStep): StepResult {
  const { server, erasureId, place, facts, context } = step
  const fact: Fact & { read: 'sorted' } = {
    read: 'sorted',
    key: segmentsKey(context.shard, server.serverId),
    min: place.segmentMs + 1,
    max: msOf(erasureId),
    count: SEALED_AT_ONCE,
  }
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const found = facts.sorted(fact)
  const [first] = found
  if (first === undefined) return OVER
  const rows = found.map(([segment]) => new MessageRows(context.shard, { serverId: server.serverId, segment }))
  const reads = rows.map((one) => one.sealedFact())
  if (!reads.every((one) => facts.has(one))) return { kind: 'need', facts: reads }
  const hot = rows.findIndex((one) => !one.isSealed(facts))
  const sealed = hot < 0 ? found : found.slice(0, hot)
  const last = sealed.at(-1)
  if (last === undefined) {
    const [segment, segmentMs] = first
    return { kind: 'stepped', place: { ...place, segment, segmentMs, after: '' } }
  }
  const filters = rows.slice(0, sealed.length).map((one) => one.filterFact())
  if (!filters.every((one) => facts.has(one))) return { kind: 'need', facts: filters }
  const holding = sealed.filter((_, at) => mayHoldPerson(step, rows[at] as MessageRows))
  return eraseSealed(
    step,
    holding.map(([segment]) => segment),
    { ...place, segmentMs: last[1] },
  )
}

/** Whether a sealed segment may name the person, by its filter. */
function mayHoldPerson({ walk, facts }: ServerStep, rows: MessageRows): boolean {
  const blocks = rows.sealed(facts)?.filterBlocks ?? 0
  return blocks === 0 || mayBeOf(facts.value(rows.filterFact().key), walk.number, blocks)
}

/** Orders the rewrites of sealed segments; the walk waits for them before its last phase. */
function eraseSealed(
  { server: { serverId }, accountId, erasureId, context }: ServerStep,
  segments: readonly string[],
  place: WalkPlace,
): StepResult {
  const due = segments.map((segment) => {
    return coldDue(accountId, { act: 'erase', serverId, segment, erasureId, step: 0 }, context.nowMs)
  })
  return { kind: 'stepped', place: { ...place, segment: null, after: '' }, looks: due.length, staged: { due } }
}

function rangeFact(
  shard: number,
  { serverId, erasureId, walk, place }: { serverId: string } & Pick<ServerStep, 'erasureId' | 'walk' | 'place'>,
  segment: string,
): RangeFact {
  const range = { from: place.after || '-', to: entryIdOf(erasureId) }
  if (!isPostedFor(walk, segment))
    return new MessageRows(shard, { serverId, segment }).entriesFact({ ...range, count: ENTRIES_LOOKED_AT })
  const key = byPersonKey(shard, serverId, segment, bucketOfPosting(walk.number, bucketsOfSegment(segment)))
  return { read: 'range', key, ...range, count: POSTINGS_LOOKED_AT }
}

/** A message of the person. */
interface Candidate {
  readonly entryId: string
  readonly messageId: string
  /** Null until it is read, because a posting only names a message. */
  readonly entry: LogEntry | null
}

function walkSegment(step: ServerStep, segment: string): StepResult {
  const { server, place, facts, context } = step
  const { shard } = context
  const fact = rangeFact(shard, { ...step, serverId: server.serverId }, segment)
  const rows = new MessageRows(shard, { serverId: server.serverId, segment })
  const reads = [fact, rows.sealedFact()]
  if (!reads.every((one) => facts.has(one))) return { kind: 'need', facts: reads }
  // The segment was sealed during the walk, and its log is empty here. Messages erased before have an empty head and
  // are not counted again.
  if (rows.isSealed(facts)) return eraseSealed(step, [segment], place)
  const looked = facts.range(fact)
  const candidates = findCandidates(step, segment, looked).slice(0, STEP_MESSAGES)
  const next = (erased: number): WalkPlace => {
    const last = candidates[erased - 1]
    const isCut = erased < candidates.length || candidates.length === STEP_MESSAGES
    if (isCut && last !== undefined) return { ...place, after: entryIdAfter(last.entryId) }
    // Only an empty answer is the end: a trim in flight takes entries out of a full one.
    const lastLooked = looked.at(-1)
    return lastLooked === undefined
      ? { ...place, segment: null, after: '' }
      : { ...place, after: entryIdAfter(lastLooked.id) }
  }
  if (candidates.length === 0) return { kind: 'stepped', place: next(0) }
  return eraseMessages(step, { segment, candidates, next })
}

/** Whether the postings of a segment are sufficient. */
function isPostedFor({ sends }: ErasureWalk, segment: string): boolean {
  return hasPostings(segment) && !sends
}

function isOfPerson({ sender, recipients }: LogEntry, number: number): boolean {
  return sender === number || recipients.includes(number)
}

function findCandidates({ walk, context }: ServerStep, segment: string, entries: readonly Entry[]): Candidate[] {
  const { number } = walk
  const isPosted = isPostedFor(walk, segment)
  return entries.flatMap((one): Candidate[] => {
    const at = { entryId: one.id, messageId: idOfEntry(one.id, context.shard) }
    if (isPosted) return postsPerson(one, number) ? [{ ...at, entry: null }] : []
    const entry = parseLogEntry(one)
    return entry !== null && isOfPerson(entry, number) ? [{ ...at, entry }] : []
  })
}

function eraseMessages(
  step: ServerStep,
  of: { segment: string; candidates: readonly Candidate[]; next: (erased: number) => WalkPlace },
): StepResult {
  const { server, walk, states, facts, context } = step
  const { segment, candidates, next } = of
  const { shard } = context
  const { serverId } = server
  const rows = new MessageRows(shard, { serverId, segment })
  const unread = candidates.flatMap(({ entry, messageId }) => (entry === null ? [rows.entryFact(messageId)] : []))
  if (!unread.every((one) => facts.has(one))) return { kind: 'need', facts: unread }
  const all = candidates.map(({ messageId, entry }): Logged => {
    return { messageId, short: shortId(messageId), entry: entry ?? rows.entry(facts, messageId) }
  })
  const logged = withinBound(all)
  const reads = rowFacts(rows, logged)
  const refs = toldRefs(server)
  const owner = serverOwner(serverId)
  if (!reads.every((one) => facts.has(one)) || !refs.every((ref) => states.has(ref)) || !states.hasCounter(owner))
    return { kind: 'need', facts: reads, entities: refs, counters: [owner] }
  const listeners = server.hasWebhooks ? (states.get<readonly Subscriber[] | null>(listenersRef(serverId)) ?? []) : []
  const erased = new ErasedMessages({ server, segment, walk, facts, context })
  let done = 0
  for (const { messageId, short, entry } of logged) {
    if (erased.writes + erased.news.length * (1 + listeners.length * WRITES_OF_EVENT) >= STEP_WRITES) break
    done += 1
    if (entry !== null) erased.add({ messageId, short, entry } satisfies PersonsMessage)
  }
  const { news, streamIds } = erased
  const told = announceMessages({ serverId, news, streamIds }, { states, facts, context })
  if (told.kind === 'need') return told
  const own = erased.staged()
  const thawed = thaw(rows, facts, context)
  const ops = [...(own.ops ?? []), ...thawed.ops]
  const due = [...(own.due ?? []), ...thawed.due]
  const { kind: _, reply: __, ...staged } = announced({ kind: 'done', reply: null, ...own, ops, due }, told.staged)
  return { kind: 'stepped', place: withTold(next(done), erased.told, context.nowMs), messages: erased.messages, staged }
}

/** A message of the person with its log entry; null if it has left the log. */
interface Logged {
  readonly messageId: string
  readonly short: string
  readonly entry: LogEntry | null
}

/** The first messages, as many as the recipients of one step allow. */
function withinBound(logged: readonly Logged[]): readonly Logged[] {
  let recipients = 0
  const end = logged.findIndex(({ entry }, at) => {
    recipients += entry?.recipients.length ?? 0
    return at > 0 && recipients > STEP_RECIPIENTS
  })
  return end < 0 ? logged : logged.slice(0, end)
}

/** The states that a step needs to announce failed recipients. */
function toldRefs({ serverId, hasWebhooks }: ServerState): Ref[] {
  return hasWebhooks ? [serverRef(serverId), listenersRef(serverId)] : [serverRef(serverId)]
}

/** Heads of all, and statuses of all recipients. */
function rowFacts(
  rows: MessageRows,
  logged: readonly { readonly short: string; readonly entry: LogEntry | null }[],
): Fact[] {
  const heads = logged.map(({ short }) => short)
  const statuses = logged.flatMap(({ short, entry }) => entry?.recipients.map((_, n) => statusField(short, n)) ?? [])
  return statuses.length > 0 ? [rows.headsFact(heads), rows.statusesFact(statuses)] : [rows.headsFact(heads)]
}
