/**
 * size - how large a message may be as built, and from lengths alone how large it can become at most.
 *
 * The bound lets the edge answer without building: only a message whose bound passes the maximum is built to be
 * measured.
 */

import { MESSAGE_BYTES_MAX } from '../../../schemas/limits.ts'

/** Room for all header fields of message and parts. */
const HEADER_BYTES_MAX = 512 * 1024
/** The worst that quoted-printable does: three characters a byte, and soft line breaks. */
const ENCODED_PER_BYTE_MAX = 3.2
const BASE64_LINE_CHARS = 76
/** Fields put before a message that came whole, without the trace field. The longest Message-ID takes 305 bytes. */
export const RAW_ADDED_BYTES_MAX = 512

export interface SizeInput {
  readonly text: string | null
  readonly html: string | null
  /** Bytes of each attachment, decoded. */
  readonly attachmentBytes: readonly number[]
}

/** Bytes that the message as built cannot exceed. */
export function upperBoundBytes(input: SizeInput): number {
  const bodyBytes = Buffer.byteLength(input.text ?? '') + Buffer.byteLength(input.html ?? '')
  let bytes = HEADER_BYTES_MAX + Math.ceil(bodyBytes * ENCODED_PER_BYTE_MAX)
  for (const attachmentBytes of input.attachmentBytes) bytes += base64Bytes(attachmentBytes)
  return bytes
}

/** True when the message must be built before it is known whether it fits. */
export function mayBeTooLarge(input: SizeInput): boolean {
  return upperBoundBytes(input) > MESSAGE_BYTES_MAX
}

/** Bytes of `bytes` bytes in base64 with a CRLF after each line (RFC 2045 6.8). */
function base64Bytes(bytes: number): number {
  const chars = Math.ceil(bytes / 3) * 4
  return chars + Math.ceil(chars / BASE64_LINE_CHARS) * 2
}
