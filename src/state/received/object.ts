/**
 * object - the names of a received mail's objects, and which rows may name them.
 *
 * An object's id begins with the time at which the mail arrived. Its day is derived from the id, and so are the rows
 * that may name it: those of that time's slice and of the neighbouring ones, because a mail takes time to arrive. The
 * name includes the server, so that an object leads to its rows without an index.
 */

import { msOfCmdId } from '../../../cluster/cmd-id.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import { parseObjectName, receivedName } from '../object-name.ts'
import { HEAD_SLICE_MS, headSlice } from './content-head.ts'

const SHORT_CHARS = 22

/** The name of an object of a server's received mail. */
export function receivedObjectName(shard: number, serverId: string, objectId: string): string {
  return receivedName(shard, { id: `${shortId(serverId)}-${objectId}`, receivedAtMs: msOfCmdId(objectId) })
}

/** Where an object's row is looked for. */
export interface SoughtRow {
  readonly serverId: string
  readonly objectId: string
  readonly slices: readonly string[]
}

/** The place of the row that would name an object; null if the name is not of a received mail. */
export function rowOfObject(name: string): SoughtRow | null {
  const named = parseObjectName(name)
  if (named === null || named.tree !== 'in' || named.leaf[SHORT_CHARS] !== '-') return null
  const objectId = named.leaf.slice(SHORT_CHARS + 1)
  const ms = msOfCmdId(objectId)
  if (!Number.isSafeInteger(ms)) return null
  const slices = [ms - HEAD_SLICE_MS, ms, ms + HEAD_SLICE_MS].map(headSlice)
  return { serverId: idOfShort(named.leaf.slice(0, SHORT_CHARS)), objectId, slices }
}
