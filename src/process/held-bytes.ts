/**
 * held-bytes - the memory held by client data until it is processed, all listeners together
 *
 * Spec request.body.held, submission.held
 */

/** Bodies of requests and of messages over SMTP share it. */
const HELD_BYTES_MAX = 256 * 1024 * 1024

export class HeldBytes {
  #bytes = 0
  readonly #max: number

  constructor(max: number = HELD_BYTES_MAX) {
    this.#max = max
  }

  /** Holds `bytes` more bytes. Returns false, and holds none, if they do not fit. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#max) return false
    this.#bytes += bytes
    return true
  }

  /** Releases the bytes. */
  give(bytes: number): void {
    this.#bytes -= bytes
  }
}
