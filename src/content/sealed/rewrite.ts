/**
 * rewrite - writes the object of a sealed segment again: with the rows of a person emptied, without expired messages,
 * without the keys of bodies whose content has ended, or with the keys in its heads sealed again.
 *
 * Blocks that nothing changes in are copied as they are for an erasure. The written object is read back before its row
 * may name it.
 */

import { setImmediate as turn } from 'node:timers/promises'
import { entryIdOf, idOfEntry, idOfShort, isEntryIdAbove, msOf, shardOf, shortId } from '../../../cluster/id.ts'
import type { EraseJob, EraseOutcome, TouchedMessage } from '../../actors/sealed/erase.ts'
import type { ForgetJob, ForgetOutcome } from '../../actors/sealed/forget.ts'
import type { ResealJob, ResealOutcome } from '../../actors/sealed/reseal.ts'
import type { StripJob, StripOutcome } from '../../actors/sealed/strip.ts'
import type { TrimJob, TrimOutcome } from '../../actors/sealed/trim.ts'
import { contentExpiresAtMs } from '../../state/age.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { type ToldSpan, toldOf, WALK_BEGIN, withTold } from '../../state/erasure.ts'
import { erasedHead, headWithoutPack, isErasedHead, unpackHead } from '../../state/message/head.ts'
import { unpackLogEntry } from '../../state/message/log-entry.ts'
import { MessageRows } from '../../state/message/row.ts'
import { coldName, type SealedRow } from '../../state/message/sealed.ts'
import { packStatus, statusField, unpackStatus, withoutResponse } from '../../state/message/status.ts'
import { resealedHead } from '../../state/ring/sealed-values.ts'
import { isTestSegment } from '../../state/segment.ts'
import { makeMailKey } from '../mail-key.ts'
import { packBlock, type SealedMessage, textOfBlock } from './block.ts'
import { computeCheck, SegmentPacker } from './packer.ts'
import { blockAt, type PlacedMessage, type SealedSegment } from './segment.ts'
import { type BlockPlace, blocksBytes, indexesBytes, packTail } from './tail.ts'
import { type ColdDeps, isSame, writeObject } from './written.ts'

/** Messages whose content or recalled rows one commit erases. */
export const TOUCHED_MAX = 100
/** Recalled messages that one trim removes; the next day's has the rest. */
const REMOVED_MAX = 500

/** Empties the rows of a person. Throws SegmentFailure. */
export async function eraseInSegment(deps: ColdDeps, job: EraseJob): Promise<EraseOutcome> {
  const { serverId, segment: name, row, number, step } = job
  const shard = shardOf(serverId) as number
  const segment = deps.segments.open(shard, row)
  const places = new Set([...(await segment.places('recipient', number)), ...(await segment.places('sender', number))])
  if (places.size === 0) return { act: 'erase', result: 'none' }
  await segment.hold()
  const messages = await segment.at([...places])
  const recalled = await readRecalled(deps, job, messages)
  if (recalled === null) return { act: 'erase', result: 'away' }
  const test = isTestSegment(name)
  const touched = messages.filter((one) => recalled.has(one.entryId) || hasContent(one, { test, nowMs: deps.nowMs() }))
  const slice = touched.slice(step * TOUCHED_MAX, (step + 1) * TOUCHED_MAX).map(touchedOf)
  if (touched.length > (step + 1) * TOUCHED_MAX) return { act: 'erase', result: 'step', messages: slice }
  const emptied = new Map(messages.map((one) => [one.place, emptiedRow(one, number)]))
  const object = await writeChanged(deps, { shard, row, segment, changes: emptying(emptied) })
  if (object === null) return { act: 'erase', result: 'away' }
  const count = messages.filter((one) => {
    const isTo = unpackLogEntry(one.log).recipients.includes(number)
    return isTo && !recalled.has(one.entryId) && !isEmptied(one)
  }).length
  return {
    act: 'erase',
    result: 'swapped',
    messages: slice,
    before: row,
    object,
    count,
    told: spansOf(messages, deps.nowMs()),
  }
}

