/**
 * recall - returns a message of a sealed segment to Redis for a later change, such as a late bounce, a complaint or a
 * click.
 *
 * States of an item: placed by the turn that cannot decide without the message; done once its rows are written. They
 * are those of the object of the generation that was read: if an erasure or a trim has replaced it, the message is
 * read again.
 *
 * Keys: `recalled head status:<server>:<segment>`, `sealed:<server>`
 */

import type { CommandType, Decision, Fact, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { MINUTE_MS } from '../../state/calendar.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type ColdItem, readColdItem, type SealedRow } from '../../state/message/sealed.ts'

/** A message to read, and where. */
export interface RecallJob {
  readonly act: 'recall'
  readonly serverId: string
  readonly segment: string
  readonly messageId: string
  readonly row: SealedRow
}

/** Its texts; `absent` if the segment has no such message. */
export type RecallOutcome =
  | { readonly act: 'recall'; readonly result: 'away' }
  | { readonly act: 'recall'; readonly result: 'absent' }
  | {
      readonly act: 'recall'
      readonly result: 'found'
      readonly generation: number
      readonly log: string
      readonly head: string
      readonly statuses: readonly string[]
    }

type RecallItem = Extract<ColdItem, { act: 'recall' }>
const SECOND_MS = 1_000

export const prepareRecall: CommandType<PrepareBody, RecallJob | null> = {
  name: 'prepare recall',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => reads(shard, item),
  decide({ item }, _states, facts, { shard }): Decision<RecallJob | null> {
    const { serverId, segment, messageId } = readColdItem(item) as RecallItem
    const rows = new MessageRows(shard, { serverId, segment })
    const row = rows.sealed(facts)
    if (row === null || row.generation === 0 || rows.isRecalled(facts, shortId(messageId)))
      return { kind: 'done', reply: null }
    return { kind: 'done', reply: { act: 'recall', serverId, segment, messageId, row } }
  },
}

export const recallOutcome: CommandType<OutcomeBody<RecallOutcome>, null> = {
  name: 'recall outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => reads(shard, item),
  decide({ lane, item, attempt, current, outcome }, _states, facts, { shard, nowMs }) {
    const done = [{ lane, item }]
    const { serverId, segment, messageId } = readColdItem(item) as RecallItem
    const rows = new MessageRows(shard, { serverId, segment })
    const row = rows.sealed(facts)
    const short = shortId(messageId)
    const isThere = row === null || row.generation === 0 || rows.isRecalled(facts, short)
    if (outcome === null || outcome.result === 'absent' || isThere) return { kind: 'done', reply: null, done }
    const waitMs = outcome.result === 'away' ? Math.min(MINUTE_MS, SECOND_MS * 2 ** (attempt - 1)) : 0
    if (outcome.result === 'away' || outcome.generation !== row.generation)
      return { kind: 'done', reply: null, ...(current && { due: [{ lane, item, atMs: nowMs + waitMs }] }) }
    const ops = [...rows.recallOps(short, outcome), rows.sealOp({ ...row, recalls: row.recalls + 1 })]
    return { kind: 'done', reply: null, ops, done }
  },
}

function reads(shard: number, item: string): Fact[] {
  const { serverId, segment, messageId } = readColdItem(item) as RecallItem
  const rows = new MessageRows(shard, { serverId, segment })
  return [rows.sealedFact(), rows.recalledFact([shortId(messageId)])]
}
