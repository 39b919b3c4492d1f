/**
 * raw-rows - rows of one shard, read and written beside its owner
 *
 * Only for rows that no state holds and no turn reads, such as the keys of operators: state of actors is written by
 * its shard's owner alone.
 */

import type { Op } from '../../cluster/behaviour.ts'
import { metaKey } from '../../cluster/keyspace.ts'
import { MOVE_PREFIX } from '../../cluster/store.ts'
import type { Nodes } from './nodes.ts'

/** The store's clock, milliseconds. Rejects when it does not answer. */
export async function readTimeMs(nodes: Nodes, shard: number): Promise<number> {
  const [seconds, micros] = await nodes.nodeOf(shard).time()
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** A whole hash, empty if missing. Rejects if the store does not answer. */
export function readRow(nodes: Nodes, shard: number, key: string): Promise<Record<string, string>> {
  return nodes.nodeOf(shard).hgetall(key)
}

/** KEYS: meta, then one for each row. ARGV: for each row the command, the number of its arguments, and these. */
const WRITE = `#!lua
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and string.sub(owner, 1, ${MOVE_PREFIX.length}) == '${MOVE_PREFIX}' then
  return redis.error_reply('MOVING the shard is on its way to another Redis')
end
local at = 1
for i = 2, #KEYS do
  local count = tonumber(ARGV[at + 1])
  redis.call(ARGV[at], KEYS[i], unpack(ARGV, at + 2, at + 1 + count))
  at = at + 2 + count
end
return 1
`

/**
 * Writes all rows in one step. Throws Error, with `name`, if the store refuses it, as while the shard is moved to
 * another Redis.
 */
export async function writeRows(
  nodes: Nodes,
  shard: number,
  { name, ops }: { readonly name: string; readonly ops: readonly Op[] },
): Promise<void> {
  const keys = [metaKey(shard), ...ops.map(({ key }) => key)]
  const args = ops.flatMap(({ write, args }) => [write, String(args.length), ...(args as string[])])
  await nodes
    .nodeOf(shard)
    .eval(WRITE, keys.length, ...keys, ...args)
    .catch(({ message }: Error) => {
      throw new Error(`The store refused the ${name}: ${message}`)
    })
}
