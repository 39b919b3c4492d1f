/**
 * postings - finds the messages of a sealed segment by the number of a recipient, of a sender, or of the hash of a
 * tag.
 *
 * A posting is the number's distance from the one before it in its page, how many messages follow, and their places in
 * the segment as distances, all as varints of seven bits. Pages of some 4 KB are read one by one; the tail of the
 * object holds the first number and the length of each.
 */

import { BrokenObject } from '../framing.ts'

const PAGE_BYTES = 4_096
const CONTINUED = 0x80
const BASE = 128
/** Bytes of the longest varint: eight hold 56 bits, and numbers have 53. */
const VARINT_BYTES_MAX = 8

/** A page, by its first number and its size in bytes. */
export type PostingPage = readonly [first: number, bytes: number]

/** The postings of one kind, packed. */
export interface PackedPostings {
  readonly pages: readonly PostingPage[]
  readonly bytes: Buffer
}

/** Collects postings. Places must rise for each number. */
export class Postings {
  readonly #places = new Map<number, number[]>()

  /** A message at a place names a number; naming it twice counts once. */
  add(number: number, place: number): void {
    const known = this.#places.get(number)
    if (known === undefined) this.#places.set(number, [place])
    else if (known.at(-1) !== place) known.push(place)
  }

  get numbers(): IterableIterator<number> {
    return this.#places.keys()
  }

  /** All postings, by number. */
  pack(): PackedPostings {
    const pages: PostingPage[] = []
    const all: number[] = []
    let first = 0
    let begin = 0
    let before = 0
    const endPage = (): void => {
      if (all.length > begin) pages.push([first, all.length - begin])
      begin = all.length
    }
    for (const [number, places] of [...this.#places].sort(([one], [other]) => one - other)) {
      if (all.length - begin >= PAGE_BYTES) endPage()
      const isFirst = all.length === begin
      if (isFirst) first = number
      writeVarint(all, isFirst ? 0 : number - before)
      writeVarint(all, places.length)
      let place = 0
      for (const next of places) {
        writeVarint(all, next - place)
        place = next
      }
      before = number
    }
    endPage()
    return { pages, bytes: Buffer.from(all) }
  }
}

/**
 * The page that may contain a number; null if there is none. Takes pages by their first number, and the start of the
 * first one.
 */
export function findPostingPage(
  pages: readonly PostingPage[],
  from: number,
  number: number,
): { readonly from: number; readonly length: number; readonly first: number } | null {
  let found = null
  let at = from
  for (const [first, length] of pages) {
    if (first > number) break
    found = { from: at, length, first }
    at += length
  }
  return found
}

/** The places of a number in its page; empty if the segment does not name it. Throws BrokenObject. */
export function placesIn(page: Uint8Array, { first, number }: { first: number; number: number }): number[] {
  const at = { offset: 0 }
  let current = first
  while (at.offset < page.length) {
    current += readVarint(page, at)
    const count = readVarint(page, at)
    // Each place takes a byte at least.
    if (count > page.length - at.offset) throw new BrokenObject('A posting names more messages than it holds')
    const places: number[] = []
    let place = 0
    for (let index = 0; index < count; index += 1) {
      place += readVarint(page, at)
      places.push(place)
    }
    if (current === number) return places
    if (current > number) return []
  }
  return []
}

function writeVarint(into: number[], value: number): void {
  let rest = value
  while (rest >= BASE) {
    into.push((rest % BASE) + CONTINUED)
    rest = Math.floor(rest / BASE)
  }
  into.push(rest)
}

function readVarint(bytes: Uint8Array, at: { offset: number }): number {
  let value = 0
  let unit = 1
  for (let count = 0; count < VARINT_BYTES_MAX; count += 1) {
    const byte = bytes[at.offset]
    if (byte === undefined) break
    at.offset += 1
    value += (byte % CONTINUED) * unit
    if (byte < CONTINUED) return value
    unit *= BASE
  }
  throw new BrokenObject('A number of a posting has no end')
}
