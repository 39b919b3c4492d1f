/**
 * walk-received - the received mail of a server whose content may be kept: mail from the person, mail that names the
 * person, and mail to the person's address lose their content.
 *
 * The log is walked over the days for which content is kept. The senders of a mail, in its envelope and From, are
 * numbers; the addresses it names are hashes in its head row. If these are incomplete, or it was not parsed yet, its
 * header is read (`look.ts`). The removed row has the key to the content in every copy of the content store.
 *
 * Older mail still has the text after the plus sign of its address. If the person may have written, or has such an
 * address, postings lead to that mail in segments with postings (`posted-received.ts`); in the others the log is
 * walked, the blocks of a segment before its log (`packed-received.ts`). Mail without such a text is skipped.
 *
 * A damaged row may be anyone's, and no one can read it: it is removed, so that it stops no erasure.
 *
 * Keys: `received received-state received-blocks:<server>:<segment>`, `received-segments:<server>`,
 * `received-head:<server>:<day>:<n>`, `received-by-person received-by-hash:<server>:<segment>:<bucket>`
 *
 * Spec erasure.received
 */

import type { Due, Entry, Fact, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, entryIdOf, idOfEntry, msOf, shortId } from '../../../cluster/id.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { type ErasureWalk, type ToldSpan, type WalkPlace, withTold } from '../../state/erasure.ts'
import { receivedKey, receivedSegmentsKey, receivedStateKey } from '../../state/keys.ts'
import { RECEIVED_DAYS } from '../../state/object-name.ts'
import { type ReceivedSegment, receivedBlocksFromFact } from '../../state/received/block.ts'
import { type ContentHead, contentHeadKey, namesPerson, unpackContentHead } from '../../state/received/content-head.ts'
import { parseReceivedEntry, type ReceivedEntry } from '../../state/received/entry.ts'
import { formatLookItem, lookLane } from '../../state/received/look-item.ts'
import { type ReceivedStanding, unpackStanding } from '../../state/received/standing.ts'
import { hasPostings, segmentEndMs } from '../../state/segment.ts'
import { eraseReceived, removeDamaged, toldOfReceived } from './erased-received.ts'
import { eraseInBlocks, isOfSender } from './packed-received.ts'
import { postedEntries } from './posted-received.ts'
import { OVER, type ServerStep, type StepResult } from './step.ts'

/** Messages of one step whose rows are read. */
const STEP_MESSAGES = 200
/** Entries that one step reads if the entry alone usually decides. */
const OLD_LOOKED_AT = 1_000

/** Messages in blocks of one step, rounded up to blocks. */
const STEP_PACKED = 400

type RangeFact = Fact & { readonly read: 'range' }
type SortedFact = Fact & { readonly read: 'sorted' }

/** One step. */
export function walkReceived(step: ServerStep): StepResult {
  const { place } = step
  return place.segment === null ? nextSegment(step) : walkSegment(step, place.segment)
}

/** The reads of a step within a segment, which depend on its position. */
export function receivedStepFacts(shard: number, { erasureId, place }: Pick<ServerStep, 'erasureId' | 'place'>) {
  const { segment } = place
  if (segment === null || hasOldPostings(erasureId, segment, place)) return []
  const { serverId } = place
  return [rangeFact(shard, { erasureId, place }, segment), blocksFact({ shard, serverId, segment }, place)]
}

/** The next blocks of a segment, and perhaps the one before. */
function blocksFact(at: ReceivedSegment, { after }: Pick<WalkPlace, 'after'>): SortedFact {
  return receivedBlocksFromFact(at, after || '-', STEP_PACKED)
}

function rangeFact(
  shard: number,
  { erasureId, place }: Pick<ServerStep, 'erasureId' | 'place'>,
  segment: string,
): RangeFact {
  const { serverId, segmentMs, after } = place
  const key = receivedKey(shard, serverId, segment)
  const fromMs = after === '' ? segmentMs : Number.parseInt(after, 10)
  const count = fromMs < keptFromMs(erasureId) ? OLD_LOOKED_AT : STEP_MESSAGES
  return { read: 'range', key, from: after || '-', to: entryIdOf(erasureId), count }
}

