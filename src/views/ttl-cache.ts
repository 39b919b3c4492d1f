/**
 * ttl-cache - caches an expensive read for a fixed time
 *
 * Calls within that time get the cached result, and calls during a read share it. A read without a result (null,
 * because the store is unavailable) leaves the previous result in place.
 */

export interface TtlCacheOptions<Seen> {
  /** The result before the first successful read. */
  readonly first: Seen
  /** How long a look serves, in ms. */
  readonly freshMs: number
  readonly nowMs: () => number
  readonly look: () => Promise<Seen | null>
}

/**
 * Makes a function that returns the cached result. It rejects if `look` rejects, and the next call reads again.
 */
export function makeTtlCache<Seen>({ first, freshMs, nowMs, look }: TtlCacheOptions<Seen>): () => Promise<Seen> {
  let seen = first
  let seenAtMs = Number.NEGATIVE_INFINITY
  let running: Promise<Seen> | null = null
  const takeLook = async (): Promise<Seen> => {
    try {
      seen = (await look()) ?? seen
      seenAtMs = nowMs()
      return seen
    } finally {
      running = null
    }
  }
  return async () => {
    // If the clock was set back, an old result must not be used forever.
    if (Math.abs(nowMs() - seenAtMs) < freshMs) return seen
    running ??= takeLook()
    return running
  }
}
