/**
 * block - up to 128 messages of a sealed segment, packed together.
 *
 * The rows are the very texts that Redis held, one a line: entry ids, numbers of statuses, then all log entries, all
 * heads, all statuses, deflated (RFC 1951). They have no line breaks, because they are JSON. Columns of one kind are
 * adjacent, which compresses best.
 */

import { promisify } from 'node:util'
import { deflateRaw, inflateRaw, inflateRawSync } from 'node:zlib'
import { BrokenObject } from '../framing.ts'

/** Messages of one block: fewer pack worse, of more each read costs more. */
export const BLOCK_ROWS = 128
/** A segment holds 16 MiB of heads and statuses, and entries of 50 recipients each. */
const TEXT_BYTES_MAX = 64 * 1024 * 1024
const LEVEL = 6
const BREAK = '\n'
const deflate = promisify<string, object, Buffer>(deflateRaw)
const inflateInPool = promisify<Uint8Array, object, Buffer>(inflateRaw)

/** A message in its Redis form, with the texts of its log entry, its head, and its recipients' statuses. */
export interface SealedMessage {
  readonly entryId: string
  readonly log: string
  readonly head: string
  readonly statuses: readonly string[]
}

/** The text of a block before it is deflated. Throws if a row has a line break. */
export function textOfBlock(rows: readonly SealedMessage[]): string {
  const lines = [
    rows.map(({ entryId }) => entryId).join(' '),
    rows.map(({ statuses }) => statuses.length).join(' '),
    ...rows.map(({ log }) => log),
    ...rows.map(({ head }) => head),
    ...rows.flatMap(({ statuses }) => statuses),
  ]
  if (lines.some((line) => line.includes(BREAK))) throw new Error('A row of a message has a line break')
  return lines.join(BREAK)
}

/** Packs the text of a block, in a thread of the pool. */
export function packBlock(text: string): Promise<Buffer> {
  return deflate(text, { level: LEVEL })
}

/** The text of a packed block, inflated in a thread of the pool. Throws BrokenObject. */
export async function inflateBlock(bytes: Uint8Array): Promise<Buffer> {
  try {
    return await inflateInPool(bytes, { maxOutputLength: TEXT_BYTES_MAX })
  } catch (error) {
    throw cannotInflate(error)
  }
}

/** Opens the result of `packBlock`. Throws BrokenObject for anything else. */
export async function openBlock(bytes: Uint8Array): Promise<SealedMessage[]> {
  const lines = (await inflateBlock(bytes)).toString().split(BREAK)
  const ids = lines[0] === '' ? [] : (lines[0] ?? '').split(' ')
  const counts = lines[1] === '' ? [] : (lines[1] ?? '').split(' ').map(Number)
  const statuses = counts.reduce((sum, count) => sum + count, 0)
  const count = ids.length
  if (counts.length !== count || count > BLOCK_ROWS || lines.length !== 2 + 2 * count + statuses)
    throw new BrokenObject('A block has another number of lines than it says')
  let at = 2 + 2 * count
  return ids.map((entryId, place) => {
    const own = lines.slice(at, at + (counts[place] as number))
    at += own.length
    return { entryId, log: lines[2 + place] as string, head: lines[2 + count + place] as string, statuses: own }
  })
}

/** Inflates up to `bytesMax` bytes. Throws BrokenObject. */
export function inflate(bytes: Uint8Array, bytesMax: number): Buffer {
  try {
    return inflateRawSync(bytes, { maxOutputLength: bytesMax })
  } catch (error) {
    throw cannotInflate(error)
  }
}

function cannotInflate(error: unknown): BrokenObject {
  return new BrokenObject(`A part of a segment cannot be inflated: ${(error as Error).message}`)
}
