/**
 * frame - how an object of the content store is encrypted: a head, then frames that can be read one by one
 *
 * `SWC1`, 16 bytes of chance, then frames of 64 KiB (the last one is what is left), each AES-256-GCM with its tag
 * behind it. Every object has a key of its own, by HKDF from its mail's key, the object's random bytes and the kind of
 * object. The nonce is the frame's number and whether it is the last one, as in the STREAM construction of Hoang,
 * Reyhanitabar, Rogaway and Vizar: so no frame can be changed, moved, left off or added without being seen.
 *
 * Pure apart from the cipher; random bytes are an argument.
 */

import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'

/** Bytes of a frame before it is sealed. */
export const FRAME_BYTES = 64 * 1024
export const TAG_BYTES = 16
export const SEALED_FRAME_BYTES = FRAME_BYTES + TAG_BYTES
export const SALT_BYTES = 16
const MAGIC = Buffer.from('SWC1')
/** Bytes before the first frame. */
export const HEAD_BYTES = MAGIC.length + SALT_BYTES
const KEY_BYTES = 32
const NONCE_BYTES = 12
const ALGORITHM = 'aes-256-gcm'

/** The kind of an object, which keeps objects of one mail apart. */
export type ObjectKind = 'body' | 'files' | 'mail' | 'parsed' | 'log'

/** Which bytes of an object, from `from` on; `length` null is up to its end. */
export interface Span {
  readonly from: number
  readonly length: number | null
}

/** The frames that contain a span, and their position in the sealed object. */
export interface FramePlan {
  readonly firstFrame: number
  /** Frames of the whole object. */
  readonly frames: number
  readonly sealedFrom: number
  readonly sealedLength: number
  /** Bytes of the first frame before the span, and bytes of the span. */
  readonly skip: number
  readonly length: number
}

/** The head of an object. Takes 16 random bytes. */
export function makeHead(salt: Buffer): Buffer {
  return Buffer.concat([MAGIC, salt])
}

/** The random bytes of a head; null if it is not a head. */
export function saltOfHead(head: Buffer): Buffer | null {
  return head.length === HEAD_BYTES && head.subarray(0, MAGIC.length).equals(MAGIC) ? head.subarray(MAGIC.length) : null
}

/** The key of one object. Takes the mail's key and the object's random bytes. */
export function objectKey(mailKey: Buffer, { salt, kind }: { salt: Buffer; kind: ObjectKind }): Buffer {
  return Buffer.from(hkdfSync('sha256', mailKey, salt, `sendwright content ${kind} v1`, KEY_BYTES))
}

/** Bytes of a sealed object that holds `bytes` bytes. */
export function sealedSize(bytes: number): number {
  return HEAD_BYTES + bytes + TAG_BYTES * Math.max(1, Math.ceil(bytes / FRAME_BYTES))
}

/** Plain size of a sealed object of `sealed` bytes; null if no object has that size. */
export function plainSize(sealed: number): number | null {
  const framed = sealed - HEAD_BYTES
  const frames = Math.ceil(framed / SEALED_FRAME_BYTES)
  const bytes = framed - frames * TAG_BYTES
  return framed >= TAG_BYTES && sealedSize(bytes) === sealed ? bytes : null
}

/** The position of a span; null if it is not within the object. Takes the size of the object. */
export function planSpan(bytes: number, { from, length }: Span): FramePlan | null {
  const wanted = length ?? bytes - from
  if (from < 0 || wanted < 0 || from + wanted > bytes) return null
  const frames = Math.max(1, Math.ceil(bytes / FRAME_BYTES))
  const firstFrame = Math.min(Math.floor(from / FRAME_BYTES), frames - 1)
  const lastFrame = Math.min(Math.floor(Math.max(from, from + wanted - 1) / FRAME_BYTES), frames - 1)
  const sealedFrom = HEAD_BYTES + firstFrame * SEALED_FRAME_BYTES
  const sealedEnd = Math.min(HEAD_BYTES + (lastFrame + 1) * SEALED_FRAME_BYTES, sealedSize(bytes))
  return {
    firstFrame,
    frames,
    sealedFrom,
    sealedLength: sealedEnd - sealedFrom,
    skip: from - firstFrame * FRAME_BYTES,
    length: wanted,
  }
}

/** Seals one frame, its bytes followed by their tag. A number is used once with a key. */
export function sealFrame(key: Buffer, { number, isLast, bytes }: Frame): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, makeNonce(number, isLast), { authTagLength: TAG_BYTES })
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Opens one frame; null if it was changed. */
export function openFrame(key: Buffer, { number, isLast, bytes }: Frame): Buffer | null {
  if (bytes.length < TAG_BYTES) return null
  const decipher = createDecipheriv(ALGORITHM, key, makeNonce(number, isLast), { authTagLength: TAG_BYTES })
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const opened = decipher.update(bytes.subarray(0, -TAG_BYTES))
  try {
    decipher.final()
  } catch {
    // final() has no other way to report a wrong tag.
    return null
  }
  return opened
}

/** One frame; `bytes` are sealed or plain, depending on the function. */
export interface Frame {
  /** From 0. */
  readonly number: number
  readonly isLast: boolean
  readonly bytes: Buffer
}

function makeNonce(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce[0] = isLast ? 1 : 0
  nonce.writeUIntBE(number, NONCE_BYTES - 6, 6)
  return nonce
}
