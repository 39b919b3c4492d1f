/**
 * sealed - a segment of the log that has left Redis: the place of its object, and its later changes.
 *
 * States: no row (the segment is in Redis), frozen (generation 0: its rows are being read, the row names the object
 * that will be written), sealed (generation 1 and above), gone (no row, no segment). A writer that finds a frozen
 * segment thaws it by removing the row in the commit of its own write. The commit that would seal it then finds
 * another leaf, or no row, and changes nothing. An object is never changed. A rewrite names its leaf (`next`) before
 * it writes the object, and its commit swaps the row if that name and the number of recalls are those that it saw.
 *
 * An object that is lost for good is written off (`sendwright repair objects`): its row has no key. Reads of its
 * messages are refused as damaged, and erasure and retention go on with the recalled messages alone.
 *
 * A message of a sealed segment is recalled before it is changed: its head and its statuses return to the hashes of
 * the segment, and its log entry to `recalled`. These rows win over those of the object.
 *
 * Keys: `sealed:<server>`, `sealed-persons:<server>:<segment>`, `recalled:<server>:<segment>`
 *
 * Lane: `cold/<account>`, items `pack.<server short>.<look>`, `seal.<server short>[.<segment>]`, `trim.<server
 * short>.<segment>`, `recall.<server short>.<segment>.<message short>`, `erase.<server short>.<segment>.<erasure
 * id>.<step>`, `forget.<server short>.<segment>.<days>.<entry id>.<ms>`, `strip.<server short>.<segment>.<ms>`,
 * `reseal.<server short>.<segment>`
 */

import type { Due } from '../../../cluster/behaviour.ts'
import { idOfShort, msOf, shortId } from '../../../cluster/id.ts'
import { DAY_MS, dayName } from '../calendar.ts'
import { formatObjectName } from '../object-name.ts'

/** Days after which the newest message of a sealed segment is at least this old, with any setting. */
export const HOT_DAYS_MIN = 4
/** A replaced object has lost its key, but stays for this long, because a running backup may still copy it by name. */
export const REPLACED_MS = 7 * DAY_MS
/** Characters of a short id. */
const SHORT_CHARS = 22
/** More than the longest time that a message is kept. */
const LIVE_DAYS = 400
const TEST_DAYS = 32

/** The place of a sealed segment. */
export interface SealedRow {
  /** 0: frozen. */
  readonly generation: number
  /** The object, by its last name and its day. For generation 0 it is the one being written. */
  readonly leaf: string
  readonly day: string
  /** Bytes before encryption. */
  readonly size: number
  /** Key of the object, sealed; '' if the object was written off. */
  readonly key: string
  readonly messages: number
  /** Times in the first and the last id. */
  readonly firstMs: number
  readonly lastMs: number
  /** Messages that were ever recalled. */
  readonly recalls: number
  /** The object that a rewrite is about to write; '' for none. */
  readonly next: string
  /** Blocks of the filter of persons. */
  readonly filterBlocks: number
  /** Generation of the ring that sealed the keys in its heads, or a later one; absent: 0. */
  readonly headKeys?: number
}

/** A frozen segment. */
export function frozenRow(leaf: string, day: string): SealedRow {
  const none = { size: 0, key: '', messages: 0, firstMs: 0, lastMs: 0, recalls: 0, next: '', filterBlocks: 0 }
  return { generation: 0, leaf, day, ...none }
}

/** Whether the object of a sealed segment was lost, and an operator has written it off. */
export function isWrittenOff({ generation, key }: SealedRow): boolean {
  return generation > 0 && key === ''
}

/** The row of a segment whose object is lost for good. */
export function writtenOffRow(row: SealedRow): SealedRow {
  return { ...row, size: 0, key: '', next: '' }
}

/** When a frozen segment was frozen, or when the last object of a sealed one was named, in ms. */
export function namedAtMs({ leaf }: SealedRow): number {
  return msOf(idOfShort(leaf.slice(-SHORT_CHARS)))
}

/** Packs a row of `sealed`. */
export function packSealed(row: SealedRow): string {
  const { generation, leaf, day, size, key, messages, firstMs, lastMs, recalls, next, filterBlocks, headKeys } = row
  const packed = [generation, leaf, day, size, key, messages, firstMs, lastMs, recalls, next, filterBlocks]
  return JSON.stringify(headKeys ? [...packed, headKeys] : packed)
}

