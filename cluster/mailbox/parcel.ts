/**
 * parcel - commands of one process for one shard, gathered for one request, as one value.
 *
 * Form: a line with the parcel's id, the length of the list in bytes, then that of each blob; the list as JSON, for
 * each command `[name, cmdId, deadlineMs, how many of the blobs are its own, body]`; then the blobs one after the
 * other. It is stored beside the mailbox and never in it, because streams keep deleted entries.
 */
import type { Command } from '../behaviour.ts'

const [LINE_END, SPACE] = [10, 32]

/** A command as its parcel takes it. */
export interface PackedCommand {
  readonly json: string
  readonly blobs: readonly Uint8Array[]
  /** Approximate bytes that it adds to the parcel; each character counts as one. */
  readonly bytes: number
}

/** A command of a parcel. */
export interface ParcelCommand {
  readonly command: Required<Command>
  /** By the store's clock. */
  readonly deadlineMs: number
  /** Its weight in a batch. */
  readonly bytes: number
}

type Row = readonly [name: string, cmdId: string, deadlineMs: number, blobs: number, body: unknown]

const NO_BLOBS: readonly Uint8Array[] = []

/** A read of entries ends with the one that reaches this. */
export const ENTRIES_BYTES_MAX = 1_048_576

/** Commands of a parcel. */
export const PARCEL_COMMANDS_MAX = 256

/** Parcels of one call of the script that puts them into mailboxes. */
export const CALL_PARCELS_MAX = 256

/** A command, ready for a parcel. */
export function packCommand({ name, cmdId, body, blobs = NO_BLOBS }: Command, deadlineMs: number): PackedCommand {
  const row: Row = [name, cmdId, deadlineMs, blobs.length, body ?? null]
  const json = JSON.stringify(row)
  let bytes = json.length
  for (const { length } of blobs) bytes += length
  return { json, blobs, bytes }
}

/** The value of a parcel with these commands. `id` has neither spaces nor line ends. */
export function packParcel(id: string, commands: readonly PackedCommand[]): Buffer {
  let list = '['
  let lengths = ''
  let blobBytes = 0
  for (const { json, blobs } of commands) {
    list += list.length === 1 ? json : `,${json}`
    for (const { length } of blobs) {
      lengths += ` ${length}`
      blobBytes += length
    }
  }
  list += ']'
  const listBytes = Buffer.byteLength(list)
  const line = `${id} ${listBytes}${lengths}\n`
  const packed = Buffer.allocUnsafe(line.length + listBytes + blobBytes)
  let at = packed.write(line, 0, 'latin1')
  at += packed.write(list, at, 'utf8')
  for (const { blobs } of commands) {
    for (const blob of blobs) {
      packed.set(blob, at)
      at += blob.length
    }
  }
  return packed
}

/** The id of a parcel; '' if they are malformed. */
export function readParcelId(bytes: Buffer): string {
  return bytes.toString('latin1', 0, Math.max(0, bytes.indexOf(SPACE)))
}

/** The commands of a parcel in their order; null if they are malformed. */
export function unpackParcel(bytes: Uint8Array): readonly ParcelCommand[] | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = buffer.indexOf(LINE_END)
  if (end < 0) return null
  const [listBytes = -1, ...lengths] = buffer.toString('latin1', 0, end).split(' ').slice(1).map(Number)
  const listEnd = end + 1 + listBytes
  if (!(listBytes > 0) || lengths.reduce((sum, length) => sum + length, listEnd) !== buffer.length) return null
  const rows = parseRows(buffer.toString('utf8', end + 1, listEnd))
  if (rows === null || rows.reduce((sum, row) => sum + row[3], 0) !== lengths.length) return null
  const jsonBytes = Math.ceil(listBytes / rows.length)
  let at = listEnd
  let place = 0
  return rows.map(([name, cmdId, deadlineMs, count, body]) => {
    const from = at
    const blobs: Uint8Array[] = []
    for (const last = place + count; place < last; place += 1) {
      // A copy, because a job keeps a body for long, and a slice would keep all of `bytes` alive.
      blobs.push(Buffer.from(buffer.subarray(at, at + lengths[place]!)))
      at += lengths[place]!
    }
    return { command: { name, cmdId, body, blobs }, deadlineMs, bytes: jsonBytes + at - from }
  })
}

function parseRows(json: string): readonly Row[] | null {
  let rows: unknown
  try {
    rows = JSON.parse(json)
  } catch {
    return null
  }
  return Array.isArray(rows) && rows.length > 0 && rows.every(isRow) ? rows : null
}

function isRow(row: unknown): row is Row {
  if (!Array.isArray(row) || row.length !== 5) return false
  const [name, cmdId, deadlineMs, blobs] = row as unknown[]
  const areTexts = typeof name === 'string' && typeof cmdId === 'string'
  return areTexts && Number.isSafeInteger(deadlineMs) && Number.isSafeInteger(blobs) && (blobs as number) >= 0
}
