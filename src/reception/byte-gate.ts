/**
 * byte-gate - admits works in order while their bytes fit into a fixed amount of memory, and gives them that memory; a
 * larger work runs alone.
 */

import { RawMemory } from './raw-memory.ts'

/** Gives memory that threads share; it is taken back once the work that was let in has ended. */
export type TakeMemory = (bytes: number) => Uint8Array

/** A gate of so many bytes. */
export class ByteGate {
  readonly #bytesMax: number
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = []
  readonly #memory: RawMemory
  #bytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
    this.#memory = new RawMemory(bytesMax)
  }

  /**
   * Runs a work with this many bytes, once there is room for them. When it ends, its memory must not be read any
   * longer.
   */
  async hold<Result>(bytes: number, run: (take: TakeMemory) => Promise<Result>): Promise<Result> {
    await this.#enter(bytes)
    const taken: Uint8Array[] = []
    const take: TakeMemory = (size) => {
      const memory = this.#memory.take(size)
      taken.push(memory)
      return memory
    }
    try {
      return await run(take)
    } finally {
      for (const memory of taken) this.#memory.giveBack(memory)
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
