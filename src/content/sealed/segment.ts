/**
 * segment - reads a sealed segment: one message, those of a number, or all between two ids.
 *
 * Tails are cached: they name no person, and an object never changes. Blocks are not, so nothing that an erasure took
 * away stays here.
 */

import { sortableEntryId } from '../../../cluster/id.ts'
import { BoundedCache } from '../../process/bounded-cache.ts'
import { coldName, type SealedRow } from '../../state/message/sealed.ts'
import type { Contents } from '../contents.ts'
import { BrokenObject } from '../framing.ts'
import { openMailKey } from '../mail-key.ts'
import { openBlock, type SealedMessage } from './block.ts'
import { placesIn, postingPageOf } from './postings.ts'
import { type BlockPlace, type IndexName, indexFrom, openTail, type Tail, tailBytes } from './tail.ts'

/** What is read of the end at first: most tails are shorter. */
const END_READ_BYTES = 16 * 1024
const TAILS_MAX = 500
const TAILS_BYTES_MAX = 32 * 1024 * 1024
const TAIL_MS = 3_600_000
/** Heap of a block's place or of a page's. */
const PLACE_BYTES = 120

/** Why a segment is not read. `gone`: another object may have taken its place. */
export class SegmentFailure extends Error {
  readonly kind: 'gone' | 'away' | 'broken'

  constructor(kind: SegmentFailure['kind'], reason: string) {
    super(reason)
    this.kind = kind
  }
}

export interface SegmentsDeps {
  readonly contents: Pick<Contents, 'read'>
  /** Seals the keys of objects. */
  readonly contentKey: Buffer
  /** A clock that goes on, ms. */
  readonly nowMs: () => number
}

/** A message with its place in the segment. */
export interface PlacedMessage extends SealedMessage {
  readonly place: number
}

/** Opens sealed segments. */
export class SealedSegments {
  readonly #deps: SegmentsDeps
  readonly #tails: BoundedCache<Tail>

  constructor(deps: SegmentsDeps) {
    this.#deps = deps
    this.#tails = new BoundedCache({
      entriesMax: TAILS_MAX,
      bytesMax: TAILS_BYTES_MAX,
      entryBytesMax: TAILS_BYTES_MAX,
      nowMs: deps.nowMs,
    })
  }

  /** A segment as its row names it. Its methods throw SegmentFailure. */
  open(shard: number, row: SealedRow): SealedSegment {
    return new SealedSegment(this.#deps, this.#tails, { name: coldName(shard, row), row })
  }
}

/** One sealed segment. */
export class SealedSegment {
  readonly #deps: SegmentsDeps
  readonly #tails: BoundedCache<Tail>
  readonly #name: string
  readonly #row: SealedRow
  #whole: Buffer | null = null

  constructor(deps: SegmentsDeps, tails: BoundedCache<Tail>, { name, row }: { name: string; row: SealedRow }) {
    this.#deps = deps
    this.#tails = tails
    this.#name = name
    this.#row = row
  }

  /** The places of blocks and indexes. */
  async tail(): Promise<Tail> {
    const known = this.#tails.get(this.#name)
    if (known !== undefined) return known
    const { size } = this.#row
    const from = Math.max(0, size - END_READ_BYTES)
    let end = await this.bytes(from, size - from)
    const bytes = this.#guard(() => tailBytes(end))
    if (bytes > size) throw new SegmentFailure('broken', 'Its tail is longer than the segment')
    if (bytes > end.length) end = await this.bytes(size - bytes, bytes)
    const tail = this.#guard(() => openTail(end.subarray(end.length - bytes), size))
    const pages = Object.values(tail.indexes).reduce((sum, { length }) => sum + length, 0)
    const heap = (tail.blocks.length + pages) * PLACE_BYTES
    this.#tails.set(this.#name, tail, { bytes: heap, untilMs: this.#deps.nowMs() + TAIL_MS })
    return tail
  }

  /** Reads the whole object at once: what follows takes no further request. */
  async hold(): Promise<Buffer> {
    this.#whole ??= await this.bytes(0, this.#row.size)
    return this.#whole
  }

  /** A part of the object. */
  async bytes(from: number, length: number): Promise<Buffer> {
    if (this.#whole !== null) return this.#whole.subarray(from, from + length)
    const mailKey = openMailKey(this.#deps.contentKey, this.#row.key)
    if (mailKey === null) throw new SegmentFailure('broken', 'Its key does not open: SECRET_KEY is another one')
    const found = await this.#deps.contents.read({ name: this.#name, mailKey, kind: 'log', span: { from, length } })
    if (typeof found === 'string') throw new SegmentFailure(found, `The object ${this.#name} is ${found}`)
    return found
  }

  /** The messages of one block. */
  async block(number: number): Promise<PlacedMessage[]> {
    const { blocks } = await this.tail()
    let [from, place] = [0, 0]
    for (const [, rows, bytes] of blocks.slice(0, number)) {
      from += bytes
      place += rows
    }
    const [, rows, length] = blocks[number] as BlockPlace
    const bytes = await this.bytes(from, length)
    const opened = this.#guard(() => openBlock(bytes))
    if (opened.length !== rows) throw new SegmentFailure('broken', 'A block holds another number of messages')
    return opened.map((row, index) => ({ ...row, place: place + index }))
  }

  /** The places of the messages that name a number. */
  async places(index: IndexName, number: number): Promise<number[]> {
    const tail = await this.tail()
    const page = postingPageOf(tail.indexes[index], indexFrom(tail, index), number)
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

  /** What the codec refuses is a broken segment. */
  #guard<Result>(act: () => Result): Result {
    try {
      return act()
    } catch (error) {
      if (!(error instanceof BrokenObject)) throw error
      throw new SegmentFailure('broken', `${this.#name}: ${error.message}`)
    }
  }
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
