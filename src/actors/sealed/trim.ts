/**
 * trim - removes expired messages from a sealed segment, by writing its object again without them.
 *
 * States of an item: placed by the daily sweep for the oldest segment of a server; done with the commit that swaps the
 * object. Recalled messages that are past their age leave in the same commit.
 *
 * Spec retention.message
 */

import type { CommandType, Decision, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { cutoffMs } from '../../state/age.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type ColdItem, readColdItem, type SealedRow } from '../../state/message/sealed.ts'
import { isTestSegment } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { logMonths } from '../authorization/log-age.ts'
import { nameNext, retryLater, swap } from './swap.ts'

/** A segment to write again without what is older than this. */
export interface TrimJob {
  readonly act: 'trim'
  readonly serverId: string
  readonly segment: string
  readonly row: SealedRow
  readonly cutoffMs: number
}

/** How it went. In `removed`: recalled messages that are past their age, and the fields of their statuses. */
export type TrimOutcome =
  | { readonly act: 'trim'; readonly result: 'away' }
  | {
      readonly act: 'trim'
      readonly result: 'swapped'
      readonly before: SealedRow
      readonly object: Pick<SealedRow, 'size' | 'key' | 'messages' | 'firstMs'>
      readonly removed: { readonly shorts: readonly string[]; readonly statuses: readonly string[] }
    }

type TrimItem = Extract<ColdItem, { act: 'trim' }>

export const prepareTrim: CommandType<PrepareBody, TrimJob | null> = {
  name: 'prepare trim',
  frees: true,
  entities: ({ item }) => [serverRef(placeOf(item).serverId)],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [new MessageRows(shard, placeOf(item)).sealedFact()],
  decide({ item }, states, facts, context): Decision<TrimJob | null> {
    const place = placeOf(item)
    const server = states.get<ServerState | null>(serverRef(place.serverId))
    if (server === null) return { kind: 'done', reply: null }
    const months = logMonths({ states, facts, context }, server.accountId)
    if (typeof months !== 'number') return months
    const rows = new MessageRows(context.shard, place)
    const row = rows.sealed(facts)
    const cutoff = cutoffMs(context.nowMs, isTestSegment(place.segment), months)
    if (row === null || row.generation === 0 || row.firstMs >= cutoff) return { kind: 'done', reply: null }
    const next = nameNext(rows, { ...place, row }, context)
    const reply: TrimJob = { act: 'trim', ...place, row: next.row, cutoffMs: cutoff }
    return { kind: 'done', reply, ops: next.ops, due: next.due }
  },
}

export const trimOutcome: CommandType<OutcomeBody<TrimOutcome>, null> = {
  name: 'trim outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [new MessageRows(shard, placeOf(item)).sealedFact()],
  decide({ lane, item, attempt, current, outcome }, _states, facts, context) {
    const done = [{ lane, item }]
    if (outcome === null) return { kind: 'done', reply: null, done }
    if (outcome.result === 'away') return retryLater({ lane, item, attempt, current }, context.nowMs)
    const rows = new MessageRows(context.shard, placeOf(item))
    const swapped = swap(rows, facts, context, outcome)
    if (!swapped.isSwapped) {
      const due = current ? [...swapped.due, { lane, item, atMs: context.nowMs }] : swapped.due
      return { kind: 'done', reply: null, due }
    }
    const { shorts, statuses } = outcome.removed
    const ops = [...swapped.ops, ...rows.removeRecalledOps(shorts, statuses)]
    return { kind: 'done', reply: null, ops, due: swapped.due, done }
  },
}

function placeOf(item: string): Pick<TrimItem, 'serverId' | 'segment'> {
  const { serverId, segment } = readColdItem(item) as TrimItem
  return { serverId, segment }
}
