/**
 * frame - how an object of the content store is encrypted: a head, then frames that can be read one by one
 *
 * `SWC1`, 16 bytes of chance, then frames of 64 KiB (the last one is what is left), each AES-256-GCM with its tag
 * behind it. Every object has a key of its own: HKDF of its mail's key, the object's bytes of chance and what the
 * object is. The nonce is the frame's number and whether it is the last one, as in the STREAM construction of Hoang,
 * Reyhanitabar, Rogaway and Vizar: so no frame can be changed, moved, left off or added without being seen.
 *
 * Pure but for the cipher: chance comes in as an argument.
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

/** What an object is: the same mail's objects are not taken for each other. */
export type ObjectKind = 'body' | 'files' | 'mail' | 'parsed' | 'log'

/** Which bytes of an object, from `from` on; `length` null is up to its end. */
export interface Span {
  readonly from: number
  readonly length: number | null
}

/** The frames that hold a span, and where in the sealed object they lie. */
export interface FramePlan {
  readonly firstFrame: number
  /** Frames of the whole object. */
  readonly frames: number
  readonly sealedFrom: number
  readonly sealedLength: number
  /** Bytes of the first frame that lie before the span, and bytes of the span. */
  readonly skip: number
  readonly length: number
}

/** The head of an object. In: 16 bytes of chance. */
export function makeHead(salt: Buffer): Buffer {
  return Buffer.concat([MAGIC, salt])
}

/** The bytes of chance of a head; null where it is none. */
export function saltOfHead(head: Buffer): Buffer | null {
  return head.length === HEAD_BYTES && head.subarray(0, MAGIC.length).equals(MAGIC) ? head.subarray(MAGIC.length) : null
}

/** The key of one object. In: the mail's key, the object's bytes of chance. */
export function objectKey(mailKey: Buffer, { salt, kind }: { salt: Buffer; kind: ObjectKind }): Buffer {
  return Buffer.from(hkdfSync('sha256', mailKey, salt, `sendwright content ${kind} v1`, KEY_BYTES))
}

/** Bytes of a sealed object that holds `bytes` bytes. */
export function sealedSize(bytes: number): number {
  return HEAD_BYTES + bytes + TAG_BYTES * Math.max(1, Math.ceil(bytes / FRAME_BYTES))
}

/** Bytes that a sealed object of `sealed` bytes holds; null where no object has that size. */
export function plainSize(sealed: number): number | null {
  const framed = sealed - HEAD_BYTES
  const frames = Math.ceil(framed / SEALED_FRAME_BYTES)
  const bytes = framed - frames * TAG_BYTES
  return framed >= TAG_BYTES && sealedSize(bytes) === sealed ? bytes : null
}

/** Where a span lies; null where it is not within the object. In: bytes that the object holds. */
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

/** Seals one frame: its bytes and their tag. A number is used once with a key. */
export function sealFrame(key: Buffer, { number, isLast, bytes }: Frame): Buffer {
  const cipher = createCipheriv(ALGORITHM, key, nonceOf(number, isLast), { authTagLength: TAG_BYTES })
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

/** Opens one frame; null where it is not what was sealed. */
export function openFrame(key: Buffer, { number, isLast, bytes }: Frame): Buffer | null {
  if (bytes.length < TAG_BYTES) return null
  const decipher = createDecipheriv(ALGORITHM, key, nonceOf(number, isLast), { authTagLength: TAG_BYTES })
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const opened = decipher.update(bytes.subarray(0, -TAG_BYTES))
  try {
    decipher.final()
  } catch {
    // final() has no other way to say that the tag is wrong.
    return null
  }
  return opened
}

/** One frame; `bytes` are sealed or plain, as the function says. */
export interface Frame {
  /** From 0. */
  readonly number: number
  readonly isLast: boolean
  readonly bytes: Buffer
}

function nonceOf(number: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce[0] = isLast ? 1 : 0
  nonce.writeUIntBE(number, NONCE_BYTES - 6, 6)
  return nonce
}
