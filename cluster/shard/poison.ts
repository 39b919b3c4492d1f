/**
 * poison - the record of a command whose behaviour threw: the fact itself, for people, and for a day its content
 *
 * Its content may be personal data: `{s017}:unborne:<day>` names each such command, so that it can be found and
 * removed.
 */

import type { Op } from '../behaviour.ts'
import { poisonOp } from '../items/item-turns.ts'
import { poisonKey, stagedKey, unborneKey } from '../keyspace.ts'

/** Poison keeps about this many commits' worth of entries. */
const POISON_KEPT = 10_000
/** The content of a command is kept this long. */
const SAID_MS = 86_400_000

/** The writes that show a command or item whose behaviour threw. Takes the seq of the last commit. */
export function threwOps(shard: number, { name, id, seq }: { name: string; id: string; seq: number }): Op[] {
  const kept = `${Math.max(0, seq - POISON_KEPT)}-0`
  return [
    poisonOp(shard, { name, id, reason: 'threw' }),
    { key: poisonKey(shard), write: 'XTRIM', args: ['MINID', kept] },
  ]
}

/** The writes that keep the content of a command. Takes the content, packed; null if it is stored already. */
export function keepSaidOps(
  shard: number,
  cmdId: string,
  { nowMs, said }: { readonly nowMs: number; readonly said: Uint8Array | null },
): Op[] {
  const key = stagedKey(shard, cmdId)
  const until = String(nowMs + SAID_MS)
  const day = unborneKey(shard, Math.floor(nowMs / SAID_MS))
  return [
    said === null ? { key, write: 'PEXPIREAT', args: [until] } : { key, write: 'SET', args: [said, 'PXAT', until] },
    { key: day, write: 'ZADD', args: [until, cmdId] },
    { key: day, write: 'PEXPIREAT', args: [String(nowMs + 2 * SAID_MS)] },
  ]
}
