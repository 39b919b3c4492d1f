/**
 * content-sweep - the sweep of the content store, for the shards of this process
 *
 * Spec retention.content, retention.inbound
 */

import type { Worker } from '../../cluster/worker/worker.ts'
import { sweepContents } from '../content/sweep.ts'
import { readNamedObjects } from '../views/inbound/named-objects.ts'
import { makeReader } from '../views/key.ts'
import type { Parts } from './parts.ts'

/** Makes the sweep; null if there is nothing to sweep. */
export function makeSweep(
  { config, contents, store }: Pick<Parts, 'config' | 'contents' | 'store'>,
  worker: Worker,
): (() => Promise<number>) | null {
  if (contents === null || !config.roles.includes('actors')) return null
  const read = makeReader(store)
  let sweptAtMs = 0
  return async () => {
    const startedAtMs = worker.nowMs()
    const objects = await sweepContents({
      contents,
      nowMs: () => worker.nowMs(),
      shards: () => worker.owned,
      isLiving: (id) => worker.livingWorkers.includes(id),
      namedOf: (shard, names) => readNamedObjects(read, shard, names),
      sweptAtMs: () => sweptAtMs,
    })
    sweptAtMs = startedAtMs
    return objects
  }
}
