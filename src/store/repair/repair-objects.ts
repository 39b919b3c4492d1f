/**
 * repair-objects - repairs segments of the log and their objects: `sendwright repair objects`
 *
 * A missing or broken object returns from the content of a backup, if it has the same one. With an order to write
 * them off, the rows of the others state the loss: their messages are refused as damaged, and erasure and retention
 * continue. A filter is built again, a segment that stayed frozen thaws, and objects and rows that nothing names are
 * removed.
 *
 * Guarantees: a row is changed only if it is the one that was read, together with its owner's token, so that the next
 * owner reads it again; an object replaces another one only after all of it was opened.
 *
 * Keys: `sealed:<server>`, `sealed-persons:<server>:<segment>`, keys of segments that have no row, `meta`
 *
 * Spec operator.repair
 */

import { join, resolve } from 'node:path'
import { newCmdId } from '../../../cluster/cmd-id.ts'
import { metaKey } from '../../../cluster/keyspace.ts'
import { MOVE_PREFIX } from '../../../cluster/store.ts'
import { makeContents } from '../../content/contents.ts'
import { makeFileHome } from '../../content/files.ts'
import { SealedSegments } from '../../content/sealed/segment.ts'
import { openSegmentWhole } from '../../content/sealed/whole.ts'
import { monotonicMs } from '../../process/fence.ts'
import { sealedKey, sealedPersonsKey } from '../../state/keys.ts'
import { unpackLogEntry } from '../../state/message/log-entry.ts'
import { makeFilter } from '../../state/message/person-filter.ts'
import { packSealed, type SealedRow, segmentGoneAtMs, unpackSealed, writtenOffRow } from '../../state/message/sealed.ts'
import { allSegmentKeys, isTestSegment } from '../../state/segment.ts'
import type { ObjectFault, SegmentPlace } from './check-objects.ts'
import type { OpenObjects } from './open-objects.ts'

export interface RepairOrder {
  /** A backup, or a copy of the bucket below its prefix, whose folder `content` has objects; null for none. */
  readonly from: string | null
  /** Whether rows of segments that stay unreadable are to state the loss. */
  readonly writesOff: boolean
}

/** What was done about a fault. `left`: nothing. */
export type Repaired = 'restored' | 'written-off' | 'thawed' | 'rebuilt' | 'removed' | 'left'

type FaultOf<Kind extends ObjectFault['kind']> = Extract<ObjectFault, { kind: Kind }>

/** KEYS: meta, sealed. ARGV: segment, the row as it was read, the new one or '' for none, nonce of the token. */
const CHANGE_ROW = `#!lua
local meta = redis.call('HMGET', KEYS[1], 'tok', 'owner')
if string.sub(meta[2] or '', 1, ${MOVE_PREFIX.length}) == '${MOVE_PREFIX}' then return 'moving' end
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return 'changed' end
if ARGV[3] == '' then redis.call('HDEL', KEYS[2], ARGV[1]) else redis.call('HSET', KEYS[2], ARGV[1], ARGV[3]) end
local epoch = tonumber(string.match(meta[1] or '0', '^%d+') or '0') + 1
redis.call('HSET', KEYS[1], 'owner', '', 'tok', string.format('%.0f', epoch) .. ':' .. ARGV[4])
return 'done'
`

/** Repairs one fault. Rejects if a store does not answer. */
export function repairFault(open: OpenObjects, fault: ObjectFault, order: RepairOrder): Promise<Repaired> {
  switch (fault.kind) {
    case 'segment':
      return repairSegment(open, fault, order)
    case 'pack':
      return restorePack(open, fault, order)
    case 'frozen':
      return changeRow(open, fault, { before: fault.row, after: '' }).then((done) => (done ? 'thawed' : 'left'))
    case 'filter':
      return rebuildFilter(open, fault)
    case 'recalled':
      return removeRows(open, fault)
    case 'unnamed':
      return open.contents.remove([fault.object]).then((done) => (done ? 'removed' : 'left'))
    case 'written-off':
      return Promise.resolve('left')
  }
}