/** From when on content may still be kept. */
function keptFromMs(erasureId: string): number {
  return msOf(erasureId) - (RECEIVED_DAYS + 1) * DAY_MS
}

/** Whether a segment has postings for its older mail that were not all checked. */
function hasOldPostings(erasureId: string, segment: string, { segmentMs, after }: WalkPlace): boolean {
  return after === '' && hasPostings(segment) && segmentMs < keptFromMs(erasureId)
}

/** The segment with the oldest stored content, or the one after the last. */
function nextSegment({ server, walk, erasureId, place, facts, context }: ServerStep): StepResult {
  const key = receivedSegmentsKey(context.shard, server.serverId)
  const begins = place.segmentMs < 0 && !mayHavePlus(walk)
  const fromMs = begins ? keptFromMs(erasureId) : place.segmentMs + 1
  const holding: SortedFact = { read: 'sorted', key, min: 0, max: fromMs, count: 1, newest: true }
  const later: SortedFact = { read: 'sorted', key, min: fromMs, max: msOf(erasureId), count: 1 }
  const reads = begins ? [holding, later] : [later]
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const [found] = reads.flatMap((fact) => facts.sorted(fact).slice(0, 1))
  if (found === undefined) return OVER
  const [segment, segmentMs] = found
  return { kind: 'stepped', place: { ...place, segment, segmentMs, after: begins ? `${fromMs}-0` : '' } }
}

/** Whether numbers or an address may lead to mail whose content is gone, and that has something after a plus sign. */
function mayHavePlus({ number, mailbox }: ErasureWalk): boolean {
  return number !== 0 || (mailbox?.plusHash ?? null) !== null
}

/** A message of the walk. */
interface Message {
  readonly entryId: string
  readonly messageId: string
  readonly short: string
  readonly headKey: string
  /** Null if it is damaged. */
  readonly entry: ReceivedEntry | null
}

function walkSegment(step: ServerStep, segment: string): StepResult {
  const { erasureId, place, facts, context } = step
  if (hasOldPostings(erasureId, segment, place)) return walkPostings(step, segment)
  const at = { shard: context.shard, serverId: place.serverId, segment }
  const fact = rangeFact(context.shard, step, segment)
  const blocks = blocksFact(at, place)
  if (![fact, blocks].every((one) => facts.has(one))) return { kind: 'need', facts: [fact, blocks] }
  const inBlocks = eraseInBlocks(step, at, { blocks: facts.sorted(blocks), from: place.after })
  if (inBlocks.kind === 'need') return inBlocks
  const { ops, told } = inBlocks
  // Damaged blocks are gone after this step, and the next ones follow.
  const after = inBlocks.last === null ? place.after : entryIdAfter(inBlocks.last)
  if (inBlocks.last !== null || ops.length > 0)
    return { kind: 'stepped', place: withTold({ ...place, after }, told, context.nowMs), staged: { ops } }
  const entries = facts.range(fact)
  const messages = findMessages(step, entries).slice(0, STEP_MESSAGES)
  const cut = messages.length === STEP_MESSAGES ? messages.at(-1)?.entryId : undefined
  // Only an empty answer is the end: a trim in flight takes entries out of a full one.
  const last = cut ?? entries.at(-1)?.id
  const next: WalkPlace =
    last === undefined ? { ...place, segment: null, after: '' } : { ...place, after: entryIdAfter(last) }
  return makeErase(step, { segment, messages, next })
}

/** A step in the postings of a segment; behind the last one is the log of the days for which content is kept. */
function walkPostings(step: ServerStep, segment: string): StepResult {
  const { erasureId, place, context } = step
  const fromMs = keptFromMs(erasureId)
  const found = postedEntries(step, segment, fromMs)
  // The blocks have all that the log had.
  if (found === 'many') return { kind: 'stepped', place: { ...place, after: `${Math.max(0, place.segmentMs)}-0` } }
  if (found.kind === 'need') return found
  const at = { shard: context.shard, serverId: place.serverId, segment }
  const inBlocks = eraseInBlocks(step, at, { blocks: found.blocks })
  if (inBlocks.kind === 'need') return inBlocks
  const { entries, posted } = found
  const behind: WalkPlace =
    segmentEndMs(segment) <= fromMs ? { ...place, segment: null } : { ...place, after: `${fromMs}-0` }
  const next = posted === null ? behind : { ...place, posted }
  const erased = makeErase(step, { segment, messages: findMessages(step, entries), next })
  if (erased.kind === 'need' || erased.place === null) return erased
  const { staged = {} } = erased
  const ops = [...inBlocks.ops, ...(staged.ops ?? [])]
  return { ...erased, place: withTold(erased.place, inBlocks.told, context.nowMs), staged: { ...staged, ops } }
}

