/**
 * remember - values made of an id, kept while they are asked for: names and references that every message needs again.
 *
 * A name made anew for each message is a new text each time, which every table that it is looked up in has to read whole
 * before it can say that it knows it. What is remembered is the same text, and known at once.
 *
 * Guarantees: what is made follows from the id alone, so it makes no difference whether it was remembered. Bounded: two
 * generations; what is asked for again becomes young, and when there are enough young ones the old are forgotten.
 */

const YOUNG_MAX = 2_048

/** `make`, of which the last few thousand values are remembered. */
export function remember<Value>(make: (id: string) => Value): (id: string) => Value {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  // What one message asks for, it asks for several times in a row.
  let last: { readonly id: string; readonly value: Value } | null = null

  function look(id: string): Value {
    const known = young.get(id)
    if (known !== undefined) return known
    const value = old.get(id) ?? make(id)
    if (young.size >= YOUNG_MAX) {
      old = young
      young = new Map()
    }
    young.set(id, value)
    return value
  }

  return function remembered(id) {
    if (last === null || last.id !== id) last = { id, value: look(id) }
    return last.value
  }
}
