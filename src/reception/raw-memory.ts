/**
 * raw-memory - memory that threads share for raw mails, used again and again.
 *
 * Each thread that has seen shared memory holds it until its own garbage is collected, and the engine does not count
 * it as memory that collecting would free: mails of 35 MB would pile up. So there is one buffer for all, whose parts
 * are given out. If no free part is large enough, because of the order in which mails come and go, a mail has memory
 * of its own.
 */

/** A part that is given out. */
interface Part {
  readonly from: number
  readonly to: number
}

/** Allocates a number of bytes, in parts. */
export class RawMemory {
  readonly #bytesMax: number
  #whole: SharedArrayBuffer | null = null
  /** In order. */
  readonly #parts: Part[] = []

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** A part, with arbitrary contents. */
  take(bytes: number): Uint8Array {
    const from = this.#freeFrom(bytes)
    if (from === null || bytes === 0) return new Uint8Array(new SharedArrayBuffer(bytes))
    this.#whole ??= new SharedArrayBuffer(this.#bytesMax)
    this.#parts.push({ from, to: from + bytes })
    this.#parts.sort((one, other) => one.from - other.from)
    return new Uint8Array(this.#whole, from, bytes)
  }

  /** Takes back a part that is no longer read. */
  giveBack({ buffer, byteOffset }: Uint8Array): void {
    const at = buffer === this.#whole ? this.#parts.findIndex(({ from }) => from === byteOffset) : -1
    if (at >= 0) this.#parts.splice(at, 1)
  }

  /** Start of the first gap that is large enough; null if there is none. */
  #freeFrom(bytes: number): number | null {
    let from = 0
    for (const part of this.#parts) {
      if (part.from - from >= bytes) return from
      from = part.to
    }
    return this.#bytesMax - from >= bytes ? from : null
  }
}
