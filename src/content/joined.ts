/**
 * joined - several sealed objects one after the other, as one object of the home.
 *
 * Each is sealed by itself, under a key of its own: whoever has its key and its place opens it, and nobody else.
 */

import { randomBytes } from 'node:crypto'
import { HEAD_BYTES, type ObjectKind, plainSize, planSpan, SALT_BYTES } from './frame.ts'
import { BrokenObject, keyOfHead, openAll, sealAll } from './framing.ts'
import type { SealedSpan } from './storage-backend.ts'

/** One of them, before it is sealed. */
export interface Joinable {
  readonly mailKey: Buffer
  readonly bytes: Uint8Array
}

/** Seals the pieces. Returns the bytes of all, and the span of each. */
export async function sealJoined(
  pieces: readonly Joinable[],
  kind: ObjectKind,
): Promise<{ readonly sealed: readonly Buffer[]; readonly spans: readonly SealedSpan[] }> {
  const sealed: Buffer[] = []
  const spans: SealedSpan[] = []
  let from = 0
  for (const { mailKey, bytes } of pieces) {
    const parts: Buffer[] = []
    const order = { mailKey, kind, salt: randomBytes(SALT_BYTES) }
    for await (const part of sealAll([bytes], order)) parts.push(part)
    const whole = Buffer.concat(parts)
    spans.push({ from, length: whole.length })
    sealed.push(whole)
    from += whole.length
  }
  return { sealed, spans }
}

/** Opens one piece from its sealed bytes. Throws BrokenObject. */
export async function openJoined(
  bytes: Buffer,
  { mailKey, kind }: { readonly mailKey: Buffer; readonly kind: ObjectKind },
): Promise<Buffer> {
  const size = plainSize(bytes.length)
  const plan = size === null ? null : planSpan(size, { from: 0, length: null })
  if (plan === null) throw new BrokenObject('It has no size of an object')
  const key = keyOfHead(bytes.subarray(0, HEAD_BYTES), { mailKey, kind })
  const opened: Buffer[] = []
  const sealed = bytes.subarray(plan.sealedFrom, plan.sealedFrom + plan.sealedLength)
  for await (const piece of openAll([sealed], plan, key)) opened.push(piece)
  return Buffer.concat(opened)
}
