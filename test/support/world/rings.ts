/** rings - the ring that an installation with a given SECRET_KEY begins with. */
import { deriveRingKeys, Ring } from '../../../src/state/ring/ring.ts'

export function ringOf(secretKey: string): Ring {
  return new Ring(deriveRingKeys(secretKey))
}
