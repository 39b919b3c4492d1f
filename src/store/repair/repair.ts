/**
 * repair - brings journal and sequence number of a torn shard together, so that it runs again
 *
 * A commit writes its journal entry first and the sequence number last. If the two disagree, a script of the store was
 * interrupted half way: its writes are partly applied, and cannot be undone. The repair accepts the state of the store:
 * the later number is used, the shard gets no owner, and the next owner reads everything again. A person has to check
 * the data of the interrupted commit.
 *
 * Guarantees: an intact shard is not changed, nor one that is being moved to another Redis; an owner that still holds
 * the shard is fenced.
 *
 * Keys: `meta`, `journal` of the shard
 *
 * Spec operator.repair
 */

import { newCmdId } from '../../../cluster/cmd-id.ts'
import { journalKey, metaKey } from '../../../cluster/keyspace.ts'
import { MOVE_PREFIX } from '../../../cluster/store.ts'
import type { Config } from '../../process/config.ts'
import type { Nodes } from '../nodes.ts'
import { withStore } from '../with-store.ts'
import { checkValues, type ValuesFound } from './check-values.ts'

/** Journal entries that are shown. */
const ENTRIES_SHOWN = 5

/** Both sides of a shard. */
export interface ShardSides {
  readonly shard: number
  readonly isTorn: boolean
  readonly meta: { readonly owner: string; readonly seq: number; readonly commit: string }
  /** Newest first. */
  readonly journal: readonly { readonly seq: number; readonly commit: string; readonly counts: string }[]
}

const REPAIR_SCRIPT = `#!lua flags=allow-oom
local meta = redis.call('HMGET', KEYS[1], 'tok', 'seq', 'last', 'owner')
if string.sub(meta[4] or '', 1, ${MOVE_PREFIX.length}) == '${MOVE_PREFIX}' then return 'moving' end
local top = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local seq, topSeq = tonumber(meta[2] or '0'), 0
if top then topSeq = tonumber(string.match(top[1], '^%d+')) end
if seq == topSeq then return 'whole' end
if topSeq < seq then redis.call('XADD', KEYS[2], string.format('%.0f-0', seq), 'c', meta[3] or '', 'n', '0')
else redis.call('HSET', KEYS[1], 'seq', string.format('%.0f', topSeq), 'last', top[2][2]) end
local epoch = tonumber(string.match(meta[1] or '0', '^%d+') or '0') + 1
redis.call('HSET', KEYS[1], 'owner', '', 'tok', string.format('%.0f', epoch) .. ':' .. ARGV[1])
return 'repaired'
`

/** Reads both sides of a shard, and compares its stored values with their sums. */
export function readSides(config: Config, shard: number): Promise<{ sides: ShardSides; values: ValuesFound }> {
  return withStore(config, async (nodes) => {
    return { sides: await askSides(nodes, shard), values: await checkValues(nodes, shard) }
  })
}

/** Repairs a shard; out: both sides as they are then, and whether anything was done. */
export function repairShard(config: Config, shard: number): Promise<{ isRepaired: boolean; sides: ShardSides }> {
  return withStore(config, async (nodes) => {
    const nonce = newCmdId(Date.now(), Math.random)
    const answer = await nodes.nodeOf(shard).eval(REPAIR_SCRIPT, 2, metaKey(shard), journalKey(shard), nonce)
    if (answer === 'moving') throw new Error(`Shard ${shard} is being moved to another Redis: finish the move first`)
    return { isRepaired: answer === 'repaired', sides: await askSides(nodes, shard) }
  })
}

export async function askSides(nodes: Nodes, shard: number): Promise<ShardSides> {
  const redis = nodes.nodeOf(shard)
  const [owner, seq, commit] = await redis.hmget(metaKey(shard), 'owner', 'seq', 'last')
  const entries = await redis.xrevrange(journalKey(shard), '+', '-', 'COUNT', ENTRIES_SHOWN)
  const journal = entries.map(([id, fields]) => {
    const of = (name: string) => fields[fields.indexOf(name) + 1] ?? ''
    return { seq: Number(id.split('-')[0]), commit: of('c'), counts: of('n') }
  })
  const meta = { owner: owner ?? '', seq: Number(seq ?? 0), commit: commit ?? '' }
  return { shard, isTorn: meta.seq !== (journal[0]?.seq ?? 0), meta, journal }
}
