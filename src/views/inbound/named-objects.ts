/**
 * named-objects - the objects of the content store that rows of received mail name, which the sweep must keep
 *
 * The name of an object determines the head rows that may name it. Each of these rows is read once for a page of
 * names.
 *
 * Key: `received-head:<server>:<day>:<n>`
 *
 * Spec retention.inbound
 */

import type { Fact } from '../../../cluster/behaviour.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { receivedHeadKey } from '../../state/keys.ts'
import { unpackContentHead } from '../../state/received/content-head.ts'
import { rowOfObject } from '../../state/received/object.ts'
import type { Reader } from '../key.ts'

/**
 * The subset of `names` that a row names; null if the store did not answer. An object whose name is not that of
 * received mail counts as named, because this sweep must not remove it, and so do all objects that a damaged row may
 * name.
 */
export async function readNamedObjects(
  read: Reader,
  shard: number,
  names: readonly string[],
): Promise<ReadonlySet<string> | null> {
  const named = new Set(names.filter((name) => rowOfObject(name) === null))
  for (const [key, objects] of soughtRows(shard, names)) {
    const fact: Fact = { read: 'hash', key }
    const seen = await read(shard, [fact])
    if (seen === null) return null
    const ids = new Set([...seen[0].values()].flatMap((packed) => idsIn(packed, [...objects.keys()])))
    for (const [id, name] of objects) if (ids.has(id)) named.add(name)
  }
  return named
}

/** The ids of objects that a row names; a damaged row may name any of those sought. */
function idsIn(packed: string, sought: readonly string[]): readonly string[] {
  const head = unlessDamaged(() => unpackContentHead(packed))
  return head === null ? sought : [head.objectId, head.parsedId].filter((id) => id !== null)
}

/** The names by the key that may name them, then by the object's id. */
function soughtRows(shard: number, names: readonly string[]): Map<string, Map<string, string>> {
  const sought = new Map<string, Map<string, string>>()
  for (const name of names) {
    const row = rowOfObject(name)
    for (const slice of row?.slices ?? []) {
      const key = receivedHeadKey(shard, row?.serverId ?? '', slice)
      const objects = sought.get(key) ?? new Map<string, string>()
      sought.set(key, objects.set(row?.objectId ?? '', name))
    }
  }
  return sought
}
