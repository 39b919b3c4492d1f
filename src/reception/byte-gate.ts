/** byte-gate - lets in what fits of a number of bytes, in order; something larger than all of it comes in alone. */

/** A gate of so many bytes. */
export class ByteGate {
  readonly #bytesMax: number
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = []
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Waits until there is room for them. Each call is followed by one of `leave`. */
  async enter(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#bytes += bytes
      return
    }
    await new Promise<void>((enter) => this.#waiting.push({ bytes, enter }))
  }

  leave(bytes: number): void {
    this.#bytes -= bytes
    for (let next = this.#waiting[0]; next !== undefined && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift()
      this.#bytes += next.bytes
      next.enter()
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax
  }
}
