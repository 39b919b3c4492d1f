/**
 * written - objects of segments on their way to the content store, and the proof that they are what was meant.
 */

import { setImmediate as turn } from 'node:timers/promises'
import type { SealedRow } from '../../state/message/sealed.ts'
import type { SealingRing } from '../../state/ring/sealing.ts'
import type { Reader } from '../../views/key.ts'
import type { Contents } from '../contents.ts'
import { computeCheck } from './packer.ts'
import { type SealedSegments, SegmentFailure } from './segment.ts'

/** Dependencies of the acts on sealed segments. */
export interface ColdDeps {
  /** Rows in Redis alone. */
  readonly read: Reader
  readonly contents: Pick<Contents, 'put' | 'read' | 'front' | 'putSealed' | 'readSealed'>
  /** The body of a message as Redis holds it: null once it is gone; undefined when the store did not answer. */
  readonly readBody: (place: {
    shard: number
    contentId: string
    test: boolean
  }) => Promise<{ readonly chunks: readonly Buffer[]; readonly isSliced: boolean } | null | undefined>
  readonly ring: SealingRing
  readonly segments: SealedSegments
  /** The store's time in ms. */
  readonly nowMs: () => number
}

/** Writes an object. Returns its bytes before encryption; null if the content store did not accept it. */
export async function writeObject(
  { contents }: Pick<ColdDeps, 'contents'>,
  { name, key, pieces }: { readonly name: string; readonly key: Buffer; readonly pieces: readonly Buffer[] },
): Promise<number | null> {
  const size = pieces.reduce((sum, { length }) => sum + length, 0)
  const put = await contents.put({ names: [name], mailKey: key, kind: 'log', source: pieces, bytesMax: size })
  return put.ok ? size : null
}

/** An object as it was written. */
export interface WrittenObject {
  readonly shard: number
  readonly row: Pick<SealedRow, 'leaf' | 'day' | 'size' | 'key' | 'messages' | 'firstMs' | 'lastMs'>
  readonly pieces: readonly Buffer[]
  /** For each block the hash of the text of the rows that were read; null if the block was copied unchanged. */
  readonly checks: readonly (string | null)[]
}

/**
 * Reads an object back: whether it has the very bytes that were written, and whether its blocks open to the rows that
 * were read.
 */
export async function isSame(
  { segments }: Pick<ColdDeps, 'segments'>,
  { shard, row, pieces, checks }: WrittenObject,
): Promise<boolean> {
  const rest = { generation: 1, recalls: 0, next: '', filterBlocks: 0 }
  const segment = segments.open(shard, { ...row, ...rest })
  try {
    const bytes = await segment.hold()
    if (!isJoined(bytes, pieces)) return false
    const { blocks } = await segment.tail()
    if (blocks.length !== checks.length) return false
    for (const [number, check] of checks.entries()) {
      if (check === null) continue
      if (computeCheck(await segment.blockText(number)) !== check) return false
      await turn()
    }
    return true
  } catch (error) {
    if (error instanceof SegmentFailure) return false
    throw error
  }
}

function isJoined(bytes: Buffer, pieces: readonly Buffer[]): boolean {
  let at = 0
  for (const piece of pieces) {
    if (!bytes.subarray(at, at + piece.length).equals(piece)) return false
    at += piece.length
  }
  return at === bytes.length
}
