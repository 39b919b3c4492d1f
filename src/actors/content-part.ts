/**
 * content-part - the stored parts of a message's content: how many chunks, what writes them, what removes them.
 *
 * Part `body` is text and html; `a<k>` is attachment k. A part is cut into chunks; the first begins with a few bytes of
 * our own.
 *
 * Key: `content:<contentId>:<part>[.<chunk>]`
 *
 * Spec retention.content
 */

import type { Op } from '../../cluster/behaviour.ts'
import { attachmentExpiresAtMs, contentExpiresAtMs } from './age.ts'
import { contentKey } from './keyspace.ts'

export const CHUNK_BYTES_MAX = 256 * 1024
/** Bytes before a part's own: encoding, number of chunks. */
export const PART_HEADER_BYTES = 3
export const BODY_PART = 'body'

/** A part of a message that is being accepted. */
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

/** Name of attachment `index`, from 0. */
export function attachmentPart(index: number): string {
  return `a${index}`
}

/** Chunks of a part of `bytes` bytes. */
export function chunksOf(bytes: number): number {
  return Math.max(1, Math.ceil((bytes + PART_HEADER_BYTES) / CHUNK_BYTES_MAX))
}

/** Writes that make the content of an accepted message stay: what came along is set, what was written before is kept. */
export function contentOps(
  { shard, contentId }: { readonly shard: number; readonly contentId: string },
  parts: readonly ContentPart[],
  of: { readonly blobs: readonly Uint8Array[]; readonly submittedAtMs: number; readonly test: boolean },
): Op[] {
  const ops: Op[] = []
  for (const { part, chunks, blob } of parts) {
    const expiresAtMs = String(
      part === BODY_PART ? contentExpiresAtMs(of.submittedAtMs, of.test) : attachmentExpiresAtMs(of.submittedAtMs),
    )
    for (let chunk = 0; chunk < chunks; chunk += 1) {
      const key = contentKey(shard, contentId, part, chunk)
      const bytes = blob === null ? undefined : of.blobs[blob + chunk]
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
  return sizes.flatMap((bytes, index) =>
    Array.from({ length: chunksOf(bytes) }, (_, chunk): Op => {
      return { key: contentKey(shard, contentId, attachmentPart(index), chunk), write: 'UNLINK', args: [] }
    }),
  )
}
