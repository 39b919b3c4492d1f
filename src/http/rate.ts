/**
 * rate - how many requests a second one client may make: a token bucket for each
 *
 * Each process counts by itself. The oldest client is dropped if there are too many: that only refills its bucket, so
 * it errs in the client's favour.
 *
 * Spec request.rate
 */

/** Asks for one request of a client. */
export interface Rate {
  /** Whether this request may pass; counts it when it may. */
  take(client: string): boolean
}

/** How a rate is made. */
export interface RateOptions {
  /** Requests a second that a bucket is refilled with; 0 turns the rate off. */
  readonly perSecond: number
  /** Requests that a full bucket holds. */
  readonly burst: number
  /** Monotonic clock in ms. */
  readonly nowMs: () => number
  /** Maximum number of clients in memory. */
  readonly clientsMax?: number
}

interface Bucket {
  tokens: number
  filledAtMs: number
}

/** Some 10 MB of memory at worst. */
const CLIENTS_MAX = 100_000

/** Makes the rate of one listener. Never throws. Spec request.rate */
export function makeRate({ perSecond, burst, nowMs, clientsMax = CLIENTS_MAX }: RateOptions): Rate {
  const buckets = new Map<string, Bucket>()
  if (perSecond <= 0) return { take: () => true }
  return {
    take(client) {
      const now = nowMs()
      const bucket = buckets.get(client)
      if (bucket === undefined) {
        if (buckets.size >= clientsMax) dropOldest(buckets)
        buckets.set(client, { tokens: burst - 1, filledAtMs: now })
        return burst >= 1
      }
      bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.filledAtMs) * perSecond) / 1000)
      bucket.filledAtMs = now
      if (bucket.tokens < 1) return false
      bucket.tokens -= 1
      return true
    },
  }
}

function dropOldest(buckets: Map<string, Bucket>): void {
  const oldest = buckets.keys().next()
  if (oldest.done !== true) buckets.delete(oldest.value)
}