/** Seals the keys in the heads of a segment anew, and its own. Throws SegmentFailure. */
export async function resealInSegment(deps: ColdDeps, { serverId, row }: ResealJob): Promise<ResealOutcome> {
  const { ring } = deps
  const shard = shardOf(serverId) as number
  const segment = deps.segments.open(shard, row)
  await segment.hold()
  const headKeys = ring.sealing().generation
  // A head has no other sealed value, so that no nonce is needed.
  const changed = (one: PlacedMessage): SealedMessage => ({ ...one, head: resealedHead(ring, one.head) })
  const object = await writeChanged(deps, { shard, row, segment, changes: { touches: () => true, changed } })
  if (object === null) return { act: 'reseal', result: 'away' }
  return { act: 'reseal', result: 'swapped', before: row, object: { ...object, headKeys } }
}

/** Reads some messages whose content may have ended. Throws SegmentFailure. */
export async function readForForget({ segments }: ColdDeps, job: ForgetJob): Promise<ForgetOutcome> {
  const { serverId, row, from, toMs } = job
  const segment = segments.open(shardOf(serverId) as number, row)
  const { blocks } = await segment.tail()
  const messages: TouchedMessage[] = []
  for (let number = Math.max(0, blockAt(blocks, from)); number < blocks.length; number += 1) {
    if (msOfEntry((blocks[number] as BlockPlace)[0]) > toMs) break
    for (const message of await segment.block(number)) {
      const { entryId } = message
      if (isEntryIdAbove(from, entryId) || msOfEntry(entryId) > toMs) continue
      if (messages.length === TOUCHED_MAX) return { act: 'forget', result: 'found', messages, next: entryId }
      messages.push(touchedOf(message))
    }
  }
  return { act: 'forget', result: 'found', messages, next: null }
}

/** Whether content of a message may lie outside of packs, where it ends with the key in the head. */
function hasContent({ entryId, log, head }: SealedMessage, { test, nowMs }: { test: boolean; nowMs: number }): boolean {
  // A slice of bodies is kept a little longer than its content.
  if (contentExpiresAtMs(msOfEntry(entryId), test) + DAY_MS < nowMs) return false
  const { stored, attachments, raw } = unpackHead(head, unpackLogEntry(log).recipients.length)
  return stored?.packed === undefined || attachments.length > 0 || raw !== null
}

/** Removes the keys of packed bodies whose content has ended. Throws SegmentFailure. */
export async function stripSegment(deps: ColdDeps, job: StripJob): Promise<StripOutcome> {
  const { serverId, row } = job
  const shard = shardOf(serverId) as number
  const segment = deps.segments.open(shard, row)
  await segment.hold()
  const { blocks } = await segment.tail()
  const emptied = new Map<number, SealedMessage>()
  for (const number of blocks.keys()) {
    for (const { place, ...message } of await segment.block(number)) {
      const head = strippedHead(job, message)
      if (head !== null) emptied.set(place, { ...message, head })
    }
    await turn()
  }
  const recalled = await strippedRecalled(deps, job)
  if (recalled === null) return { act: 'strip', result: 'away' }
  if (emptied.size === 0 && recalled.length === 0) return { act: 'strip', result: 'none' }
  const object = await writeChanged(deps, { shard, row: job.row, segment, changes: emptying(emptied) })
  return object === null
    ? { act: 'strip', result: 'away' }
    : { act: 'strip', result: 'swapped', before: row, object, recalled }
}

/** The head of a message without the key of its body; null if there is none, or its content has not ended. */
function strippedHead(
  { ends, defaultStreamId }: StripJob,
  { entryId, log, head: text }: Pick<SealedMessage, 'entryId' | 'log' | 'head'>,
): string | null {
  const { streamId, recipients } = unpackLogEntry(log)
  const of = streamId ?? defaultStreamId
  const isEnded = ends.some(([one, untilMs]) => one === of && msOfEntry(entryId) <= untilMs)
  const head = unpackHead(text, recipients.length)
  return isEnded && head.stored?.packed !== undefined && !isErasedHead(head) ? headWithoutPack(head) : null
}

