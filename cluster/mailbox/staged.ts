/**
 * staged - the content of one command as one value, its body with its bytes, for an outcome on its way to another
 * process, or a command whose behaviour threw.
 *
 * Form: a line with the length of the body's JSON and of each blob in bytes, the JSON, then the blobs one after the
 * other. It is stored beside the mailbox and never in it, because streams keep deleted entries.
 */
import type { Command } from '../behaviour.ts'

const LINE_END = 10

/** The content of a command, as bytes. */
export function packStaged({ body, blobs = [] }: Pick<Command, 'body' | 'blobs'>): Buffer {
  const json = JSON.stringify(body ?? null)
  const jsonBytes = Buffer.byteLength(json)
  let line = String(jsonBytes)
  let size = jsonBytes + 1
  for (const { length } of blobs) {
    line += ` ${length}`
    size += length
  }
  const bytes = Buffer.allocUnsafe(line.length + size)
  let at = bytes.write(`${line}\n`, 0, 'latin1')
  at += bytes.write(json, at, 'utf8')
  for (const blob of blobs) {
    bytes.set(blob, at)
    at += blob.length
  }
  return bytes
}

/** The content in the bytes; null if they are malformed. */
export function unpackStaged(bytes: Uint8Array): Required<Pick<Command, 'body' | 'blobs'>> | null {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const end = buffer.indexOf(LINE_END)
  if (end < 0) return null
  const [jsonBytes = -1, ...lengths] = buffer.toString('latin1', 0, end).split(' ').map(Number)
  let at = end + 1 + jsonBytes
  const whole = lengths.reduce((sum, length) => sum + length, at)
  if (!(jsonBytes > 0) || whole !== buffer.length) return null
  const blobs = lengths.map((length) => {
    at += length
    return buffer.subarray(at - length, at)
  })
  try {
    return { body: JSON.parse(buffer.toString('utf8', end + 1, end + 1 + jsonBytes)) as unknown, blobs }
  } catch {
    return null
  }
}
