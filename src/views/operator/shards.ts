/**
 * shards - who owns each shard, and how far behind it is
 *
 * States of a shard: owned (by a live process), free (without owner, about to be taken), torn (its journal and its
 * sequence number disagree, so it is stopped until it is repaired), moving (to another Redis, and no process may take
 * it), away (its Redis does not answer, others do).
 *
 * Keys: `{cl}:workers`; for every shard `meta`, `journal` (the last entry), `mailbox`, `due`
 *
 * Spec operator.shards
 */

import type { Entry } from '../../../cluster/behaviour.ts'
import { msOfCmdId } from '../../../cluster/cmd-id.ts'
import { SHARDS } from '../../../cluster/id.ts'
import { dueKey, journalKey, mailboxKey, metaKey, WORKERS_KEY } from '../../../cluster/keyspace.ts'
import { parseCursor } from '../../../cluster/mailbox/cursor.ts'
import { MOVE_PREFIX, type WorkerRecord } from '../../../cluster/store.ts'
import type { ShardList } from '../../../schemas/operator/cluster.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import type { Reader } from '../key.ts'

type ShardRow = ShardList['shards'][number]

/** Entries that a mailbox holds at most, and a few. */
const WAITING_MAX = 2100
const META = ['owner', 'seq', 'tries', 'since', 'cur']

/** All shards and processes; null when no Redis answered. In: the live processes. */
export async function readShards(
  read: Reader,
  living: readonly string[],
): Promise<Pick<ShardList, 'workers' | 'shards'> | null> {
  const [records, ...rows] = await Promise.all([
    read(0, [{ read: 'hash', key: WORKERS_KEY }]),
    ...Array.from({ length: SHARDS }, (_, shard) => readShard(read, shard, living)),
  ])
  if (rows.every((row) => row === null)) return null
  const shards = rows.map((row, shard) => row ?? awayRow(shard))
  const workers = [...(records?.[0] ?? [])].map(([worker, text]) => {
    const { host, pid, roles, takesShards, isLeaving } = JSON.parse(text) as WorkerRecord
    const held = shards.filter(({ owner }) => owner === worker).length
    return {
      worker,
      host,
      pid,
      roles: [...roles],
      isAlive: living.includes(worker),
      takesShards,
      isLeaving,
      shards: held,
    }
  })
  return { workers, shards }
}

function awayRow(shard: number): ShardRow {
  const unknown = { owner: null, since: null, journalSeq: null, oldestWaitingAt: null, dueAt: null }
  return { shard, state: 'away', ...unknown, tries: 0, seq: 0, waiting: 0 }
}

async function readShard(read: Reader, shard: number, living: readonly string[]): Promise<ShardRow | null> {
  const seen = await read(shard, [
    { read: 'fields', key: metaKey(shard), fields: META },
    { read: 'last', key: journalKey(shard) },
    { read: 'range', key: mailboxKey(shard), from: '-', to: '+', count: WAITING_MAX },
    { read: 'sorted', key: dueKey(shard), min: 0, max: Number.MAX_SAFE_INTEGER, count: 1 },
  ])
  if (seen === null) return null
  const [meta, journal, mailbox, due] = seen
  const [owner, seq, tries, since, cursor] = meta
  const journalSeq = journal[0] === undefined ? null : Number(journal[0].id.split('-')[0])
  const isTorn = Number(seq ?? 0) !== (journalSeq ?? 0)
  return {
    shard,
    state: isTorn
      ? 'torn'
      : owner?.startsWith(MOVE_PREFIX)
        ? 'moving'
        : owner && living.includes(owner)
          ? 'owned'
          : 'free',
    owner: owner || null,
    since: formatInstantOrNull(Number(since ?? 0) || null),
    tries: Number(tries ?? 0),
    seq: Number(seq ?? 0),
    journalSeq,
    waiting: waitingIn(mailbox, cursor ?? ''),
    oldestWaitingAt: oldestOf(mailbox[0]),
    dueAt: due[0] === undefined ? null : formatInstant(due[0][1]),
  }
}

/** Commands in the parcels of a mailbox that are not yet executed. */
function waitingIn(mailbox: readonly Entry[], cursor: string): number {
  const { entryId, done } = parseCursor(cursor)
  return mailbox.reduce((sum, { id, fields }) => {
    const count = Number(fields[fields.indexOf('n') + 1])
    return sum + (count > 0 ? count : 1) - (id === entryId ? done : 0)
  }, 0)
}

/** When the oldest command that waits was given. */
function oldestOf(entry: Entry | undefined): string | null {
  const at = entry?.fields.indexOf('parcel') ?? -1
  return at < 0 ? null : formatInstant(msOfCmdId(entry?.fields[at + 1] ?? ''))
}