/** Recalled messages with such a key; null if the store did not answer. */
export async function strippedRecalled({ read }: ColdDeps, job: StripJob) {
  const shard = shardOf(job.serverId) as number
  const rows = new MessageRows(shard, job)
  const seen = await read(shard, [rows.allRecalledFact()])
  if (seen === null) return null
  const recalled = [...seen[0]]
  const heads = await read(shard, [rows.headsFact(recalled.map(([short]) => short))])
  if (heads === null) return null
  return recalled.flatMap(([short, log], at) => {
    const head = heads[0][at] ?? null
    const entryId = entryIdOf(idOfShort(short))
    if (head === null || strippedHead(job, { entryId, log, head }) === null) return []
    return [{ short, recipients: unpackLogEntry(log).recipients.length }]
  })
}

/** Leaves out what is past its age. Throws SegmentFailure. */
export async function trimSegment(
  deps: ColdDeps,
  { serverId, segment: name, row, cutoffMs }: TrimJob,
): Promise<TrimOutcome> {
  const shard = shardOf(serverId) as number
  const segment = deps.segments.open(shard, row)
  await segment.hold()
  const packer = new SegmentPacker()
  const pieces: Buffer[] = []
  let firstMs = cutoffMs
  for await (const message of messagesSince(segment, cutoffMs)) {
    if (packer.messages === 0) firstMs = msOfEntry(message.entryId)
    const block = packer.add(message)
    if (block !== null) pieces.push(await block)
  }
  for await (const piece of packer.end()) pieces.push(piece)
  const removed = await pastRecalled(deps, { serverId, segment: name, cutoffMs })
  if (removed === null) return { act: 'trim', result: 'away' }
  const { key, sealed } = makeMailKey(deps.ring)
  const place = { leaf: row.next, day: row.day }
  const size = await writeObject(deps, { name: coldName(shard, place), key, pieces })
  // The rest of a segment without messages is removed completely by the next sweep.
  const object = { size: size ?? 0, key: sealed, messages: packer.messages, firstMs }
  const written = { shard, row: { ...row, ...place, ...object }, pieces, checks: packer.checks }
  if (size === null || !(await isSame(deps, written))) return { act: 'trim', result: 'away' }
  return { act: 'trim', result: 'swapped', before: row, object, removed }
}

/** The messages from an instant on, oldest first. Other work has its turn after each block. */
async function* messagesSince(segment: SealedSegment, cutoffMs: number): AsyncGenerator<SealedMessage> {
  const { blocks } = await segment.tail()
  for (const number of blocks.keys()) {
    const next = blocks[number + 1]?.[0]
    if (next !== undefined && msOfEntry(next) < cutoffMs) continue
    for (const message of await segment.block(number)) if (msOfEntry(message.entryId) >= cutoffMs) yield message
    await turn()
  }
}

/** Entry ids of the recalled ones among these messages; null if the store did not answer. */
async function readRecalled(
  { read }: ColdDeps,
  { serverId, segment }: EraseJob,
  messages: readonly SealedMessage[],
): Promise<ReadonlySet<string> | null> {
  const shard = shardOf(serverId) as number
  const rows = new MessageRows(shard, { serverId, segment })
  const seen = await read(shard, [rows.recalledFact(messages.map(({ entryId }) => shortId(idOfEntry(entryId, shard))))])
  return seen && new Set(messages.flatMap(({ entryId }, at) => (seen[0][at] == null ? [] : [entryId])))
}

/** Recalled messages that have expired; null if the store did not answer. */
export async function pastRecalled(
  { read }: ColdDeps,
  { serverId, segment, cutoffMs }: { serverId: string; segment: string; cutoffMs: number },
): Promise<{ shorts: string[]; statuses: string[] } | null> {
  const shard = shardOf(serverId) as number
  const seen = await read(shard, [new MessageRows(shard, { serverId, segment }).allRecalledFact()])
  if (seen === null) return null
  const past = [...seen[0]].filter(([short]) => msOf(idOfShort(short)) < cutoffMs).slice(0, REMOVED_MAX)
  return {
    shorts: past.map(([short]) => short),
    statuses: past.flatMap(([short, log]) => unpackLogEntry(log).recipients.map((_, n) => statusField(short, n))),
  }
}

