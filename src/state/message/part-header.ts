/**
 * part-header - the bytes before a stored part of a message's content: its encoding, the number of its chunks, and the
 * sum of all of it
 *
 * The first byte is the encoding + 0x30. Content of an earlier release has a smaller one and no sum, and no single
 * changed bit turns one into the other.
 */

import { crc32 } from 'node:zlib'
import { damagedValue } from '../../../cluster/sum.ts'

/** Encoding, number of chunks (2), CRC32 (4). */
export const PART_HEADER_BYTES = 7
const FORMER_HEADER_BYTES = 3
const FORMER_MAX = 0x0f
const SUMMED = 0x30
const SUM_AT = 3
const NAME = 'content'
const NO_SUM = Buffer.alloc(PART_HEADER_BYTES - SUM_AT)

/** Writes the header into the first bytes of a part, whose other bytes are there already. */
export function writePartHeader(part: Buffer, encoding: number, chunks: number): void {
  part[0] = SUMMED | encoding
  part[1] = chunks >> 8
  part[2] = chunks & 0xff
  part.fill(0, SUM_AT, PART_HEADER_BYTES)
  part.writeUInt32BE(crc32(part), SUM_AT)
}

/** Number of chunks that a part's first chunk names. */
export function chunkCountOf(first: Buffer): number {
  return first.length < FORMER_HEADER_BYTES ? 1 : first.readUInt16BE(1)
}

/** The encoding of a part, read without a check of its sum. */
export function partEncoding(first: Uint8Array): number {
  const [byte = 0] = first
  return byte <= FORMER_MAX ? byte : byte ^ SUMMED
}

/** Bytes of the header of a part. */
export function headerBytesOf(first: Uint8Array): number {
  return (first[0] ?? 0) <= FORMER_MAX ? FORMER_HEADER_BYTES : PART_HEADER_BYTES
}

/** Checks all chunks of a part that was read from the store. Throws DamagedValue if they are not what was written. */
export function checkPart(chunks: readonly Buffer[]): void {
  const [first] = chunks
  if (first === undefined || first.length < FORMER_HEADER_BYTES) throw damagedValue(NAME)
  if ((first[0] ?? 0) <= FORMER_MAX) return
  const isWhole = first.length >= PART_HEADER_BYTES && sumOf(chunks) === first.readUInt32BE(SUM_AT)
  if (!isWhole) throw damagedValue(NAME)
}

/** The sum of all bytes, with zeros in place of the sum. */
function sumOf([first, ...others]: readonly Buffer[]): number {
  if (first === undefined) return 0
  const before = crc32(NO_SUM, crc32(first.subarray(0, SUM_AT)))
  const sum = crc32(first.subarray(PART_HEADER_BYTES), before)
  return others.reduce((before, chunk) => crc32(chunk, before), sum)
}
