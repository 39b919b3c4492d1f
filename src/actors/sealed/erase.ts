/**
 * erase - removes a person's data from a sealed segment, by writing its object again with the person's rows emptied.
 *
 * States of an item: placed by the walk of the erasure, which counts it among its looks. Messages whose content may be
 * kept, and recalled ones, are erased first, some in each commit, as those in Redis are; the last commit swaps the
 * object. From then on no one can read the one before, because its key was in the row alone.
 *
 * Guarantees: a message is counted once, in the commit that empties it for good; if a message is recalled while the
 * object is written, the object is written again.
 *
 * Spec erasure.messages
 */

import type {
  CommandType,
  Context,
  Decision,
  Due,
  Fact,
  Facts,
  OutcomeBody,
  PrepareBody,
  Staged,
} from '../../../cluster/behaviour.ts'
import { idOfEntry, msOf, shortId } from '../../../cluster/id.ts'
import { HOUR_MS } from '../../state/calendar.ts'
import {
  type ErasureWalk,
  eraseDue,
  erasureOwner,
  type ToldSpan,
  waitsForLooks,
  withTold,
} from '../../state/erasure.ts'
import { unpackHead } from '../../state/message/head.ts'
import { unpackLogEntry } from '../../state/message/log-entry.ts'
import { deleteOps, MessageRows } from '../../state/message/row.ts'
import { accountOfColdLane, type ColdItem, coldDue, readColdItem, type SealedRow } from '../../state/message/sealed.ts'
import { statusField } from '../../state/message/status.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { endContent } from '../erasure/erased-content.ts'
import { ErasedMessages } from '../erasure/erased-messages.ts'
import { nameNext, swap } from './swap.ts'

const SECOND_MS = 1_000

/** A segment to look through for a person. */
export interface EraseJob {
  readonly act: 'erase'
  readonly serverId: string
  readonly segment: string
  readonly row: SealedRow
  /** The person's number. */
  readonly number: number
  /** How many steps were done. */
  readonly step: number
}

/** A message of the person whose content may be kept, or that was recalled. */
export interface TouchedMessage {
  readonly entryId: string
  readonly log: string
  /** As it was before. */
  readonly head: string
  /** As built. */
  readonly sizeBytes: number | null
}

/** How it went. `none`: the segment does not name the person; `step`: some messages are done, and more follow. */
export type EraseOutcome =
  | { readonly act: 'erase'; readonly result: 'away' }
  | { readonly act: 'erase'; readonly result: 'none' }
  | { readonly act: 'erase'; readonly result: 'step'; readonly messages: readonly TouchedMessage[] }
  | {
      readonly act: 'erase'
      readonly result: 'swapped'
      readonly messages: readonly TouchedMessage[]
      readonly before: SealedRow
      readonly object: Pick<SealedRow, 'size' | 'key'>
      /** Messages to the person that were emptied in the object, without recalled ones. */
      readonly count: number
      /** When events of the person's messages were announced. */
      readonly told: readonly ToldSpan[]
    }

type EraseItem = Extract<ColdItem, { act: 'erase' }>

export const prepareErase: CommandType<PrepareBody, EraseJob | null> = {
  name: 'prepare erase',
  frees: true,
  entities: () => [],
  counters: ({ item }) => [erasureOwner(parseItem(item).erasureId)],
  facts: ({ item }, _states, { shard }) => [new MessageRows(shard, parseItem(item)).sealedFact()],
  decide({ lane, item }, states, facts, context): Decision<EraseJob | null> {
    const order = parseItem(item)
    const { serverId, segment, erasureId, step } = order
    const rows = new MessageRows(context.shard, order)
    const walk = states.counter<ErasureWalk>(erasureOwner(erasureId))
    const row = rows.sealed(facts)
    if (walk === null) return { kind: 'done', reply: null }
    // It has left by its age.
    if (row === null || row.generation === 0)
      return { kind: 'done', reply: null, ...looked(walk, { lane, order, context }) }
    const next = nameNext(rows, { ...order, row }, context)
    const reply: EraseJob = { act: 'erase', serverId, segment, row: next.row, number: walk.number, step }
    return { kind: 'done', reply, ops: next.ops, due: next.due }
  },
}

