/**
 * person-filter - a blocked Bloom filter of the persons of a sealed segment: whether it is worth opening.
 *
 * A person's bits are in one block of 256 bits, so that one read of 44 characters is enough. With 10 bits a person one
 * answer in a hundred is a false yes; there is no false no. The filter is text (base64, block by block), because the
 * store's reads are texts. Behind its blocks it has a sum: an erasure reads it whole, and relies on a no only if the
 * sum is right.
 */

import { unlessDamaged, withoutSum, withSum } from '../../../cluster/sum.ts'

const BLOCK_BYTES = 32
const BLOCK_BITS = BLOCK_BYTES * 8
/** Base64 of a block. */
export const FILTER_BLOCK_CHARS = 44
const BITS_EACH = 10
/** Bits of a person in its block. */
const HASHES = 6
const SHIFT = 32

/** A filter of some numbers, as large as they need or with a given number of blocks. */
export function makeFilter(
  numbers: readonly number[],
  blocks: number = Math.max(1, Math.ceil((numbers.length * BITS_EACH) / BLOCK_BITS)),
): { readonly text: string; readonly blocks: number } {
  const bytes = Buffer.alloc(blocks * BLOCK_BYTES)
  for (const number of numbers) {
    const { block, bits } = placeInFilter(number, blocks)
    for (const bit of bits) bytes[block * BLOCK_BYTES + (bit >> 3)]! |= 1 << (bit & 7)
  }
  let text = ''
  for (let block = 0; block < blocks; block += 1)
    text += bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES).toString('base64')
  return { text: withSum(text), blocks }
}

/** The block and the bits of a number. */
export function placeInFilter(number: number, blocks: number): { readonly block: number; readonly bits: number[] } {
  const low = number % 2 ** SHIFT
  const high = Math.floor(number / 2 ** SHIFT)
  const first = mix(low ^ Math.imul(high, 0x9e3779b1))
  let second = mix(first ^ 0x85ebca6b)
  const bits: number[] = []
  for (let index = 0; index < HASHES; index += 1) {
    bits.push((second >>> 0) % BLOCK_BITS)
    second = mix(second + 0x6d2b79f5)
  }
  return { block: (first >>> 0) % blocks, bits }
}

/** Whether a block may hold a number. Takes the text of its block; a missing block may hold every number. */
export function mayHold(text: string, number: number, blocks: number): boolean {
  if (text.length !== FILTER_BLOCK_CHARS) return true
  const bytes = Buffer.from(text, 'base64')
  return placeInFilter(number, blocks).bits.every((bit) => ((bytes[bit >> 3] ?? 0) >> (bit & 7)) % 2 === 1)
}

/** Whether a segment may hold a number, by its whole filter. One that is missing or damaged may hold every number. */
export function mayBeOf(filter: string | null, number: number, blocks: number): boolean {
  const text = filter && unlessDamaged(() => withoutSum(filter, 'sealed-persons'))
  // A filter of an earlier version has no sum.
  if (!text || text === filter) return true
  const start = placeInFilter(number, blocks).block * FILTER_BLOCK_CHARS
  return mayHold(text.slice(start, start + FILTER_BLOCK_CHARS), number, blocks)
}

/** The finalizer of MurmurHash3 (Appleby): every bit of the input changes half of the output. */
function mix(value: number): number {
  let mixed = value | 0
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
