/**
 * strict-wire - an encoding of commands and replies between processes that detects values that were never packed, or
 * packed twice.
 */
import type { Wire } from '../../../cluster/behaviour.ts'

export const STRICT_WIRE: Wire = { pack, unpack, packReply: pack, unpackReply: unpack }

function pack(value: unknown): unknown {
  if (Array.isArray(value)) throw new Error('Packed already')
  return ['packed', value]
}

function unpack(packed: unknown): unknown {
  if (!Array.isArray(packed) || packed.length !== 2 || packed[0] !== 'packed') throw new Error('Not packed')
  return packed[1]
}
