/**
 * seal - a closed segment of a server's log leaves Redis: frozen, read out, and sealed once its object is durable.
 *
 * States of an item: placed by the daily sweep; it seals the oldest segment whose newest message is old enough, then
 * the next, and leaves its lane when none is left. A segment with an open recipient thaws and is passed over until the
 * next sweep. A claim that comes back names a new object; the one before is removed.
 *
 * Guarantees: the commit that seals finds the segment frozen for the object that it names, so the segment was not
 * written since it was read; it removes the rows and names the object at once, and the object was read back before.
 *
 * Keys: `sealed`, `sealed-persons`, `segments`, `log head status by-person by-tag`
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Fact,
  Op,
  OutcomeBody,
  PrepareBody,
} from '../../../cluster/behaviour.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../state/calendar.ts'
import { sealedPersonsKey, segmentsKey } from '../../state/keys.ts'
import { MessageRows } from '../../state/message/row.ts'
import {
  accountOfColdLane,
  coldDue,
  frozenRow,
  lastDayOf,
  leafOf,
  readColdItem,
  type SealedRow,
  segmentGoneAtMs,
} from '../../state/message/sealed.ts'
import { isTestSegment, segmentKeys } from '../../state/segment.ts'
import { type ServerCounters, type ServerState, serverOwner, serverRef } from '../../state/server.ts'
import { unlinkColdDue } from '../message/unlink.ts'

/** Segments of a server: more than one can fill in 13 months. */
const SEGMENTS_MAX = 10_000
/** Pause between two segments of a server, so that an old log is sealed over hours without slowing acceptance. */
const NEXT_MS = 5_000

/** A segment to read out, and the object to write. */
export interface SealJob {
  readonly act: 'seal'
  readonly serverId: string
  readonly segment: string
  readonly leaf: string
  readonly day: string
}

/** How it went. `open`: a recipient is still pending; `away`: a store did not answer; `empty`: it has no messages. */
export type SealOutcome = {
  readonly act: 'seal'
  readonly segment: string
  readonly leaf: string
  readonly day: string
} & (
  | { readonly result: 'open' | 'away' | 'empty' }
  | {
      readonly result: 'sealed'
      readonly object: Pick<SealedRow, 'size' | 'key' | 'messages' | 'firstMs' | 'lastMs' | 'filterBlocks'>
      /** Bloom filter of persons. */
      readonly filter: string
    }
)

type SortedFact = Fact & { readonly read: 'sorted' }

/**
 * Chooses and freezes a segment. Takes the days after which its newest message is old enough; null if none ever is.
 */
export function makePrepareSeal(hotDays: number | null): CommandType<PrepareBody, SealJob | null> {
  return {
    name: 'prepare seal',
    entities: ({ item }) => [serverRef(readColdItem(item).serverId)],
    counters: ({ item }) => [serverOwner(readColdItem(item).serverId)],
    facts: ({ item }, _states, { shard }) => [segmentsFact(shard, readColdItem(item).serverId)],
    decide({ item }, states, facts, context): Decision<SealJob | null> {
      const order = readColdItem(item)
      const { serverId } = order
      const { shard, nowMs } = context
      const server = states.get<ServerState | null>(serverRef(serverId))
      if (server === null || hotDays === null) return { kind: 'done', reply: null }
      const open = states.counter<ServerCounters>(serverOwner(serverId))?.segment?.name
      const all = facts.sorted(segmentsFact(shard, serverId))
      const after = order.act === 'seal' ? all.findIndex(([name]) => name === order.after) : -1
      // A segment ends before the next one begins.
      const old = all.filter(([name], at) => {
        const endMs = all[at + 1]?.[1] ?? Number.POSITIVE_INFINITY
        return at > after && name !== open && endMs <= nowMs - hotDays * DAY_MS
      })
      const rows = old.map(([segment]) => new MessageRows(shard, { serverId, segment }))
      const reads = rows.map((one) => one.sealedFact())
      if (!reads.every((one) => facts.has(one))) return { kind: 'need', facts: reads }
      const at = rows.findIndex((one) => !one.isSealed(facts))
      const [segment, endMs] = [old[at]?.[0], all[all.findIndex(([name]) => name === old[at]?.[0]) + 1]?.[1]]
      if (segment === undefined || endMs === undefined) return { kind: 'done', reply: null }
      const row = rows[at] as MessageRows
      const before = row.sealed(facts)
      const leaf = leafOf({ serverId, segment }, context.newId())
      const day = lastDayOf(endMs, isTestSegment(segment))
      return {
        kind: 'done',
        reply: { act: 'seal', serverId, segment, leaf, day },
        ops: [row.sealOp(frozenRow(leaf, day))],
        due: before === null ? [] : [unlinkColdDue(context, before, { isReplaced: true })],
      }
    },
  }
}

