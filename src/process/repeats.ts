/**
 * repeats - a limit for repeated log sentences: further repeats are counted, and reported once a minute
 *
 * A store that goes away concerns every shard and every connection at once: hundreds of lines with the same text would
 * hide the one with the cause.
 */

/** Maximum lines of one sentence in a minute. */
const TIMES_MAX = 20
const WINDOW_MS = 60_000
/** Sentences are constants. The bound protects the memory if a caller builds varying ones. */
const SENTENCES_MAX = 500

interface Said {
  readonly sinceMs: number
  times: number
}

/** Takes a monotonic clock in milliseconds, and how long a sentence is counted. */
export class Repeats {
  private readonly nowMs: () => number
  private readonly windowMs: number
  private readonly said = new Map<string, Said>()

  constructor(nowMs: () => number, windowMs = WINDOW_MS) {
    this.nowMs = nowMs
    this.windowMs = windowMs
  }

  /** Sentences that are counted. */
  get size(): number {
    return this.said.size
  }

  /**
   * Whether a sentence can be logged now. At the end of its minute, `more` receives how often it was suppressed, if
   * ever.
   */
  maySay(sentence: string, more: (times: number) => void): boolean {
    const nowMs = this.nowMs()
    const known = this.said.get(sentence)
    if (known === undefined || nowMs - known.sinceMs >= this.windowMs) {
      if (known === undefined && this.said.size >= SENTENCES_MAX) this.said.clear()
      this.said.set(sentence, { sinceMs: nowMs, times: 1 })
      return true
    }
    known.times += 1
    if (known.times <= TIMES_MAX) return true
    if (known.times === TIMES_MAX + 1)
      setTimeout(() => more(known.times - TIMES_MAX), known.sinceMs + this.windowMs - nowMs).unref()
    return false
  }
}
