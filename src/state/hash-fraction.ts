/**
 * hash-fraction - a number between 0 and 1 that follows from a text alone.
 *
 * Decisions draw no random numbers: work that must not happen everywhere at once is spread by a hash of its name.
 */

const FNV_OFFSET = 0x811c9dc5
const FNV_PRIME = 0x01000193

/** Maps an ASCII text to a fixed number in [0, 1), with FNV-1a of 32 bits and a final mix. */
export function hashFraction(text: string): number {
  let hash = FNV_OFFSET
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32
}
