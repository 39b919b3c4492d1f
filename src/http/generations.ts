/**
 * generations - a bounded memory of what is asked for again: the young, and those before them, which go all at once
 *
 * What is found among the old becomes young again, so what is in use stays; nothing is moved for each use, as it would
 * be where the one used least is looked for.
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

  /** Whether nothing is remembered. */
  get isEmpty(): boolean {
    return this.#young.size === 0 && this.#old.size === 0
  }
}
