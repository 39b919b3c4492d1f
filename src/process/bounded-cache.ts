/**
 * bounded-cache - a cache for values whose size others choose: bounded in entries, in bytes and in age.
 *
 * The least recently used entry is evicted first. Expired entries are removed within a minute of the next write, used
 * or not. Bytes are a high estimate of the heap. The caller passes the size of a value, and the size of the key and
 * the entry is added here.
 */

/** Heap of an entry apart from its value: the Map's slot, two objects, and the head of the key. */
const ENTRY_BYTES = 256
const SWEEP_MS = 60_000

export interface CacheBounds {
  readonly entriesMax: number
  readonly bytesMax: number
  /** A larger entry is not cached. */
  readonly entryBytesMax: number
  /** Clock in milliseconds, the same for every expiry. */
  readonly nowMs: () => number
}

interface Entry<Value> {
  readonly value: Value
  readonly bytes: number
  readonly untilMs: number
}

/** An empty cache. */
export class BoundedCache<Value> {
  readonly #bounds: CacheBounds
  // A Map iterates in order of insertion, and each use inserts again, so the first entry is the least recently used.
  readonly #entries = new Map<string, Entry<Value>>()
  #bytes = 0
  #sweepAtMs = Number.NEGATIVE_INFINITY

  constructor(bounds: CacheBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#entries.size
  }

  /** Estimate of the heap that all entries take. */
  get bytes(): number {
    return this.#bytes
  }

  /** The value, unless it has expired. */
  get(key: string): Value | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.untilMs <= this.#bounds.nowMs()) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  /** Replaces the value of a key. Takes the heap size of the value and the instant at which it expires. */
  set(key: string, value: Value, { bytes, untilMs }: { readonly bytes: number; readonly untilMs: number }): void {
    const { entriesMax, bytesMax, entryBytesMax } = this.#bounds
    this.#remove(key)
    this.#sweep()
    const whole = ENTRY_BYTES + 2 * key.length + bytes
    if (whole > entryBytesMax) return
    this.#entries.set(key, { value, bytes: whole, untilMs })
    this.#bytes += whole
    while (this.#entries.size > entriesMax || this.#bytes > bytesMax)
      this.#remove(this.#entries.keys().next().value as string)
  }

  #remove(key: string): void {
    this.#bytes -= this.#entries.get(key)?.bytes ?? 0
    this.#entries.delete(key)
  }

  #sweep(): void {
    const nowMs = this.#bounds.nowMs()
    if (nowMs < this.#sweepAtMs) return
    this.#sweepAtMs = nowMs + SWEEP_MS
    for (const [key, entry] of this.#entries) if (entry.untilMs <= nowMs) this.#remove(key)
  }
}
