/**
 * entity - the committed state of an entity as its stream's last entry holds it
 *
 * Keys: `<kind>:<id>`, each entry with the fields `ev st v by`.
 */

import type { Entry, FactOf, Ref } from '../../cluster/behaviour.ts'
import { countersKey, entityKey } from '../../cluster/keyspace.ts'
import { withoutSum } from '../../cluster/sum.ts'

/** Why a read is refused: either the key is not live, or the store did not answer. */
export type Unseen = 'unauthorized' | 'unavailable'

/** The fact that holds an entity's state. */
export function entityFact(shard: number, { kind, id }: Ref): FactOf<'last'> {
  return { read: 'last', key: entityKey(shard, kind, id) }
}

/** The state in the result of `entityFact`; null if the entity does not exist. */
export function parseState<State>(value: readonly Entry[] | undefined): State | null {
  const fields = value?.[0]?.fields
  const at = fields?.indexOf('st') ?? -1
  return fields === undefined || at < 0 ? null : (JSON.parse(withoutSum(fields[at + 1] as string, 'state')) as State)
}

/** The fact that holds the counters of owners. */
export function countersFact(shard: number, owners: readonly string[]): FactOf<'fields'> {
  return { read: 'fields', key: countersKey(shard), fields: owners }
}

/** The counters in the result of `countersFact`, in the order of the owners; null for an owner without one. */
export function parseCounters<Counter>(values: readonly (string | null)[] | undefined): readonly (Counter | null)[] {
  return (values ?? []).map((text) => (text === null ? null : (JSON.parse(withoutSum(text, 'counters')) as Counter)))
}
