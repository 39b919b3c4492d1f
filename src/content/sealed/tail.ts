/**
 * tail - the end of the object of a sealed segment, with the places of its blocks and its postings.
 *
 * An object is `blocks | recipients | senders | tags | tail | length of the tail, SWS1`. The tail is JSON, deflated; it
 * names no person. It is read first, with one read of the last bytes.
 */

import { deflateRawSync } from 'node:zlib'
import { BrokenObject } from '../framing.ts'
import { inflate } from './block.ts'
import type { PostingPage } from './postings.ts'

const MAGIC = Buffer.from('SWS1')
/** Length of the tail, and the magic. */
export const END_BYTES = 4 + MAGIC.length
const TAIL_BYTES_MAX = 16 * 1024 * 1024
const VERSION = 1

/** Indexes of an object, in their order. */
export const INDEXES = ['recipient', 'sender', 'tag'] as const
export type IndexName = (typeof INDEXES)[number]

/** A block, by the entry id of its first message, its number of messages, and its bytes. */
export type BlockPlace = readonly [firstId: string, rows: number, bytes: number]

export interface Tail {
  readonly blocks: readonly BlockPlace[]
  readonly indexes: Readonly<Record<IndexName, readonly PostingPage[]>>
}

/** The tail with its end. */
export function packTail({ blocks, indexes }: Tail): Buffer {
  const packed = deflateRawSync(JSON.stringify([VERSION, blocks, INDEXES.map((name) => indexes[name])]))
  const end = Buffer.alloc(END_BYTES)
  end.writeUInt32BE(packed.length, 0)
  MAGIC.copy(end, 4)
  return Buffer.concat([packed, end])
}

/** Bytes of the tail and its end. Takes the last bytes of an object. Throws BrokenObject. */
export function tailBytes(end: Buffer): number {
  if (end.length < END_BYTES || !end.subarray(-MAGIC.length).equals(MAGIC))
    throw new BrokenObject('It has no end of a segment')
  return end.readUInt32BE(end.length - END_BYTES) + END_BYTES
}

/** Opens a tail. Takes its bytes and its end, and the size of the whole object. Throws BrokenObject. */
export function openTail(bytes: Buffer, size: number): Tail {
  const text = inflate(bytes.subarray(0, -END_BYTES), TAIL_BYTES_MAX).toString()
  const parsed: unknown = parse(text)
  if (!Array.isArray(parsed) || parsed[0] !== VERSION || !isBlocks(parsed[1]) || !isIndexes(parsed[2]))
    throw new BrokenObject('Its tail is none of a segment')
  const [recipient = [], sender = [], tag = []] = parsed[2]
  const tail: Tail = { blocks: parsed[1], indexes: { recipient, sender, tag } }
  if (blocksBytes(tail) + indexesBytes(tail) + bytes.length !== size)
    throw new BrokenObject('Its parts are not as long as the segment')
  return tail
}

/** Offset of an index: behind the blocks and the indexes before it. */
export function indexFrom(tail: Tail, name: IndexName): number {
  let from = blocksBytes(tail)
  for (const one of INDEXES) {
    if (one === name) break
    from += pagesBytes(tail.indexes[one])
  }
  return from
}

/** Bytes of all blocks. */
export function blocksBytes({ blocks }: Tail): number {
  return blocks.reduce((sum, [, , bytes]) => sum + bytes, 0)
}

/** Bytes of all indexes. */
export function indexesBytes({ indexes }: Tail): number {
  return INDEXES.reduce((sum, name) => sum + pagesBytes(indexes[name]), 0)
}

function pagesBytes(pages: readonly PostingPage[]): number {
  return pages.reduce((sum, [, bytes]) => sum + bytes, 0)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // JSON.parse has no other way to report an invalid text.
    return null
  }
}

function isBlocks(value: unknown): value is BlockPlace[] {
  const isBlock = (one: unknown): boolean =>
    Array.isArray(one) && /^\d{1,16}-\d{1,20}$/.test(String(one[0])) && isCount(one[1]) && isCount(one[2])
  return Array.isArray(value) && value.every(isBlock)
}

function isIndexes(value: unknown): value is PostingPage[][] {
  const isPage = (one: unknown): boolean => Array.isArray(one) && isCount(one[0]) && isCount(one[1])
  return Array.isArray(value) && value.every((pages) => Array.isArray(pages) && pages.every(isPage))
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