/** Erases those of a segment's messages that are the person's. Takes the next position of the walk. */
function makeErase(
  step: ServerStep,
  { segment, messages, next }: { segment: string; messages: readonly Message[]; next: WalkPlace },
): StepResult {
  const { server, erasureId, facts, context } = step
  const { shard } = context
  const { serverId } = server
  if (messages.length === 0) return { kind: 'stepped', place: next }
  const stateKey = receivedStateKey(shard, serverId, segment)
  const reads = [
    ...headFacts(messages),
    { read: 'fields', key: stateKey, fields: messages.map(({ short }) => short) } as const,
  ]
  if (!reads.every((one) => facts.has(one))) return { kind: 'need', facts: reads }
  const ops: Op[] = []
  const due: Due[] = []
  let received = 0
  let looks = 0
  const spans: ToldSpan[] = []
  for (const message of messages) {
    const { messageId, short, headKey, entry } = message
    const state = facts.field(stateKey, short)
    if (state === null) continue
    const standing = unlessDamaged(() => unpackStanding(state, msOf(messageId)))
    const packed = facts.field(headKey, short)
    const head = packed === null ? null : unlessDamaged(() => unpackContentHead(packed))
    const at = { serverId, segment, messageId }
    if (entry === null || standing === null || (packed !== null && head === null)) {
      const removed = removeDamaged(context, at, { stateKey, hasHead: packed !== null, head })
      ops.push(...removed.ops)
      due.push(...removed.due)
      received += removed.count
      continue
    }
    const told = isOfPerson(step.walk, { entry, standing, head })
    if (told === 'unknown') {
      looks += 1
      due.push({ lane: lookLane(step.accountId), item: formatLookItem(erasureId, at), atMs: context.nowMs })
    } else if (told) {
      const erased = eraseReceived(context, at, { standing, head })
      ops.push(...erased.ops)
      due.push(...erased.due)
      received += erased.count
      spans.push(...toldOfReceived(messageId, standing))
    }
  }
  return {
    kind: 'stepped',
    place: withTold(next, spans, context.nowMs),
    receivedMessages: received,
    looks,
    staged: { ops, due },
  }
}

/** Whether a message is from the person, names it, or came to its address; `unknown` if its header must be read. */
function isOfPerson(
  walk: ErasureWalk,
  { entry, standing, head }: { entry: ReceivedEntry; standing: ReceivedStanding; head: ContentHead | null },
): boolean | 'unknown' {
  if (isOfSender(walk, { entry, standing })) return true
  if (head === null) return false
  if (namesPerson(head.named, walk.hmac)) return true
  return standing.isParsed && head.named.isWhole ? false : 'unknown'
}

/** Messages that may have content, or a text after a plus sign. */
function findMessages({ server, erasureId, context }: ServerStep, entries: readonly Entry[]): Message[] {
  const { shard } = context
  const { serverId } = server
  return entries.flatMap((one): Message[] => {
    const entry = unlessDamaged(() => parseReceivedEntry(one) ?? 'nothing')
    if (entry === 'nothing') return []
    const messageId = idOfEntry(one.id, shard)
    if (entry?.plusHash === null && msOf(messageId) < keptFromMs(erasureId)) return []
    const headKey = contentHeadKey(shard, serverId, messageId)
    return [{ entryId: one.id, messageId, short: shortId(messageId), headKey, entry }]
  })
}

/** One read for each slice of a day. */
function headFacts(messages: readonly Message[]): Fact[] {
  const fields = new Map<string, string[]>()
  for (const { headKey, short } of messages) fields.set(headKey, [...(fields.get(headKey) ?? []), short])
  return Array.from(fields, ([key, shorts]): Fact => ({ read: 'fields', key, fields: shorts }))
}