export const eraseOutcome: CommandType<OutcomeBody<EraseOutcome>, null> = {
  name: 'erase outcome',
  frees: true,
  entities: ({ item }) => [serverRef(parseItem(item).serverId)],
  counters: ({ item }) => [erasureOwner(parseItem(item).erasureId)],
  facts({ item, outcome }, _states, { shard }) {
    const rows = new MessageRows(shard, parseItem(item))
    if (outcome === null || !('messages' in outcome)) return [rows.sealedFact()]
    return [rows.sealedFact(), ...rowFacts(rows, shard, outcome.messages)]
  },
  decide({ lane, item, attempt, current, outcome }, states, facts, context) {
    const order = parseItem(item)
    const done = [{ lane, item }]
    const walk = states.counter<ErasureWalk>(erasureOwner(order.erasureId))
    const server = states.get<ServerState | null>(serverRef(order.serverId))
    if (!current || walk === null || server === null) return { kind: 'done', reply: null, ...(current && { done }) }
    const again = (atMs: number, step: number): Due => coldDue(accountOfColdLane(lane), { ...order, step }, atMs)
    const { nowMs } = context
    // It was abandoned, or a store was unavailable, and the erasure stays pending for that time.
    if (outcome === null || outcome.result === 'away') {
      const waitMs = outcome === null ? HOUR_MS : Math.min(HOUR_MS, SECOND_MS * 2 ** (attempt - 1))
      return { kind: 'done', reply: null, due: [again(nowMs + waitMs, order.step)] }
    }
    if (outcome.result === 'none') return { kind: 'done', reply: null, done, ...looked(walk, { lane, order, context }) }
    const touched = eraseTouched(outcome.messages, { order, server, walk, facts, context })
    if (outcome.result === 'step') {
      const after = { ...walk, ...touched.counted }
      const counters = [{ owner: erasureOwner(order.erasureId), value: after }]
      return {
        kind: 'done',
        reply: null,
        done,
        ops: touched.ops,
        counters,
        due: [...touched.due, again(nowMs, order.step + 1)],
      }
    }
    const rows = new MessageRows(context.shard, order)
    const swapped = swap(rows, facts, context, outcome)
    if (!swapped.isSwapped) {
      // Another rewrite or a recall was faster, so the whole segment is searched again.
      const counters = [{ owner: erasureOwner(order.erasureId), value: { ...walk, ...touched.counted } }]
      return {
        kind: 'done',
        reply: null,
        done,
        ops: touched.ops,
        counters,
        due: [...touched.due, ...swapped.due, again(nowMs, 0)],
      }
    }
    const { messages, place } = touched.counted
    const counted = {
      ...walk,
      messages: messages + outcome.count,
      place: place && withTold(place, outcome.told, nowMs),
    }
    const ended = looked(counted, { lane, order, context })
    return {
      kind: 'done',
      reply: null,
      done,
      ops: [...touched.ops, ...swapped.ops],
      counters: ended.counters,
      due: [...touched.due, ...swapped.due, ...ended.due],
    }
  },
}

function parseItem(item: string): EraseItem {
  return readColdItem(item) as EraseItem
}

/** One segment is done; with the last one the walk continues. */
function looked(
  walk: ErasureWalk,
  { lane, order: { erasureId }, context }: { lane: string; order: EraseItem; context: Context },
) {
  const looks = walk.looks - 1
  const isLast = looks === 0 && waitsForLooks(walk)
  return {
    counters: [{ owner: erasureOwner(erasureId), value: { ...walk, looks } }],
    due: isLast ? [eraseDue({ accountId: accountOfColdLane(lane), erasureId }, context.nowMs)] : [],
  }
}

/** Heads and statuses of messages, which only recalled ones have. */
function rowFacts(rows: MessageRows, shard: number, messages: readonly TouchedMessage[]): Fact[] {
  if (messages.length === 0) return []
  const shorts = messages.map(({ entryId }) => shortId(idOfEntry(entryId, shard)))
  const statuses = messages.flatMap(({ log }, at) => {
    return unpackLogEntry(log).recipients.map((_, n) => statusField(shorts[at] as string, n))
  })
  return [rows.headsFact(shorts), rows.statusesFact(statuses)]
}

interface Touching {
  readonly order: EraseItem
  readonly server: ServerState
  readonly walk: ErasureWalk
  readonly facts: Facts
  readonly context: Context
}

/** Erases recalled messages like those in Redis, and removes the content of all. */
function eraseTouched(
  messages: readonly TouchedMessage[],
  { order, server, walk, facts, context }: Touching,
): Required<Pick<Staged, 'ops' | 'due'>> & { readonly counted: Pick<ErasureWalk, 'messages' | 'place'> } {
  const { shard, nowMs } = context
  const { segment } = order
  const rows = new MessageRows(shard, order)
  const erased = new ErasedMessages({ server, segment, walk, facts, context })
  const ends = messages.flatMap(({ entryId, log, head, sizeBytes }) => {
    const messageId = idOfEntry(entryId, shard)
    const short = shortId(messageId)
    const entry = unpackLogEntry(log)
    if (rows.head(facts, short) !== null) {
      erased.add({ messageId, short, entry })
      return []
    }
    const { contentId } = entry
    const of = { contentId, head: unpackHead(head, entry.recipients.length), submittedAtMs: msOf(messageId), sizeBytes }
    return [endContent(context, { ...of, test: server.mode === 'test' })]
  })
  const { ops = [], due = [] } = erased.staged()
  const bodies = ends.flatMap(({ body }) => (body === null ? [] : deleteOps(body.key, [body.field])))
  return {
    ops: [...ops, ...ends.flatMap((end) => end.ops), ...bodies],
    due: [...due, ...ends.flatMap((end) => end.due)],
    counted: {
      messages: walk.messages + erased.messages,
      place: walk.place && withTold(walk.place, erased.told, nowMs),
    },
  }
}
