/**
 * living-roles - what the processes of a cluster run, as their records in the store say
 *
 * Key: `{cl}:workers`
 */

import { WORKERS_KEY } from '../../cluster/keyspace.ts'
import type { WorkerRecord } from '../../cluster/store.ts'
import type { Nodes } from './nodes.ts'

/** Names of what is run. In: ids of the workers that live. Throws what the store throws. */
export async function readLivingRoles(nodes: Nodes, living: readonly string[]): Promise<ReadonlySet<string>> {
  const texts = await nodes.common().hmget(WORKERS_KEY, ...living)
  const records = texts.flatMap((text) => (text === null ? [] : [JSON.parse(text) as WorkerRecord]))
  return new Set(records.flatMap(({ roles }) => roles))
}
