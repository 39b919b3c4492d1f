/** state-loader - reads the entities and counters that a batch names and the memory does not hold. */
import type { Fact, FactValue, Ref } from '../behaviour.ts'
import { Fault } from '../fault.ts'
import { countersKey, entityKey } from '../keyspace.ts'
import { DamagedValue, withoutSum } from '../sum.ts'
import type { EntityTable, Memory } from './memory.ts'

export interface StateAsk {
  readonly entities?: readonly Ref[]
  readonly counters?: readonly string[]
}

interface Target {
  readonly shard: number
  readonly memory: Memory
  readonly types: EntityTable
}

/**
 * The reads that bring what `asks` name into memory, and a function that takes the answers; null if everything is in
 * memory.
 */
export function statesToLoad(
  asks: readonly StateAsk[],
  { shard, memory, types }: Target,
): { facts: readonly Fact[]; take: (values: readonly FactValue[], nowMs: number) => void } | null {
  if (asks.every((ask) => isLoaded(ask, memory))) return null
  const refs = new Map<string, Ref>()
  const owners = new Set<string>()
  for (const { entities, counters } of asks) {
    for (const ref of entities ?? []) if (!memory.hasEntity(ref)) refs.set(`${ref.kind}:${ref.id}`, ref)
    for (const owner of counters ?? []) if (!memory.hasCounter(owner)) owners.add(owner)
  }
  if (refs.size === 0 && owners.size === 0) return null
  const facts: Fact[] = [...refs.values()].map(({ kind, id }) => ({ read: 'last', key: entityKey(shard, kind, id) }))
  if (owners.size > 0) facts.push({ read: 'fields', key: countersKey(shard), fields: [...owners] })
  const take = (values: readonly FactValue[], nowMs: number): void => {
    const list = [...refs.values()]
    list.forEach((ref, index) => {
      memory.loadEntity(ref, parseState(ref, values[index] as readonly Entryish[], types), nowMs)
    })
    const counters = values[list.length] as readonly (string | null)[] | undefined
    ;[...owners].forEach((owner, index) => {
      const packed = counters?.[index] ?? null
      memory.loadCounter(owner, packed === null ? null : parsed(packed), nowMs)
    })
  }
  return { facts, take }
}

/** Whether all that an ask names is in memory. */
export function isLoaded({ entities, counters }: StateAsk, memory: Memory): boolean {
  for (const ref of entities ?? []) if (!memory.hasEntity(ref)) return false
  for (const owner of counters ?? []) if (!memory.hasCounter(owner)) return false
  return true
}

type Entryish = { readonly fields: readonly string[] }

function parseState(ref: Ref, entries: readonly Entryish[], types: EntityTable): unknown {
  const type = types.get(ref.kind)
  if (type === undefined) return new Fault('Unknown kind of entity', { kind: ref.kind })
  const entry = entries[0]
  if (entry === undefined) return type.empty
  const version = Number(fieldOf(entry, 'v'))
  if (version !== type.version) return new Fault('Entity was written by another version', { kind: ref.kind, version })
  return parsed(fieldOf(entry, 'st'))
}

/**
 * The unpacked value. An unreadable one is a Fault, so that the commands that need it fail and the shard continues.
 */
function parsed(packed: string): unknown {
  try {
    return JSON.parse(withoutSum(packed, 'state'))
  } catch (error) {
    return error instanceof DamagedValue ? error : new Fault('A state is not JSON')
  }
}

function fieldOf({ fields }: Entryish, name: string): string {
  return fields[fields.indexOf(name) + 1] ?? ''
}
