/**
 * byte-budget - how many bytes of large messages may be under way in a process at once
 *
 * Guarantees: never more than the budget; half of it is for sites that have answered before, and no site but the
 * operator's relay has more than a quarter, so that hanging sites leave room for the others. Small messages are not
 * counted, because the number of attempts bounds them.
 *
 * Spec delivery.bytes
 */

/** Bytes as read; a message also exists as composed, and again on its way into the socket. */
export const BYTES_MAX = 64 * 1024 * 1024
/** Smaller messages are bounded by the number of attempts: 256 of them are as much as the budget. */
export const LARGE_BYTES = 256 * 1024

export interface BudgetOrder {
  readonly bytes: number
  readonly site: string
  readonly isRelay: boolean
  /** Whether the site has answered before. */
  readonly isProven: boolean
}

export interface ByteBudget {
  /** Returns a function that releases the bytes (once), or null if there is no room now. */
  take(order: BudgetOrder): (() => void) | null
  /** Bytes that are taken. */
  readonly taken: number
}

const NOTHING = (): void => undefined

/** An empty budget. */
export function makeByteBudget(): ByteBudget {
  const sites = new Map<string, number>()
  let taken = 0
  return {
    take({ bytes, site, isRelay, isProven }) {
      if (bytes < LARGE_BYTES) return NOTHING
      const atSite = sites.get(site) ?? 0
      // The first message may always start, whatever its size.
      if (taken > 0 && taken + bytes > (isRelay || isProven ? BYTES_MAX : BYTES_MAX / 2)) return null
      if (!isRelay && atSite > 0 && atSite + bytes > BYTES_MAX / 4) return null
      taken += bytes
      sites.set(site, atSite + bytes)
      return () => {
        taken -= bytes
        const left = (sites.get(site) ?? 0) - bytes
        if (left > 0) sites.set(site, left)
        else sites.delete(site)
      }
    },
    get taken() {
      return taken
    },
  }
}
