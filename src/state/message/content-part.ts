/**
 * content-part - the stored parts of a message's content: their chunks, the ops that write them, and those that remove
 * them.
 *
 * Part `body` is text and html; `a<k>` is attachment k; `raw` is a whole message as a client wrote it. A part is cut
 * into chunks; the first begins with a few bytes of our own.
 *
 * Keys: `bodies:<slice>:<live|test>` has the small bodies that came with their command, those of two seconds together.
 * A key for each would be most of the store's keys and slow every look-up; a key for longer would have no bound.
 * `content:<contentId>:<part>[.<chunk>]` is all else.
 *
 * Spec retention.content
 */

import type { Op } from '../../../cluster/behaviour.ts'
import { msOfCmdId } from '../../../cluster/cmd-id.ts'
import { SHARDS } from '../../../cluster/id.ts'
import { damagedValue } from '../../../cluster/sum.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from '../age.ts'
import { bodiesKey, contentKey } from '../keys.ts'
import { PART_HEADER_BYTES } from './part-header.ts'

export const CHUNK_BYTES_MAX = 256 * 1024
export const BODY_PART = 'body'
/** A message that came whole. It replaces the attachments, and expires like them. */
export const RAW_PART = 'raw'
/**
 * A larger body (its packed chunk) has its own key, because there are few, and a slice with them would grow to tens of
 * megabytes.
 */
export const SLICED_BYTES_MAX = 4_096
const SLICE_MS = 2_000
/** A command may be accepted this long after its id was made, and its body stays as long as any of its slice. */
const SLICE_LATE_MS = 60_000

/** A part of a message during its acceptance. */
export interface ContentPart {
  readonly part: string
  /** Chunks in all. */
  readonly chunks: number
  /** Index of its first chunk among the command's blobs; null = it was written before, under its final name. */
  readonly blob: number | null
}

/** A part whose bytes came with the command. */
export interface InlinePart {
  readonly part: string
  readonly chunks: readonly Uint8Array[]
}

/** The small bodies of two seconds. */
interface Slice {
  readonly number: number
  readonly key: string
  readonly endsAtMs: number
  /** Makes them go together. */
  readonly expiry: Op
}

/** The last slice of each shard, for live and for test servers, cached so that its name is built once. */
const lastSlices = new Array<Slice | undefined>(SHARDS * 2)

/**
 * The place of a small body that came with its command. `contentId` begins with the command's id, which determines the
 * slice.
 */
export function bodyPlace(shard: number, contentId: string, test: boolean): { key: string; field: string } {
  return { key: sliceOf(shard, contentId, test).key, field: contentId }
}

/** Name of attachment `index`, from 0. */
export function attachmentPart(index: number): string {
  return `a${index}`
}

/** Chunks of a part of `bytes` bytes. */
export function countChunks(bytes: number): number {
  return Math.max(1, Math.ceil((bytes + PART_HEADER_BYTES) / CHUNK_BYTES_MAX))
}

/**
 * Throws DamagedValue if no chunk can follow these, although the first names one that is missing: all chunks of a part
 * but its last are full.
 */
export function checkMissing(chunks: readonly Uint8Array[]): void {
  if ((chunks.at(-1)?.length ?? 0) < CHUNK_BYTES_MAX) throw damagedValue('content')
}

interface ContentCommand {
  readonly blobs: readonly Uint8Array[]
  readonly submittedAtMs: number
  /** When a scheduled message is sent; null or absent: at once. */
  readonly sendAtMs?: number | null
  readonly test: boolean
}

/**
 * The writes that make the content of an accepted message permanent: content in the command is set, and content
 * written before keeps its key.
 */
