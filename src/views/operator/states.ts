/**
 * states - the last states of an entity, as its stream holds them
 *
 * Hashes of keys and sealed secrets are not shown.
 *
 * Keys: `<kind>:<id>`, each entry with the fields `ev st v by`
 *
 * Spec operator.entity
 */

import type { Entry, FactOf } from '../../../cluster/behaviour.ts'
import { shardOf } from '../../../cluster/id.ts'
import { entityKey } from '../../../cluster/keyspace.ts'
import { withoutSum } from '../../../cluster/sum.ts'
import type { Entity } from '../../../schemas/operator/cluster.ts'
import type { Reader } from '../key.ts'
import { readCommand } from '../read-command.ts'

/** States that are shown; the stream keeps about as many. */
const STATES_MAX = 16
const HIDDEN: ReadonlySet<string> = new Set(['hash', 'sealed'])

/** The last states of an entity, newest first. */
export async function readStates(
  read: Reader,
  { kind, id }: { readonly kind: string; readonly id: string },
): Promise<Entity | 'not_found' | 'unavailable'> {
  const shard = shardOf(id)
  if (shard === null) return 'not_found'
  const key = entityKey(shard, kind, id)
  const fact: FactOf<'newest'> = { read: 'newest', key, from: '-', to: '+', count: STATES_MAX }
  const seen = await read(shard, [fact])
  if (seen === null) return 'unavailable'
  const entries = seen[0]
  return entries.length === 0
    ? 'not_found'
    : { kind, id, shard, reads: [readCommand(fact)], states: entries.map(formatEntry) }
}

function formatEntry({ id, fields }: Entry): Entity['states'][number] {
  const of = (name: string) => fields[fields.indexOf(name) + 1] ?? ''
  return {
    entry: id,
    command: of('by'),
    version: Number(of('v')),
    events: shown(of('ev')) as unknown[],
    state: shown(withoutSum(of('st'), 'state')) as Record<string, unknown> | null,
  }
}

function shown(json: string): unknown {
  return JSON.parse(json, (name, value) => (HIDDEN.has(name) ? undefined : value))
}