/** Unpacks a row of `sealed`; null for none. */
export function unpackSealed(text: string | null): SealedRow | null {
  if (text === null) return null
  type Packed = [number, string, string, number, string, number, number, number, number, string, number, number?]
  const [generation, leaf, day, size, key, messages, firstMs, lastMs, recalls, next, filterBlocks, headKeys] =
    JSON.parse(text) as Packed
  const row = { generation, leaf, day, size, key, messages, firstMs, lastMs, recalls, next, filterBlocks }
  return headKeys === undefined ? row : { ...row, headKeys }
}

/** The last name of a new object. Takes a new id. */
export function leafOf({ serverId, segment }: { serverId: string; segment: string }, id: string): string {
  return `${shortId(serverId)}_${segment}_${shortId(id)}`
}

/** The day after which all data of a segment must be removed. Takes a time after all of its messages. */
export function lastDayOf(lastMs: number, test: boolean): string {
  return dayName(segmentGoneAtMs(lastMs, test))
}

/** When everything of a segment is past its age. In: as `lastDayOf`. */
export function segmentGoneAtMs(lastMs: number, test: boolean): number {
  return lastMs + (test ? TEST_DAYS : LIVE_DAYS) * DAY_MS
}

/** The name of an object of a segment. */
export function coldName(shard: number, { day, leaf }: { readonly day: string; readonly leaf: string }): string {
  return formatObjectName({ shard, tree: 'cold', day, leaf })
}

/** Family of the lanes. */
export const COLD_LANE = 'cold'

/** The lane of an account. */
export function coldLane(accountId: string): string {
  return `${COLD_LANE}/${accountId}`
}

/** The account of a lane. */
export function accountOfColdLane(lane: string): string {
  return lane.slice(COLD_LANE.length + 1)
}

/** The order of an item of the lane. */
export type ColdItem =
  /** `after`: segments up to this one have open recipients today; '' for none. */
  | { readonly act: 'seal'; readonly serverId: string; readonly after: string }
  /** `look`: the first or the second look at a message, from 0. */
  | { readonly act: 'pack'; readonly serverId: string; readonly look: number }
  | { readonly act: 'trim'; readonly serverId: string; readonly segment: string }
  /** Keys of an earlier generation of the ring are in the segment. */
  | { readonly act: 'reseal'; readonly serverId: string; readonly segment: string }
  | { readonly act: 'recall'; readonly serverId: string; readonly segment: string; readonly messageId: string }
  | {
      readonly act: 'erase'
      readonly serverId: string
      readonly segment: string
      readonly erasureId: string
      readonly step: number
    }
  /** The same content, in packs: their keys leave the object. */
  | { readonly act: 'strip'; readonly serverId: string; readonly segment: string; readonly toMs: number }
  /** Content that is kept for this number of days has expired, for messages from an entry id to a millisecond. */
  | {
      readonly act: 'forget'
      readonly serverId: string
      readonly segment: string
      readonly days: number
      readonly from: string
      readonly toMs: number
    }

/** The name of an item. */
export function formatColdItem(item: ColdItem): string {
  const server = shortId(item.serverId)
  switch (item.act) {
    case 'seal':
      return `seal.${server}${item.after === '' ? '' : `.${item.after}`}`
    case 'pack':
      return `pack.${server}.${item.look}`
    case 'trim':
      return `trim.${server}.${item.segment}`
    case 'reseal':
      return `reseal.${server}.${item.segment}`
    case 'strip':
      return `strip.${server}.${item.segment}.${item.toMs}`
    case 'recall':
      return `recall.${server}.${item.segment}.${shortId(item.messageId)}`
    case 'erase':
      return `erase.${server}.${item.segment}.${item.erasureId}.${item.step}`
    case 'forget':
      return `forget.${server}.${item.segment}.${item.days}.${item.from}.${item.toMs}`
  }
}

/** Reads the result of `formatColdItem`. */
export function readColdItem(text: string): ColdItem {
  const [act, server = '', segment = '', id = '', step = '0', to = '0'] = text.split('.')
  const serverId = idOfShort(server)
  switch (act) {
    case 'pack':
      return { act, serverId, look: Number(segment) }
    case 'trim':
    case 'reseal':
      return { act, serverId, segment }
    case 'strip':
      return { act, serverId, segment, toMs: Number(id) }
    case 'recall':
      return { act, serverId, segment, messageId: idOfShort(id) }
    case 'erase':
      return { act, serverId, segment, erasureId: id, step: Number(step) }
    case 'forget':
      return { act, serverId, segment, days: Number(id), from: step, toMs: Number(to) }
    default:
      return { act: 'seal', serverId, after: segment }
  }
}

/** An item that is due. */
export function coldDue(accountId: string, item: ColdItem, atMs: number): Due {
  return { lane: coldLane(accountId), item: formatColdItem(item), atMs }
}
