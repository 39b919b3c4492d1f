/**
 * remember - values made of an id, kept while they are asked for: names and references that every message needs again.
 *
 * A name made anew for each message is a new text each time, which every table that it is looked up in has to read
 * whole before it can say that it knows it. What is remembered is the same text, and known at once.
 *
 * Guarantees: what is made follows from the id alone, so it makes no difference whether it was remembered. Bounded: two
 * generations; what is asked for again becomes young, and when there are enough young ones the old are forgotten.
 */

const YOUNG_MAX = 2_048
/** Places for what is asked for shortly; a power of two, and more than all batches of a process hold at once. */
const PLACES = 1_024
/** Characters at the end of an id that its place follows from. */
const PLACED_BY = 12

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

/**
 * `make`, whose values are remembered shortly: for ids of which each is asked for some times in a row and never again.
 * One that comes to the same place takes it, and nothing is kept in order.
 */
export function rememberShortly<Value>(make: (id: string) => Value): (id: string) => Value {
  const known: ({ readonly id: string; readonly value: Value } | undefined)[] = Array.from({ length: PLACES })
  return function remembered(id) {
    const place = placeOf(id)
    const before = known[place]
    if (before !== undefined && before.id === id) return before.value
    const value = make(id)
    known[place] = { id, value }
    return value
  }
}

function placeOf(id: string): number {
  let hash = 0
  for (let at = Math.max(0, id.length - PLACED_BY); at < id.length; at += 1) hash = (hash * 31 + id.charCodeAt(at)) | 0
  return hash & (PLACES - 1)
}
