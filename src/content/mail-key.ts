/** mail-key - the key of one mail's objects: random, and kept only sealed, in the mail's own row */

import { randomBytes } from 'node:crypto'
import { type SealingRing, wrapMailKey } from '../state/ring/sealing.ts'

const KEY_BYTES = 32

/** A mail's key, and as it is kept. */
export interface MailKey {
  readonly key: Buffer
  readonly sealed: string
}

/** Makes the key of a mail, to be sealed when its row is written. */
export function newMailKey(): Buffer {
  return randomBytes(KEY_BYTES)
}

/** Makes the key of a mail. Throws RingNotReady. */
export function makeMailKey(ring: SealingRing): MailKey {
  const key = newMailKey()
  return { key, sealed: wrapMailKey(ring, key) }
}
