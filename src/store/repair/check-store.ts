/**
 * check-store - everything in the store that has a sum or a counterpart, compared: `sendwright doctor --deep`
 *
 * Spec operator.health
 */

import { readAofFiles } from '../../../cluster/embedded/aof-files.ts'
import { compareSums } from '../../../cluster/embedded/aof-sums.ts'
import { SHARDS } from '../../../cluster/id.ts'
import { type Config, isOwnStore } from '../../process/config.ts'
import { withStore } from '../with-store.ts'
import { checkObjects, type ObjectsFound } from './check-objects.ts'
import { checkValues, type ValuesFound } from './check-values.ts'
import { withObjects } from './open-objects.ts'
import { askSides } from './repair.ts'

/** What was compared, and what differs. */
export interface StoreFound {
  readonly values: ValuesFound
  /** Append-only files of the embedded Redis; empty for a Redis of another machine. */
  readonly files: readonly { readonly path: string; readonly bytes: number; readonly damagedBlocks: number }[]
  /** Shards whose journal and sequence number differ while no commit is made. */
  readonly tornShards: readonly number[]
  /** Segments of the log and packs of bodies in the content store; null if all content is in Redis. */
  readonly objects: ObjectsFound | null
}

/** Compares all of it. Throws Error, a sentence, if there is no store. */
export function checkStore(config: Config): Promise<StoreFound> {
  return withStore(config, async (nodes) => {
    const tornShards: number[] = []
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const isTorn = async () => (await askSides(nodes, shard)).isTorn
      // A commit between the two reads looks the same, but not twice.
      if ((await isTorn()) && (await isTorn()) && (await isTorn())) tornShards.push(shard)
    }
    const objects = await withObjects(nodes, config, checkObjects)
    return { values: await checkValues(nodes), files: await checkFiles(config), tornShards, objects }
  })
}

async function checkFiles(config: Config): Promise<StoreFound['files']> {
  if (!isOwnStore(config)) return []
  const found = await compareSums(config.dataDir, readAofFiles(config.dataDir)?.named ?? [])
  return found.map(({ path, bytes, damaged }) => ({ path, bytes, damagedBlocks: damaged.length }))
}
