/**
 * reseal - keys in a sealed segment that an earlier generation of the ring has sealed, by writing its object again.
 *
 * States of an item: placed by the walk of a rotation for a segment whose own key, or a key in whose heads, is of an
 * earlier generation; done with the commit that swaps the object.
 *
 * Spec secret.rotate
 */

import type { CommandType, Decision, Fact, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { laneKey } from '../../../cluster/keyspace.ts'
import { MessageRows } from '../../state/message/row.ts'
import {
  type ColdItem,
  coldDue,
  coldLane,
  formatColdItem,
  isWrittenOff,
  readColdItem,
  type SealedRow,
} from '../../state/message/sealed.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { nameNext, retryLater, swap } from './swap.ts'

/** A segment to write again with keys that the ring seals now. */
export interface ResealJob {
  readonly act: 'reseal'
  readonly serverId: string
  readonly segment: string
  readonly row: SealedRow
}

/** How it went. */
export type ResealOutcome =
  | { readonly act: 'reseal'; readonly result: 'away' }
  | {
      readonly act: 'reseal'
      readonly result: 'swapped'
      readonly before: SealedRow
      readonly object: Pick<SealedRow, 'size' | 'key'> & { readonly headKeys: number }
    }

type ResealItem = Extract<ColdItem, { act: 'reseal' }>

/** A sealed segment in which the walk of a rotation has found such a key. */
export interface ResealSegmentBody {
  readonly serverId: string
  readonly segment: string
}

/** Orders the item. A server that is gone takes its segments along. */
export const resealSegment: CommandType<ResealSegmentBody, { readonly kind: 'ordered' }> = {
  name: 'reseal-segment',
  entities: ({ serverId }) => [serverRef(serverId)],
  counters: () => [],
  facts(body, states, { shard }) {
    const server = states.get<ServerState | null>(serverRef(body.serverId))
    return server === null ? [] : [placeFact(shard, server.accountId, body)]
  },
  decide(body, states, facts, { shard, nowMs }) {
    const reply = { kind: 'ordered' } as const
    const server = states.get<ServerState | null>(serverRef(body.serverId))
    if (server === null) return { kind: 'done', reply }
    const { accountId } = server
    const place = placeFact(shard, accountId, body)
    // An order that is under way is not begun a second time.
    if (facts.score(place.key, place.member) !== null) return { kind: 'done', reply }
    return { kind: 'done', reply, due: [coldDue(accountId, { act: 'reseal', ...body }, nowMs)] }
  },
}

export const prepareReseal: CommandType<PrepareBody, ResealJob | null> = {
  name: 'prepare reseal',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [new MessageRows(shard, itemOf(item)).sealedFact()],
  decide({ item }, _states, facts, context): Decision<ResealJob | null> {
    const { serverId, segment } = itemOf(item)
    const rows = new MessageRows(context.shard, { serverId, segment })
    const row = rows.sealed(facts)
    if (row === null || row.generation === 0 || isWrittenOff(row)) return { kind: 'done', reply: null }
    const next = nameNext(rows, { serverId, segment, row }, context)
    const reply: ResealJob = { act: 'reseal', serverId, segment, row: next.row }
    return { kind: 'done', reply, ops: next.ops, due: next.due }
  },
}

export const resealOutcome: CommandType<OutcomeBody<ResealOutcome>, null> = {
  name: 'reseal outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [new MessageRows(shard, itemOf(item)).sealedFact()],
  decide({ lane, item, attempt, current, outcome }, _states, facts, context) {
    const done = [{ lane, item }]
    // The walk orders it again.
    if (outcome === null) return { kind: 'done', reply: null, done }
    if (outcome.result === 'away') return retryLater({ lane, item, attempt, current }, context.nowMs)
    const swapped = swap(new MessageRows(context.shard, itemOf(item)), facts, context, outcome)
    if (swapped.isSwapped) return { kind: 'done', reply: null, ops: swapped.ops, due: swapped.due, done }
    const due = current ? [...swapped.due, { lane, item, atMs: context.nowMs }] : swapped.due
    return { kind: 'done', reply: null, due }
  },
}

/** The read of a segment's place in the lane. */
function placeFact(shard: number, accountId: string, of: ResealSegmentBody): Fact & { readonly read: 'score' } {
  return { read: 'score', key: laneKey(shard, coldLane(accountId)), member: formatColdItem({ act: 'reseal', ...of }) }
}

function itemOf(item: string): Pick<ResealItem, 'serverId' | 'segment'> {
  const { serverId, segment } = readColdItem(item) as ResealItem
  return { serverId, segment }
}
