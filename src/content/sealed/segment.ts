/**
 * segment - reads one message of a sealed segment, those of a number, or all between two ids.
 *
 * Tails and the first bytes of objects are cached: they name no person, and an object never changes. An opened
 * block is kept for seconds, because a message is read in two steps. An erasure gives the object another name, so
 * that no reader finds the blocks of the one before, and they leave memory within its minute.
 */

import { sortableEntryId } from '../../../cluster/id.ts'
import { BoundedCache } from '../../process/bounded-cache.ts'
import { coldName, isWrittenOff, type SealedRow } from '../../state/message/sealed.ts'
import { openMailKey, type SealingRing } from '../../state/ring/sealing.ts'
import type { Contents, GetOrder } from '../contents.ts'
import { BrokenObject } from '../framing.ts'
import type { Front } from '../storage-backend.ts'
import { inflateBlock, openBlock, type SealedMessage } from './block.ts'
import { findPostingPage, placesIn } from './postings.ts'
import { type BlockPlace, type IndexName, indexFrom, openTail, type Tail, tailBytes } from './tail.ts'

/** Bytes read of the end at first, because most tails are shorter. */
const END_READ_BYTES = 16 * 1024
const TAILS_MAX = 500
const TAILS_BYTES_MAX = 32 * 1024 * 1024
const TAIL_MS = 3_600_000
/** Heap of a block's place or of a page's. */
const PLACE_BYTES = 120
const FRONTS_MAX = 2_000
const FRONT_BYTES = 256
const BLOCKS_MAX = 500
const BLOCKS_BYTES_MAX = 8 * 1024 * 1024
const BLOCK_MS = 5_000
/** Heap of a message apart from its texts, which have a byte or two for each character. */
const ROW_BYTES = 400

/** Why a segment is not read. `gone`: another object may have taken its place. */
export class SegmentFailure extends Error {
  readonly kind: 'gone' | 'away' | 'broken'

  constructor(kind: SegmentFailure['kind'], reason: string) {
    super(reason)
    this.kind = kind
  }
}

export interface SegmentsDeps {
  readonly contents: Pick<Contents, 'read' | 'front'>
  /** Seals the keys of objects. */
  readonly ring: SealingRing
  /** A monotonic clock, ms. */
  readonly nowMs: () => number
}

/** A message with its place in the segment. */
export interface PlacedMessage extends SealedMessage {
  readonly place: number
}

/** Cached data of objects, by their names. */
interface Caches {
  readonly tails: BoundedCache<Tail>
  readonly fronts: BoundedCache<Front>
  /** By the name and the number of the block. */
  readonly blocks: BoundedCache<PlacedMessage[]>
}

/** Opens sealed segments. */
export class SealedSegments {
  readonly #deps: SegmentsDeps
  readonly #caches: Caches

  constructor(deps: SegmentsDeps) {
    const { nowMs } = deps
    const boundedBy = (entriesMax: number, bytesMax: number) => {
      return { entriesMax, bytesMax, entryBytesMax: bytesMax, nowMs }
    }
    this.#deps = deps
    this.#caches = {
      tails: new BoundedCache(boundedBy(TAILS_MAX, TAILS_BYTES_MAX)),
      fronts: new BoundedCache(boundedBy(FRONTS_MAX, FRONTS_MAX * FRONT_BYTES * 4)),
      blocks: new BoundedCache(boundedBy(BLOCKS_MAX, BLOCKS_BYTES_MAX)),
    }
  }

  /** A segment as its row names it. Its methods throw SegmentFailure. */
  open(shard: number, row: SealedRow): SealedSegment {
    return new SealedSegment(this.#deps, this.#caches, { name: coldName(shard, row), row })
  }
}

/** One sealed segment. */
export class SealedSegment {
  readonly #deps: SegmentsDeps
  readonly #caches: Caches
  readonly #name: string
  readonly #row: SealedRow
  #whole: Buffer | null = null

  constructor(deps: SegmentsDeps, caches: Caches, { name, row }: { name: string; row: SealedRow }) {
    this.#deps = deps
    this.#caches = caches
    this.#name = name
    this.#row = row
  }

