/**
 * generations - a bounded cache with two generations: the young, and the old, which are dropped at once
 *
 * A value found among the old becomes young again, so values in use are kept. Unlike in an LRU cache, a use moves
 * nothing.
 */

/** At most twice `youngMax` values. */
export class Generations<Value> {
  readonly #youngMax: number
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()

  constructor(youngMax: number) {
    this.#youngMax = youngMax
  }

  get(id: string): Value | undefined {
    const known = this.#young.get(id)
    if (known !== undefined || this.#old.size === 0) return known
    const older = this.#old.get(id)
    if (older !== undefined) this.set(id, older)
    return older
  }

  set(id: string, value: Value): void {
    if (this.#young.size >= this.#youngMax) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(id, value)
  }

  delete(id: string): void {
    this.#young.delete(id)
    this.#old.delete(id)
  }

  clear(): void {
    this.#young = new Map()
    this.#old = new Map()
  }

  /** Whether the cache is empty. */
  get isEmpty(): boolean {
    return this.#young.size === 0 && this.#old.size === 0
  }
}
