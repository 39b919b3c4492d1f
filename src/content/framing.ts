/**
 * framing - encrypts a stream of bytes into sealed frames, and decrypts sealed bytes to a requested span
 *
 * Guarantees: memory holds one frame and the last piece; bytes are passed on only after their frame was verified, so a
 * changed object ends in an error and never in other bytes.
 */

import {
  FRAME_BYTES,
  type FramePlan,
  makeHead,
  type ObjectKind,
  objectKey,
  openFrame,
  SEALED_FRAME_BYTES,
  saltOfHead,
  sealFrame,
} from './frame.ts'

/** A damaged object. */
export class BrokenObject extends Error {}

/** Bytes in pieces of any size. */
export type ByteSource = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

/** Seals a stream: the head first, then frame after frame. Takes the mail's key and 16 random bytes. */
export async function* sealAll(
  source: ByteSource,
  { mailKey, kind, salt }: { mailKey: Buffer; kind: ObjectKind; salt: Buffer },
): AsyncGenerator<Buffer, void> {
  const key = objectKey(mailKey, { salt, kind })
  yield makeHead(salt)
  let number = 0
  const cutter = makeCutter(FRAME_BYTES)
  for await (const piece of source) {
    cutter.add(asBuffer(piece))
    // A full frame may be the last one: it is sealed once something follows it.
    for (let bytes = cutter.next(1); bytes !== null; bytes = cutter.next(1)) {
      yield sealFrame(key, { number, isLast: false, bytes })
      number += 1
    }
  }
  yield sealFrame(key, { number, isLast: true, bytes: cutter.rest() })
}

/** The key of an object. Takes its head as read. Throws BrokenObject. */
export function keyOfHead(head: Buffer, { mailKey, kind }: { mailKey: Buffer; kind: ObjectKind }): Buffer {
  const salt = saltOfHead(head)
  if (salt === null) throw new BrokenObject('It has no head')
  return objectKey(mailKey, { salt, kind })
}

/**
 * Opens the frames of a plan. Takes their sealed bytes. Throws BrokenObject at the first that is not what was sealed.
 */
export async function* openAll(sealed: ByteSource, plan: FramePlan, key: Buffer): AsyncGenerator<Buffer, void> {
  let number = plan.firstFrame
  let { skip, length: left } = plan
  const give = (bytes: Buffer): Buffer => {
    const opened = openFrame(key, { number, isLast: number === plan.frames - 1, bytes })
    if (opened === null) throw new BrokenObject(`Frame ${number} is not what was written`)
    const wanted = opened.subarray(skip, skip + left)
    skip = 0
    left -= wanted.length
    number += 1
    return wanted
  }
  const cutter = makeCutter(SEALED_FRAME_BYTES)
  let came = 0
  for await (const piece of sealed) {
    came += piece.length
    cutter.add(asBuffer(piece))
    for (let bytes = cutter.next(0); bytes !== null; bytes = cutter.next(0)) yield give(bytes)
  }
  if (came !== plan.sealedLength) throw new BrokenObject('It is shorter than it was')
  if (cutter.waiting > 0) yield give(cutter.rest())
  if (left > 0) throw new BrokenObject('It is shorter than it was')
}

/** Cuts pieces of any size into pieces of one size. */
function makeCutter(size: number) {
  let pieces: Buffer[] = []
  let waiting = 0
  const take = (bytes: number): Buffer => {
    const joined = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
    const rest = joined.subarray(bytes)
    pieces = rest.length === 0 ? [] : [rest]
    waiting = rest.length
    return joined.subarray(0, bytes)
  }
  return {
    add(piece: Buffer): void {
      if (piece.length === 0) return
      pieces.push(piece)
      waiting += piece.length
    },
    /** A piece of that size if at least `behind` bytes follow it, otherwise null. */
    next: (behind: number): Buffer | null => (waiting >= size + behind ? take(size) : null),
    rest: (): Buffer => take(waiting),
    get waiting() {
      return waiting
    },
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