/** The effect of a finished read on the segment. */
export const sealOutcome: CommandType<OutcomeBody<SealOutcome>, null> = {
  name: 'seal outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts({ item, outcome }, _states, { shard }) {
    const { serverId } = readColdItem(item)
    return outcome === null ? [] : [new MessageRows(shard, { serverId, segment: outcome.segment }).sealedFact()]
  },
  decide({ lane, item, attempt, outcome }, _states, facts, context) {
    const { serverId } = readColdItem(item)
    const { shard, nowMs } = context
    const accountId = accountOfColdLane(lane)
    const again = (atMs: number, after = ''): Due => coldDue(accountId, { act: 'seal', serverId, after }, atMs)
    // It stays frozen, which does no harm, because the next claim takes over.
    if (outcome === null) return { kind: 'done', reply: null, due: [again(nowMs + HOUR_MS)] }
    const { segment, leaf, day } = outcome
    const rows = new MessageRows(shard, { serverId, segment })
    const row = rows.sealed(facts)
    const isOurs = row !== null && row.generation === 0 && row.leaf === leaf
    // What took the row away has ordered the removal of the object; or this outcome comes twice, and it is in use.
    if (!isOurs) return { kind: 'done', reply: null, due: [again(nowMs + NEXT_MS)] }
    const gone = unlinkColdDue(context, { day, leaf }, { isReplaced: true })
    if (outcome.result !== 'sealed') {
      const waitMs = Math.min(HOUR_MS, MINUTE_MS * 2 ** (attempt - 1))
      const next = outcome.result === 'away' ? again(nowMs + waitMs) : again(nowMs + NEXT_MS, segment)
      return { kind: 'done', reply: null, ops: [rows.unsealOp()], due: [gone, next] }
    }
    const sealed: SealedRow = { ...row, ...outcome.object, generation: 1 }
    return {
      kind: 'done',
      reply: null,
      ops: [
        rows.sealOp(sealed),
        ...filterOps({ shard, serverId, segment }, outcome.filter, sealed),
        ...removeOps(context, { serverId, segment }),
      ],
      due: [again(nowMs + NEXT_MS)],
    }
  },
}

/** The rows that the object holds leave Redis. */
function removeOps({ shard }: Context, { serverId, segment }: { serverId: string; segment: string }): Op[] {
  return segmentKeys(shard, serverId, segment).map((key): Op => ({ key, write: 'UNLINK', args: [] }))
}

function filterOps(
  { shard, serverId, segment }: { shard: number; serverId: string; segment: string },
  filter: string,
  { lastMs }: SealedRow,
): Op[] {
  const endsAtMs = String(segmentGoneAtMs(lastMs, isTestSegment(segment)))
  return [{ key: sealedPersonsKey(shard, serverId, segment), write: 'SET', args: [filter, 'PXAT', endsAtMs] }]
}

function segmentsFact(shard: number, serverId: string): SortedFact {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: segmentsKey(shard, serverId), min: 0, max, count: SEGMENTS_MAX }
}
