/**
 * named-objects - which objects of the content store a row of received mail names: what the sweep must leave alone
 *
 * An object's name says in which head rows it would be named. Each of these is read once for a page of names.
 *
 * Key: `received-head:<server>:<day>:<n>`
 *
 * Spec retention.inbound
 */

import type { Fact } from '../../../cluster/behaviour.ts'
import { receivedHeadKey } from '../../state/keys.ts'
import { unpackContentHead } from '../../state/received/content-head.ts'
import { rowOfObject } from '../../state/received/object.ts'
import type { Reader } from '../key.ts'

/**
 * The names among `names` that some row names; null: the store did not answer. What is no name of received mail counts
 * as named: it is not ours to take away.
 */
export async function readNamedObjects(
  read: Reader,
  shard: number,
  names: readonly string[],
): Promise<ReadonlySet<string> | null> {
  const named = new Set<string>()
  const sought = new Map<string, Map<string, string>>()
  for (const name of names) {
    const row = rowOfObject(name)
    if (row === null) named.add(name)
    for (const slice of row?.slices ?? []) {
      const key = receivedHeadKey(shard, row?.serverId ?? '', slice)
      const objects = sought.get(key) ?? new Map<string, string>()
      sought.set(key, objects.set(row?.objectId ?? '', name))
    }
  }
  for (const [key, objects] of sought) {
    const fact: Fact = { read: 'hash', key }
    const seen = await read(shard, [fact])
    if (seen === null) return null
    for (const packed of seen[0].values()) {
      const { objectId, parsedId } = unpackContentHead(packed)
      for (const id of [objectId, parsedId]) {
        const name = id === null ? undefined : objects.get(id)
        if (name !== undefined) named.add(name)
      }
    }
  }
  return named
}
