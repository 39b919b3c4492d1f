/**
 * fresh-mails - keeps small received mails in memory until this process parses them, so that they need not be read
 * back, opened and checked.
 *
 * Guarantees: at most 8 MiB and a minute; a mail that is not here is read from the content store, as one of another
 * process is, so losing one costs nothing. Memory is shared with the threads.
 */

const KEPT_BYTES_MAX = 8 * 1024 * 1024
/** Larger ones wait longer to be parsed than to be read. */
const MAIL_BYTES_MAX = 256 * 1024
const KEPT_MS_MAX = 60_000

interface Kept {
  readonly raw: Uint8Array
  readonly untilMs: number
}

/** The pieces of one mail on their way to disk; a mail above the maximum is dropped here. */
export class FreshPieces {
  #pieces: Buffer[] | null = []
  #bytes = 0

  add(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > MAIL_BYTES_MAX) this.#pieces = null
    this.#pieces?.push(piece)
  }

  /** The whole mail; null if it is too large. */
  whole(): Uint8Array | null {
    if (this.#pieces === null) return null
    const raw = new Uint8Array(new SharedArrayBuffer(this.#bytes))
    let at = 0
    for (const piece of this.#pieces) {
      raw.set(piece, at)
      at += piece.length
    }
    return raw
  }
}

/** The mails of one process, by the id of their object in the content store. */
export class FreshMails {
  readonly #nowMs: () => number
  readonly #kept = new Map<string, Kept>()
  #bytes = 0
  #timer: NodeJS.Timeout | null = null

  /** `nowMs` is a monotonic clock in milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  /** Keeps a mail; the oldest make room. */
  keep(objectId: string, raw: Uint8Array): void {
    this.take(objectId)
    this.#kept.set(objectId, { raw, untilMs: this.#nowMs() + KEPT_MS_MAX })
    this.#bytes += raw.length
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= KEPT_BYTES_MAX) break
      this.take(oldest)
    }
    this.#timer ??= setTimeout(() => this.forgetOld(), KEPT_MS_MAX).unref()
  }

  /** Removes and returns a mail; null if it is not here. */
  take(objectId: string): Uint8Array | null {
    const kept = this.#kept.get(objectId)
    if (kept === undefined) return null
    this.#kept.delete(objectId)
    this.#bytes -= kept.raw.length
    return kept.raw
  }

  /** Mails and bytes that are kept. */
  get size(): { readonly mails: number; readonly bytes: number } {
    return { mails: this.#kept.size, bytes: this.#bytes }
  }

  /** Removes expired mails; called by a timer. */
  forgetOld(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    // The map is in order of age, so the loop ends at the first mail that has not expired.
    for (const [objectId, { untilMs }] of this.#kept) {
      if (untilMs > this.#nowMs()) break
      this.take(objectId)
    }
    if (this.#kept.size > 0) this.#timer = setTimeout(() => this.forgetOld(), KEPT_MS_MAX).unref()
  }
}
