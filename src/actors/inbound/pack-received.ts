/**
 * pack-received - moves received messages whose content has left to blocks, a block in each step, oldest first.
 *
 * A segment is packed in blocks of 200 messages as they become 33 days old. Once nothing can follow in it, its rest
 * becomes a smaller block, then its postings are packed, and the next segment begins. A segment is over when the next
 * one began or its month is over, whichever is earlier; a pause in the mail does not matter.
 *
 * Guarantees: a message is in the log or in one block after every commit; a text that is damaged moves as it is.
 *
 * Keys: `received received-state received-blocks received-postings:<server>:<segment>`, `received-segments:<server>`,
 * `received-by-person received-by-hash:<server>:<segment>:<bucket>`
 *
 * Spec retention.inbound
 */

import type { Decision, Entry, Fact, Facts, Op } from '../../../cluster/behaviour.ts'
import { entryIdAfter, idOfEntry, shortId } from '../../../cluster/id.ts'
import { receivedKey, receivedSegmentsKey, receivedStateKey } from '../../state/keys.ts'
import { deleteOps } from '../../state/message/row.ts'
import {
  BLOCK_MESSAGES,
  blockCutoffMs,
  type PackedRow,
  type ReceivedSegment,
  receivedBlockOp,
} from '../../state/received/block.ts'
import { RECEIVED_FIELD } from '../../state/received/entry.ts'
import { bucketFacts, packPostingsOps } from '../../state/received/packed-posting.ts'
import { receivedBuckets } from '../../state/received/posting.ts'
import { type ReceivedCounters, receivedOwner } from '../../state/received/sweep-cursor.ts'
import { segmentEndMs } from '../../state/segment.ts'
import { RECEIVED_TIMER, receivedSweepDue } from './receive.ts'

/** Buckets of one step, each with up to 5,000 postings. */
const STEP_BUCKETS = 4
/** In the item of a step, in place of a position of the walk. */
export const PACK = 'pack'

type SortedFact = Fact & { readonly read: 'sorted' }
type RangeFact = Fact & { readonly read: 'range' }

/** A step. */
interface PackStep {
  readonly serverId: string
  /** Buckets of the segment that are packed. */
  readonly buckets: number
  readonly shard: number
  readonly nowMs: number
  readonly counters: ReceivedCounters
}

/** The next step, in the midst of the postings of a segment or not. */
export function packReceivedDue(serverId: string, nowMs: number, buckets = 0) {
  return { ...receivedSweepDue(serverId, nowMs), item: `${RECEIVED_TIMER}:${serverId}:${PACK}:${buckets}`, atMs: nowMs }
}

/** One step. */
export function packReceived(step: PackStep, facts: Facts): Decision<null> {
  const { serverId, shard, nowMs, counters } = step
  const segments = unpackedFact(step)
  if (!facts.has(segments)) return { kind: 'need', facts: [segments] }
  const [first, next] = facts.sorted(segments)
  const cutoff = blockCutoffMs(nowMs)
  const rest: Decision<null> = { kind: 'done', reply: null, due: [receivedSweepDue(serverId, nowMs)] }
  if (first === undefined || first[1] >= cutoff) return rest
  const [segment, firstMs] = first
  const place = { shard, serverId, segment }
  const fact = oldestFact(place, cutoff)
  if (!facts.has(fact)) return { kind: 'need', facts: [fact] }
  const entries = facts.range(fact)
  const isOver = Math.min(next?.[1] ?? Number.POSITIVE_INFINITY, segmentEndMs(segment)) <= cutoff
  if (entries.length === BLOCK_MESSAGES || (isOver && entries.length > 0))
    return packEntries(place, entries, facts, step)
  if (!isOver) return rest
  if (step.buckets < receivedBuckets(place).length) return packBuckets(place, facts, step)
  const owner = receivedOwner(serverId)
  return {
    kind: 'done',
    reply: null,
    ops: [{ key: receivedKey(shard, serverId, segment), write: 'UNLINK', args: [] }],
    counters: [{ owner, value: { ...counters, packed: firstMs } satisfies ReceivedCounters }],
    due: [packReceivedDue(serverId, nowMs)],
  }
}

/** The segment to pack, and the one after it. */
function unpackedFact({ shard, serverId, counters }: PackStep): SortedFact {
  const min = counters.packed === undefined ? 0 : counters.packed + 1
  return { read: 'sorted', key: receivedSegmentsKey(shard, serverId), min, max: Number.MAX_SAFE_INTEGER, count: 2 }
}

function oldestFact({ shard, serverId, segment }: ReceivedSegment, cutoff: number): RangeFact {
  const key = receivedKey(shard, serverId, segment)
  return { read: 'range', key, from: '-', to: String(cutoff - 1), count: BLOCK_MESSAGES }
}

/** The oldest entries move from the log to a block, with their standings. */
function packEntries(
  place: ReceivedSegment,
  entries: readonly Entry[],
  facts: Facts,
  { nowMs }: PackStep,
): Decision<null> {
  const { shard, serverId, segment } = place
  const key = receivedStateKey(shard, serverId, segment)
  const shorts = entries.map(({ id }) => shortId(idOfEntry(id, shard)))
  const states: Fact = { read: 'fields', key, fields: shorts }
  if (!facts.has(states)) return { kind: 'need', facts: [states] }
  const rows = entries.flatMap(({ id, fields }, at): PackedRow[] => {
    const entry = fields[fields.indexOf(RECEIVED_FIELD) + 1]
    // Without the field, an entry is no message.
    if (fields[0] !== RECEIVED_FIELD || entry === undefined) return []
    return [{ entryId: id, entry, standing: facts.field(key, shorts[at] as string) }]
  })
  const trim: Op = {
    key: receivedKey(shard, serverId, segment),
    write: 'XTRIM',
    args: ['MINID', entryIdAfter((entries.at(-1) as Entry).id)],
  }
  const block = rows.length === 0 ? [] : [receivedBlockOp(place, rows)]
  const ops = [...block, trim, ...deleteOps(key, shorts)]
  return { kind: 'done', reply: null, ops, due: [packReceivedDue(serverId, nowMs)] }
}

/** The next postings move from their streams to the fields of one hash. */
function packBuckets(place: ReceivedSegment, facts: Facts, { buckets, nowMs }: PackStep): Decision<null> {
  const reads = bucketFacts(place, buckets, STEP_BUCKETS)
  if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
  const ops = packPostingsOps(
    place,
    buckets,
    reads.map((fact) => facts.range(fact)),
  )
  return { kind: 'done', reply: null, ops, due: [packReceivedDue(place.serverId, nowMs, buckets + STEP_BUCKETS)] }
}
