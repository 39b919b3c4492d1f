/** world-reader - reads of views over a key space in memory, answered as a store would. */

import type { Entry, FactValue, ViewFact } from '../../../cluster/behaviour.ts'
import { makeReader, type Reader } from '../../../src/views/key.ts'
import type { World } from './turn.ts'

/** Reads a world; `reads` counts how often, `entries` how many stream entries were answered. */
export function readerOf(world: World): { read: Reader; reads: number; entries: number } {
  const seen = { read: makeReader({ read }), reads: 0, entries: 0 }
  async function read(_shard: number, facts: readonly ViewFact[]): Promise<readonly FactValue[]> {
    seen.reads += 1
    return facts.map((fact) => {
      const value = answer(world, fact)
      if (fact.read === 'newest' || fact.read === 'range') seen.entries += (value as readonly Entry[]).length
      return value
    })
  }
  return seen
}

function answer(world: World, fact: ViewFact): FactValue {
  const { key } = fact
  switch (fact.read) {
    case 'fields':
      return fact.fields.map((field) => world.hash(key).get(field) ?? null)
    case 'hash':
      return world.hash(key)
    case 'range':
      return world.range(key, fact.from, fact.to).slice(0, fact.count)
    case 'newest':
      return world.range(key, fact.from, fact.to).toReversed().slice(0, fact.count)
    case 'last': {
      // An entity's key is its name after the shard's tag.
      const state = world.states.get(key.slice(key.indexOf(':') + 1))
      return state === undefined ? [] : [{ id: '1-0', fields: ['st', JSON.stringify(state)] }]
    }
    case 'sorted': {
      const inside = [...world.sorted(key)]
        .filter(([, score]) => score >= fact.min && score <= fact.max)
        .sort((one, other) => one[1] - other[1] || (one[0] < other[0] ? -1 : 1))
      return (fact.newest ? inside.reverse() : inside).slice(0, fact.count)
    }
    case 'score':
      return world.sorted(key).get(fact.member) ?? null
    case 'value':
      return world.string(key) as string | null
  }
}