  /** The places of blocks and indexes. */
  async tail(): Promise<Tail> {
    const { tails } = this.#caches
    const known = tails.get(this.#name)
    if (known !== undefined && !isWrittenOff(this.#row)) return known
    const { size } = this.#row
    const from = Math.max(0, size - END_READ_BYTES)
    let end = await this.bytes(from, size - from)
    const bytes = this.#guard(() => tailBytes(end))
    if (bytes > size) throw new SegmentFailure('broken', 'Its tail is longer than the segment')
    if (bytes > end.length) end = await this.bytes(size - bytes, bytes)
    const tail = this.#guard(() => openTail(end.subarray(end.length - bytes), size))
    const pages = Object.values(tail.indexes).reduce((sum, { length }) => sum + length, 0)
    const heap = (tail.blocks.length + pages) * PLACE_BYTES
    tails.set(this.#name, tail, { bytes: heap, untilMs: this.#deps.nowMs() + TAIL_MS })
    return tail
  }

  /** Reads the whole object at once, after which no further request is needed. */
  async hold(): Promise<Buffer> {
    this.#whole ??= await this.bytes(0, this.#row.size)
    return this.#whole
  }

  /** A part of the object. */
  async bytes(from: number, length: number): Promise<Buffer> {
    if (this.#whole !== null) return this.#whole.subarray(from, from + length)
    if (isWrittenOff(this.#row)) throw new SegmentFailure('broken', `The object ${this.#name} was written off`)
    const mailKey = openMailKey(this.#deps.ring, this.#row.key)
    if (mailKey === null) throw new SegmentFailure('broken', 'Its key does not open: SECRET_KEY is another one')
    const order = { name: this.#name, mailKey, kind: 'log', span: { from, length } } as const
    const known = this.#caches.fronts.get(this.#name)
    const read = known === undefined ? 'away' : await this.#deps.contents.read({ ...order, front: known })
    // With a cached front, a missing object fails like an unavailable one, and a restored one like a damaged one.
    const found = typeof read === 'string' ? await this.#readFresh(order) : read
    if (typeof found === 'string') throw new SegmentFailure(found, `The object ${this.#name} is ${found}`)
    return found
  }

  async #readFresh(order: GetOrder): Promise<Buffer | 'gone' | 'away' | 'broken'> {
    const front = await this.#deps.contents.front(this.#name)
    if (typeof front === 'string') return front
    const read = await this.#deps.contents.read({ ...order, front })
    if (typeof read !== 'string')
      this.#caches.fronts.set(this.#name, front, { bytes: FRONT_BYTES, untilMs: this.#deps.nowMs() + TAIL_MS })
    return read
  }

  /** The messages of one block. */
  async block(number: number): Promise<PlacedMessage[]> {
    const name = `${this.#name} ${number}`
    const known = this.#caches.blocks.get(name)
    if (known !== undefined) return known
    const { place, rows, bytes } = await this.#packedBlock(number)
    const opened = await this.#opened(openBlock(bytes))
    if (opened.length !== rows) throw new SegmentFailure('broken', 'A block holds another number of messages')
    const placed = opened.map(({ entryId, log, head, statuses }, index): PlacedMessage => {
      return { entryId, log, head, statuses, place: place + index }
    })
    if (this.#whole === null) {
      const untilMs = this.#deps.nowMs() + BLOCK_MS
      this.#caches.blocks.set(name, placed, { bytes: estimateHeap(placed), untilMs })
    }
    return placed
  }

  /** The text of one block, as it was before it was packed. */
  async blockText(number: number): Promise<Buffer> {
    const { bytes } = await this.#packedBlock(number)
    return this.#opened(inflateBlock(bytes))
  }

  async #packedBlock(number: number): Promise<{ place: number; rows: number; bytes: Buffer }> {
    const { blocks } = await this.tail()
    let [from, place] = [0, 0]
    for (let before = 0; before < number; before += 1) {
      const [, rows, length] = blocks[before] as BlockPlace
      from += length
      place += rows
    }
    const [, rows, length] = blocks[number] as BlockPlace
    return { place, rows, bytes: await this.bytes(from, length) }
  }

  /** The places of the messages that name a number. */
  async places(index: IndexName, number: number): Promise<number[]> {
    const tail = await this.tail()
    const page = findPostingPage(tail.indexes[index], indexFrom(tail, index), number)
    if (page === null) return []
    const bytes = await this.bytes(page.from, page.length)
    return this.#guard(() => placesIn(bytes, { first: page.first, number }))
  }

  /** Messages with these ids, as far as the segment has them. */
  async messages(entryIds: readonly string[]): Promise<PlacedMessage[]> {
    const { blocks } = await this.tail()
    const wanted = new Set(entryIds)
    const numbers = new Set(entryIds.map((id) => blockAt(blocks, id)).filter((number) => number >= 0))
    const found: PlacedMessage[] = []
    for (const number of numbers) found.push(...(await this.block(number)).filter(({ entryId }) => wanted.has(entryId)))
    return found
  }

  /** Messages at these places. */
  async at(places: readonly number[]): Promise<PlacedMessage[]> {
    const { blocks } = await this.tail()
    const wanted = new Set(places)
    const found: PlacedMessage[] = []
    let first = 0
    for (const [number, [, rows]] of blocks.entries()) {
      const begin = first
      first += rows
      if (!places.some((place) => place >= begin && place < begin + rows)) continue
      found.push(...(await this.block(number)).filter(({ place }) => wanted.has(place)))
    }
    return found
  }

  /** An object that the codec refuses is a broken segment. */
  #guard<Result>(act: () => Result): Result {
    try {
      return act()
    } catch (error) {
      throw this.#failureOf(error)
    }
  }

  async #opened<Result>(opening: Promise<Result>): Promise<Result> {
    try {
      return await opening
    } catch (error) {
      throw this.#failureOf(error)
    }
  }

  #failureOf(error: unknown): unknown {
    if (!(error instanceof BrokenObject)) return error
    return new SegmentFailure('broken', `${this.#name}: ${error.message}`)
  }
}

function estimateHeap(messages: readonly PlacedMessage[]): number {
  let chars = 0
  for (const { log, head, statuses } of messages) {
    chars += log.length + head.length
    for (const { length } of statuses) chars += length
  }
  return messages.length * ROW_BYTES + chars * 2
}

/** The last block that begins at or before an id; -1: none. */
export function blockAt(blocks: readonly BlockPlace[], entryId: string): number {
  const sought = sortableEntryId(entryId)
  let [low, high] = [0, blocks.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (sortableEntryId((blocks[middle] as BlockPlace)[0]) <= sought) low = middle + 1
    else high = middle
  }
  return low - 1
}
