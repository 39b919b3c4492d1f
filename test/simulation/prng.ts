/** prng - a seeded random generator: the same seed gives the same numbers. */

export interface Chance {
  /** A number in [0, 1). */
  next(): number
  /** An integer in [0, n). */
  below(n: number): number
  /** Whether something of probability `p` happens. */
  hit(p: number): boolean
  /** One of a list that is not empty. */
  pick<Value>(list: readonly Value[]): Value
}

/** mulberry32 from a seed of 32 bits. */
export function makeChance(seed: number): Chance {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    below: (n) => Math.floor(next() * n),
    hit: (p) => next() < p,
    pick: (list) => list[Math.floor(next() * list.length)]!,
  }
}
