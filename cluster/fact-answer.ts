/** fact-answer - what the read script answers, as the values that facts have. */
import type { Entry, Fact, FactValue } from './behaviour.ts'

/**
 * The values of `facts` from the replies of their commands, of which each fact has `pieces` (fact by fact, in order).
 * Replies are lists of texts and nulls, as the store sends them.
 */
export function factValues(
  facts: readonly Fact[],
  pieces: readonly number[],
  replies: readonly unknown[],
): FactValue[] {
  let next = 0
  return facts.map((fact, index) => {
    const count = pieces[index] ?? 0
    const value = factValue(fact, count === 1 ? replies[next] : joined(replies, next, count))
    next += count
    return value
  })
}

function factValue(fact: Fact, reply: unknown): FactValue {
  switch (fact.read) {
    case 'fields':
      return reply as (string | null)[]
    case 'hash':
      return pairs(reply as string[])
    case 'range':
    case 'last':
      return entries(reply)
    case 'sorted':
      return scores((reply ?? []) as string[])
    case 'score':
      return reply === null ? null : Number(reply)
    case 'value':
      return reply as string | null
  }
}

function joined(replies: readonly unknown[], from: number, count: number): unknown[] {
  return replies.slice(from, from + count).flat()
}

function pairs(flat: readonly string[]): ReadonlyMap<string, string> {
  const map = new Map<string, string>()
  for (let i = 0; i < flat.length; i += 2) map.set(flat[i]!, flat[i + 1]!)
  return map
}

/** Entries of XRANGE; the store answers null instead of an empty list in places. */
function entries(reply: unknown): Entry[] {
  return ((reply ?? []) as [string, string[]][]).map(([id, fields]) => ({ id, fields }))
}

function scores(flat: readonly string[]): [string, number][] {
  const list: [string, number][] = []
  for (let i = 0; i < flat.length; i += 2) list.push([flat[i]!, scoreOf(flat[i + 1]!)])
  return list
}

/** Redis writes infinities as `inf`. */
function scoreOf(text: string): number {
  if (text === 'inf') return Number.POSITIVE_INFINITY
  return text === '-inf' ? Number.NEGATIVE_INFINITY : Number(text)
}