export function contentOps(
  { shard, contentId }: { readonly shard: number; readonly contentId: string },
  parts: readonly ContentPart[],
  { blobs, submittedAtMs, sendAtMs = null, test }: ContentCommand,
): Op[] {
  const bodyEndsAtMs = contentExpiresAtMs(submittedAtMs, test)
  const attachmentsEndAtMs = attachmentExpiresAtMs(submittedAtMs, { sendAtMs: sendAtMs ?? 0, test })
  const slice = sliceOf(shard, contentId, test)
  const ops: Op[] = []
  for (const { part, chunks, blob } of parts) {
    const isBody = part === BODY_PART
    const first = blob === null ? undefined : blobs[blob]
    const isSmall = isBody && chunks === 1 && first !== undefined && first.length <= SLICED_BYTES_MAX
    // Ids may run ahead of the clock that made the command's: such a body would outlive its slice.
    if (isSmall && bodyEndsAtMs <= slice.endsAtMs) {
      ops.push({ key: slice.key, write: 'HSET', args: [contentId, first] }, slice.expiry)
      continue
    }
    const expiresAtMs = String(isBody ? bodyEndsAtMs : attachmentsEndAtMs)
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      const key = contentKey(shard, contentId, part, chunk)
      const bytes = blob === null ? undefined : blobs[blob + chunk]
      if (bytes === undefined) ops.push({ key, write: 'PEXPIREAT', args: [expiresAtMs] })
      else ops.push({ key, write: 'SET', args: [bytes, 'PXAT', expiresAtMs] })
    }
  }
  return ops
}

/** The parts with their bytes, null unless all came with the command. */
export function inlineParts(parts: readonly ContentPart[], blobs: readonly Uint8Array[]): InlinePart[] | null {
  const inline: InlinePart[] = []
  for (const { part, chunks, blob } of parts) {
    if (blob === null) return null
    inline.push({ part, chunks: blobs.slice(blob, blob + chunks) })
  }
  return inline
}

/** Writes that remove all attachments, given their sizes in bytes. */
export function attachmentEndOps(shard: number, contentId: string, sizes: readonly number[]): Op[] {
  return sizes.flatMap((bytes, index) => partEndOps({ shard, contentId, part: attachmentPart(index) }, bytes))
}

/** Writes that remove a message that came whole, given its size in bytes. */
export function rawEndOps(shard: number, contentId: string, bytes: number): Op[] {
  return partEndOps({ shard, contentId, part: RAW_PART }, bytes)
}

/** Where content is, and how long it stays, ms. */
interface KeptPlace {
  readonly shard: number
  readonly contentId: string
  readonly endsAtMs: number
}

/** Writes that keep all attachments until another time, given their sizes in bytes. */
export function attachmentKeepOps(place: KeptPlace, sizes: readonly number[]): Op[] {
  return sizes.flatMap((bytes, index) => partKeepOps(place, attachmentPart(index), bytes))
}

/** Writes that keep a message that came whole until another time, given its size in bytes. */
export function rawKeepOps(place: KeptPlace, bytes: number): Op[] {
  return partKeepOps(place, RAW_PART, bytes)
}

function partKeepOps({ shard, contentId, endsAtMs }: KeptPlace, part: string, bytes: number): Op[] {
  const args = [String(endsAtMs)]
  return partKeys({ shard, contentId, part }, bytes).map((key): Op => ({ key, write: 'PEXPIREAT', args }))
}

function partEndOps(of: { shard: number; contentId: string; part: string }, bytes: number): Op[] {
  return partKeys(of, bytes).map((key): Op => ({ key, write: 'UNLINK', args: [] }))
}

function partKeys(of: { shard: number; contentId: string; part: string }, bytes: number): string[] {
  return Array.from({ length: countChunks(bytes) }, (_, chunk) => contentKey(of.shard, of.contentId, of.part, chunk))
}

function sliceOf(shard: number, contentId: string, test: boolean): Slice {
  const number = Math.floor(msOfCmdId(contentId) / SLICE_MS)
  const place = shard * 2 + (test ? 1 : 0)
  const last = lastSlices[place]
  if (last?.number === number) return last
  const key = bodiesKey(shard, number, test)
  const endsAtMs = contentExpiresAtMs((number + 1) * SLICE_MS + SLICE_LATE_MS, test)
  const slice: Slice = { number, key, endsAtMs, expiry: { key, write: 'PEXPIREAT', args: [String(endsAtMs)] } }
  lastSlices[place] = slice
  return slice
}
