/**
 * known-keys - the owners of recently used keys, found by the raw header
 *
 * Only keys with an owner are cached, so that invented ones evict none. A header is a secret, so an entry is removed
 * after ten minutes, used or not. Revocations are not known here (`KeyFinder`).
 *
 * Spec key.unknown, key.revoke
 */

import { Generations } from './generations.ts'
import type { KeyOwner, ParsedKey } from './key.ts'

/** A key with its owner. */
export interface KnownKey {
  readonly parsed: ParsedKey
  readonly owner: KeyOwner
}

/** Some 5 MB. */
const YOUNG_MAX = 8_192
const KNOWN_MS = 600_000
/** As clients write it; any other spelling is looked up each time. */
const HEADER = /^Bearer \w{1,80}$/

export class KnownKeys {
  readonly #known = new Generations<KnownKey>(YOUNG_MAX)

  /** The owner of the key in an Authorization header; undefined if it is not cached. */
  get(authorization: string): KnownKey | undefined {
    return this.#known.get(authorization)
  }

  /** The header's key was looked up and has an owner. */
  add(authorization: string, known: KnownKey): void {
    if (!HEADER.test(authorization)) return
    if (this.#known.isEmpty) setTimeout(() => this.#known.clear(), KNOWN_MS).unref()
    this.#known.set(authorization, known)
  }

  /** The header's key was revoked. */
  delete(authorization: string): void {
    this.#known.delete(authorization)
  }
}
