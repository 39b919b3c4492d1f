/**
 * content-bytes - the memory that content takes which is read back whole, until its client has it
 *
 * Guarantees: never more than the bound, of one account never more than a third of it; a first request is always
 * served.
 *
 * Spec message.raw
 */

/** Bytes of messages as built. While one is composed it takes some three times as many. */
export const CONTENT_BYTES_MAX = 64 * 1024 * 1024
export const ACCOUNT_BYTES_MAX = Math.floor(CONTENT_BYTES_MAX / 3)

/** A smaller message counts as this size, so that at most 1,024 accounts hold bytes. */
const LEAST_BYTES = 64 * 1024

export class ContentBytes {
  #bytes = 0
  readonly #accounts = new Map<string, number>()

  /** Takes bytes of an account. Returns a function that gives them back once, or null if there is no room. */
  take(accountId: string, size: number): (() => void) | null {
    const bytes = Math.max(size, LEAST_BYTES)
    const own = this.#accounts.get(accountId) ?? 0
    if (own > 0 && own + bytes > ACCOUNT_BYTES_MAX) return null
    if (this.#bytes > 0 && this.#bytes + bytes > CONTENT_BYTES_MAX) return null
    this.#bytes += bytes
    this.#accounts.set(accountId, own + bytes)
    let isGiven = false
    return () => {
      if (isGiven) return
      isGiven = true
      this.#bytes -= bytes
      const left = (this.#accounts.get(accountId) ?? 0) - bytes
      if (left > 0) this.#accounts.set(accountId, left)
      else this.#accounts.delete(accountId)
    }
  }
}
