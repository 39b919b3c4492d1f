/**
 * memoize - caches values derived from an id while they are in use, such as names and references that every message
 * needs.
 *
 * A name built for each message is a new string each time, which every table has to hash completely for a lookup. A
 * cached name is the same string, and found at once.
 *
 * Guarantees: a value depends only on the id, so caching makes no difference. The cache is bounded by two generations:
 * requested values become young, and when there are enough young ones, the old ones are dropped.
 */

const YOUNG_MAX = 2_048
/** Slots for short-lived values; a power of two, and more than all batches of a process use at once. */
const PLACES = 1_024
/** Characters at the end of an id that its place follows from. */
const PLACED_BY = 12

/** `make`, with the last few thousand values cached. */
export function memoize<Value>(make: (id: string) => Value): (id: string) => Value {
  let young = new Map<string, Value>()
  let old = new Map<string, Value>()
  // A message requests the same value several times in a row.
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
 * `make`, with values cached briefly, for ids that are requested several times in a row and never again. A value with
 * the same slot replaces the old one; no order is kept.
 */
export function memoizeShortly<Value>(make: (id: string) => Value): (id: string) => Value {
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