/** The rows of an object that are written anew, by their places. */
interface Changes {
  readonly touches: (place: number) => boolean
  readonly changed: (message: PlacedMessage) => SealedMessage
}

/** Some rows, by their places, are replaced. */
function emptying(emptied: ReadonlyMap<number, SealedMessage>): Changes {
  return { touches: (place) => emptied.has(place), changed: (one) => emptied.get(one.place) ?? one }
}

/**
 * Writes the object with some rows replaced. Returns null if the content store did not accept it, or has stored
 * something else.
 */
async function writeChanged(
  deps: ColdDeps,
  of: { shard: number; row: SealedRow; segment: SealedSegment; changes: Changes },
): Promise<{ size: number; key: string } | null> {
  const { shard, row, segment, changes } = of
  const tail = await segment.tail()
  const indexes = await segment.bytes(blocksBytes(tail), indexesBytes(tail))
  const pieces: Buffer[] = []
  const checks: (string | null)[] = []
  const blocks: BlockPlace[] = []
  let [from, place] = [0, 0]
  for (const [number, [firstId, rows, length]] of tail.blocks.entries()) {
    const isTouched = [...Array(rows).keys()].some((at) => changes.touches(place + at))
    const text = isTouched ? textOfBlock((await segment.block(number)).map(changes.changed)) : null
    const bytes = text === null ? await segment.bytes(from, length) : await packBlock(text)
    checks.push(text === null ? null : computeCheck(text))
    pieces.push(bytes)
    blocks.push([firstId, rows, bytes.length])
    from += length
    place += rows
    if (isTouched) await turn()
  }
  pieces.push(indexes, packTail({ blocks, indexes: tail.indexes }))
  const { key, sealed } = makeMailKey(deps.ring)
  const at = { leaf: row.next, day: row.day }
  const size = await writeObject(deps, { name: coldName(shard, at), key, pieces })
  if (size === null) return null
  const object = { size, key: sealed }
  return (await isSame(deps, { shard, row: { ...row, ...at, ...object }, pieces, checks })) ? object : null
}

/** A message without its content, and without the replies of servers about the person. */
function emptiedRow({ entryId, log, head, statuses }: SealedMessage, number: number): SealedMessage {
  const { sender, recipients } = unpackLogEntry(log)
  const ms = msOfEntry(entryId)
  const said = statuses.map((text, recipient) => {
    if (recipients[recipient] !== number && sender !== number) return text
    const state = unpackStatus(text, ms)
    return packStatus({ ...state, events: state.events.map(withoutResponse) }, ms)
  })
  return { entryId, log, head: erasedHead(unpackHead(head, recipients.length)), statuses: said }
}

function isEmptied({ log, head }: SealedMessage): boolean {
  return isErasedHead(unpackHead(head, unpackLogEntry(log).recipients.length))
}

/** A message as a commit erases it. */
export function touchedOf({ entryId, log, head, statuses }: PlacedMessage): TouchedMessage {
  const { sizeBytes } = unpackStatus(statuses[0] ?? null, msOfEntry(entryId))
  return { entryId, log, head, sizeBytes }
}

/** When events of these messages were announced. */
export function spansOf(messages: readonly SealedMessage[], nowMs: number): readonly ToldSpan[] {
  const spans = messages.flatMap(({ entryId, statuses }) => {
    const ms = msOfEntry(entryId)
    return statuses.flatMap((text) => unpackStatus(text, ms).events.map(({ occurredAtMs }) => toldOf(occurredAtMs)))
  })
  return withTold(WALK_BEGIN, spans, nowMs).told ?? []
}

function msOfEntry(entryId: string): number {
  return Number.parseInt(entryId, 10)
}
