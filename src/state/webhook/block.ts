/**
 * block - deliveries of an older slice, packed together, in a tenth of the memory.
 *
 * Once a slice is four days old, its queue moves to blocks, and with it the records of its delivered ones. A block is
 * a part of the queue: every delivery of a slice is in its queue or in one block, until the slice is thinned. Records
 * of deliveries that are not delivered stay in their hash, and so does the record of a delivery that changes later: a
 * record in the hash wins over the one in a block. A delivery with neither is fresh, so whoever reads a record reads
 * both in one step.
 *
 * A block is a member of a sorted set, by the score of its last delivery: deflated lines in base64, the items without
 * their slice, then their records, empty for one that is in the hash, or fresh.
 *
 * Keys: `blocks:<webhook>:<slice>`
 *
 * Spec webhook.delivery, retention.delivery
 */

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { FactOf, Op } from '../../../cluster/behaviour.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import { damagedValue, withoutSum, withSum } from '../../../cluster/sum.ts'
import { DAY_MS } from '../calendar.ts'
import { idScore } from '../id-score.ts'
import { blocksKey } from '../keys.ts'
import { parseDeliveryItem, type WebhookItem } from './item.ts'
import { sliceEndMs } from './slice.ts'

/** Deliveries of one block. */
export const BLOCK_DELIVERIES = 200
/** Attempts end before this age, unless a delivery is replayed. */
const QUEUED_DAYS = 4
/** Of an opened block: the longest reply that is stored, for each delivery, and as much again. */
const OPENED_BYTES_MAX = 2 * 1024 * 1024
/** A score is shared by the last ids of a millisecond, so the block of an id may be the one after. */
const SAME_SCORE_BLOCKS = 2

/** A slice of a webhook. */
export interface SlicePlace {
  readonly shard: number
  readonly webhookId: string
  readonly slice: string
}

/** A delivery in a block. */
export interface BlockRow {
  /** Of its item. */
  readonly name: string
  /** Packed; '' for one that is in the hash, or fresh. */
  readonly record: string
}

/** Blocks with their scores, as read. */
export type StoredBlocks = readonly (readonly [block: string, score: number])[]

/** Whether the queue of a slice moves to blocks. */
export function isBlockAge(slice: string, nowMs: number): boolean {
  return sliceEndMs(slice) + QUEUED_DAYS * DAY_MS <= nowMs
}

/** Packs deliveries of a slice, in the order of their ids. */
export function packDeliveries(rows: readonly BlockRow[]): string {
  const items = rows.map(({ name }) => {
    const { deliveryId, slice } = parseDeliveryItem(name)
    return `${shortId(deliveryId)}${name.slice(deliveryId.length + 1 + slice.length)}`
  })
  const lines = [...items, ...rows.map(({ record }) => record)]
  return withSum(deflateRawSync(lines.join('\n')).toString('base64'))
}

/**
 * Unpacks a result of `packDeliveries`.
 * @throws DamagedValue if it is not one
 */
export function unpackDeliveries(slice: string, packed: string): BlockRow[] {
  const lines = open(withoutSum(packed, 'block')).split('\n')
  const count = lines.length / 2
  return lines.slice(0, count).map((line, at) => {
    const dot = line.indexOf('.')
    return { name: `${idOfShort(line.slice(0, dot))}.${slice}${line.slice(dot)}`, record: lines[count + at] ?? '' }
  })
}

function open(text: string): string {
  try {
    return inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: OPENED_BYTES_MAX }).toString()
  } catch {
    throw damagedValue('block')
  }
}

/** The read of the blocks that may hold `count` deliveries from one on; '' = from the first. */
export function blocksFromFact(place: SlicePlace, from: string, count: number): FactOf<'sorted'> {
  const min = from === '' ? 0 : idScore(from)
  return { read: 'sorted', key: keyOf(place), min, max: Number.MAX_SAFE_INTEGER, count: blocksOf(count) }
}

/** The read of the blocks that may hold `count` deliveries made from an instant on. */
export function blocksAtFact(
  place: SlicePlace,
  of: { readonly fromMs: number; readonly count: number },
): FactOf<'sorted'> {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: keyOf(place), min: of.fromMs, max, count: blocksOf(of.count) }
}

/** The read of the block that may hold a delivery. */
export function blockFact(place: SlicePlace, deliveryId: string): FactOf<'sorted'> {
  return blocksFromFact(place, deliveryId, 1)
}

/** The reads of the blocks that may hold the newest `count` deliveries below one; null = below none. */
export function blocksBelowFacts(place: SlicePlace, below: string | null, count: number): FactOf<'sorted'>[] {
  const key = keyOf(place)
  const max = below === null ? Number.MAX_SAFE_INTEGER : idScore(below)
  const older = { read: 'sorted', key, min: 0, max, count: blocksOf(count), newest: true } as const
  // The block in which `below` is ends above it.
  return below === null ? [older] : [older, blockFact(place, below)]
}

function blocksOf(count: number): number {
  return Math.ceil(count / BLOCK_DELIVERIES) + SAME_SCORE_BLOCKS
}

/** The deliveries of blocks. */
export function rowsOfBlocks(slice: string, blocks: StoredBlocks): BlockRow[] {
  return blocks.flatMap(([packed]) => unpackDeliveries(slice, packed))
}

/** The record of a delivery in these blocks, or null: it is in the hash, or the delivery is fresh. */
export function recordInBlocks(
  { deliveryId, slice }: Pick<WebhookItem, 'deliveryId' | 'slice'>,
  blocks: StoredBlocks,
): string | null {
  return rowInBlocks({ deliveryId, slice }, blocks)?.record || null
}

/** A delivery in these blocks, or null. */
export function rowInBlocks(
  { deliveryId, slice }: Pick<WebhookItem, 'deliveryId' | 'slice'>,
  blocks: StoredBlocks,
): BlockRow | null {
  return rowsOfBlocks(slice, blocks).find(({ name }) => name.startsWith(deliveryId)) ?? null
}

/** The write of a block. */
export function blockOp(place: SlicePlace, rows: readonly BlockRow[]): Op {
  const last = parseDeliveryItem((rows.at(-1) as BlockRow).name).deliveryId
  return { key: keyOf(place), write: 'ZADD', args: [String(idScore(last)), packDeliveries(rows)] }
}

/** The write that removes a block. */
export function removeBlockOp(place: SlicePlace, packed: string): Op {
  return { key: keyOf(place), write: 'ZREM', args: [packed] }
}

function keyOf({ shard, webhookId, slice }: SlicePlace): string {
  return blocksKey(shard, webhookId, slice)
}