async function repairSegment(
  open: OpenObjects,
  fault: FaultOf<'segment'>,
  { from, writesOff }: RepairOrder,
): Promise<Repaired> {
  const row = unpackSealed(fault.row) as SealedRow
  if (from !== null && (await restoreSegment(open, fault, { row, from }))) return 'restored'
  // An object that a store keeps for now is not lost.
  if (!writesOff || fault.damage === 'away') return 'left'
  const isChanged = await changeRow(open, fault, { before: fault.row, after: packSealed(writtenOffRow(row)) })
  if (isChanged) await open.contents.remove([fault.object])
  return isChanged ? 'written-off' : 'left'
}

/** Copies the object of a segment from a backup, once all of it was opened there. */
async function restoreSegment(
  { contents, ring }: OpenObjects,
  { object, shard }: FaultOf<'segment'>,
  { row, from }: { readonly row: SealedRow; readonly from: string },
): Promise<boolean> {
  const backup = openBackup(from)
  const segment = new SealedSegments({ contents: backup, ring, nowMs: monotonicMs }).open(shard, row)
  if ((await openSegmentWhole(segment, row)) !== null) return false
  return await copyObject({ contents, backup }, object)
}

/** Copies a pack from a backup. Its bodies are opened by the check that follows. */
async function restorePack(
  { contents }: OpenObjects,
  { object }: FaultOf<'pack'>,
  { from }: RepairOrder,
): Promise<Repaired> {
  if (from === null) return 'left'
  const backup = openBackup(from)
  return (await copyObject({ contents, backup }, object)) ? 'restored' : 'left'
}

type Contents = OpenObjects['contents']

async function copyObject(
  { contents, backup }: { contents: Contents; backup: Contents },
  name: string,
): Promise<boolean> {
  const front = await backup.front(name)
  if (typeof front === 'string') return false
  const bytes = await backup.readSealed(name, { from: 0, length: front.size })
  if (typeof bytes === 'string') return false
  // Files are never replaced, so the damaged one makes room first.
  return (await contents.remove([name])) && (await contents.putSealed(name, [bytes])).ok
}

function openBackup(from: string): Contents {
  const home = makeFileHome(join(resolve(from), 'content'), { worker: () => `command-${process.pid}` })
  return makeContents({ home, room: null, told: () => undefined, warn: () => undefined })
}

/** Builds a filter from the rows of the object. */
async function rebuildFilter({ nodes, segments }: OpenObjects, place: SegmentPlace): Promise<Repaired> {
  const { shard, serverId, segment: name } = place
  const text = await nodes.nodeOf(shard).hget(sealedKey(shard, serverId), name)
  const row = unpackSealed(text)
  if (row === null || row.generation === 0) return 'left'
  const segment = segments.open(shard, row)
  const persons = new Set<number>()
  const { blocks } = await segment.tail()
  for (const number of blocks.keys())
    for (const { log } of await segment.block(number)) {
      const { sender, recipients } = unpackLogEntry(log)
      for (const one of [sender, ...recipients]) persons.add(one)
    }
  const filter = makeFilter([...persons], row.filterBlocks)
  const goneAtMs = segmentGoneAtMs(row.lastMs, isTestSegment(name))
  await nodes.nodeOf(shard).set(sealedPersonsKey(shard, serverId, name), filter.text, 'PXAT', goneAtMs)
  return 'rebuilt'
}

/** Removes the rows of a segment that the log does not have any more. */
async function removeRows({ nodes }: OpenObjects, { shard, serverId, segment, isListed }: FaultOf<'recalled'>) {
  if (isListed) return 'left'
  await nodes.nodeOf(shard).unlink(...allSegmentKeys(shard, serverId, segment))
  return 'removed'
}

/** Changes a row of `sealed` if it is the one that was read. Returns whether it was. */
async function changeRow(
  { nodes, nowMs }: OpenObjects,
  { shard, serverId, segment }: SegmentPlace,
  { before, after }: { readonly before: string; readonly after: string },
): Promise<boolean> {
  const nonce = newCmdId(nowMs, Math.random)
  const keys = [metaKey(shard), sealedKey(shard, serverId)]
  const done = await nodes.nodeOf(shard).eval(CHANGE_ROW, keys.length, ...keys, segment, before, after, nonce)
  if (done === 'moving') throw new Error(`Shard ${shard} is being moved to another Redis: finish the move first`)
  return done === 'done'
}
