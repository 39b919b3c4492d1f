/** byte-gate - lets in what fits of a number of bytes, in order; something larger than all of it comes in alone. */

/** A gate of so many bytes. */
export class ByteGate {
  readonly #bytesMax: number
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = []
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Runs what needs so many bytes, once there is room for them. */
  async hold<Result>(bytes: number, run: () => Promise<Result>): Promise<Result> {
    await this.#enter(bytes)
    try {
      return await run()
    } finally {
      this.#leave(bytes)
    }
  }

  async #enter(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#bytes += bytes
      return
    }
    await new Promise<void>((enter) => this.#waiting.push({ bytes, enter }))
  }

  #leave(bytes: number): void {
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
