/**
 * strip - removes the keys of packed bodies from a sealed segment, because their content is kept for fewer days than
 * by default, by writing its object again without them.
 *
 * A pack is never changed, and leaves with its day. A body in it can be read with the key in the head of its message
 * only. States of an item: placed by the walk that removes content (`forget.ts`); done with the commit that swaps the
 * object, which removes the keys of recalled messages too. From then on no one can read these bodies, because the key
 * of the object before was in the row alone.
 *
 * Spec retention.settings
 */

import type { CommandType, Decision, FactOf, OutcomeBody, PrepareBody, States } from '../../../cluster/behaviour.ts'
import { unlessDamaged } from '../../../cluster/sum.ts'
import { DAY_MS } from '../../state/calendar.ts'
import { streamsKey } from '../../state/keys.ts'
import { headWithoutPack, isErasedHead, unpackHead } from '../../state/message/head.ts'
import { type ContentOwners, shortContentDays } from '../../state/message/retention.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type ColdItem, readColdItem, type SealedRow } from '../../state/message/sealed.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { daysOfStream, missingStreams, ownersIn } from '../retention/ended-content.ts'
import { nameNext, retryLater, swap } from './swap.ts'

/** Streams of a server that are read: more than a server has. */
const STREAMS_MAX = 1_000

/** A segment to write again. In `ends`: a stream, and the time up to which content of its messages has ended. */
export interface StripJob {
  readonly act: 'strip'
  readonly serverId: string
  readonly segment: string
  readonly row: SealedRow
  readonly defaultStreamId: string
  readonly ends: readonly (readonly [streamId: string, untilMs: number])[]
}

/** How it went. `none`: no key is left; in `recalled`: recalled messages that have one. */
export type StripOutcome =
  | { readonly act: 'strip'; readonly result: 'away' }
  | { readonly act: 'strip'; readonly result: 'none' }
  | {
      readonly act: 'strip'
      readonly result: 'swapped'
      readonly before: SealedRow
      readonly object: Pick<SealedRow, 'size' | 'key'>
      readonly recalled: readonly { readonly short: string; readonly recipients: number }[]
    }

type StripItem = Extract<ColdItem, { act: 'strip' }>

export const prepareStrip: CommandType<PrepareBody, StripJob | null> = {
  name: 'prepare strip',
  frees: true,
  entities: ({ item }) => [serverRef(placeOf(item).serverId)],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => [
    new MessageRows(shard, placeOf(item)).sealedFact(),
    streamsFact(shard, placeOf(item).serverId),
  ],
  decide({ item }, states, facts, context): Decision<StripJob | null> {
    const place = placeOf(item)
    const server = states.get<ServerState | null>(serverRef(place.serverId))
    const rows = new MessageRows(context.shard, place)
    const row = rows.sealed(facts)
    if (server === null || row === null || row.generation === 0) return { kind: 'done', reply: null }
    const owners = ownersIn(states, server)
    const streamIds = facts.sorted(streamsFact(context.shard, place.serverId)).map(([id]) => id)
    const entities = [...('missing' in owners ? [owners.missing] : []), ...missingStreams(states, streamIds)]
    if (entities.length > 0 || 'missing' in owners) return { kind: 'need', entities }
    const ends = endsOf(states, { owners, streamIds, nowMs: context.nowMs })
    if (ends.length === 0) return { kind: 'done', reply: null }
    const next = nameNext(rows, { ...place, row }, context)
    const { defaultStreamId } = server
    const reply: StripJob = { act: 'strip', ...place, row: next.row, defaultStreamId, ends }
    return { kind: 'done', reply, ops: next.ops, due: next.due }
  },
}

export const stripOutcome: CommandType<OutcomeBody<StripOutcome>, null> = {
  name: 'strip outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts({ item, outcome }, _states, { shard }) {
    const rows = new MessageRows(shard, placeOf(item))
    if (outcome?.result !== 'swapped' || outcome.recalled.length === 0) return [rows.sealedFact()]
    return [rows.sealedFact(), rows.headsFact(outcome.recalled.map(({ short }) => short))]
  },
  decide({ lane, item, attempt, current, outcome }, _states, facts, context) {
    const done = [{ lane, item }]
    if (outcome === null || outcome.result === 'none') return { kind: 'done', reply: null, done }
    if (outcome.result === 'away') return retryLater({ lane, item, attempt, current }, context.nowMs)
    const rows = new MessageRows(context.shard, placeOf(item))
    const swapped = swap(rows, facts, context, outcome)
    if (!swapped.isSwapped) {
      const due = current ? [...swapped.due, { lane, item, atMs: context.nowMs }] : swapped.due
      return { kind: 'done', reply: null, due }
    }
    const heads = outcome.recalled.flatMap(({ short, recipients }) => {
      const text = rows.head(facts, short)
      const head = text === null ? null : unlessDamaged(() => unpackHead(text, recipients))
      return head?.stored?.packed === undefined || isErasedHead(head) ? [] : [short, headWithoutPack(head)]
    })
    const ops = [...swapped.ops, ...rows.changeOps({ heads, statuses: [] })]
    return { kind: 'done', reply: null, ops, due: swapped.due, done }
  },
}

/** Streams whose content is kept for fewer days than by default. */
function endsOf(
  states: States,
  { owners, streamIds, nowMs }: { owners: ContentOwners; streamIds: readonly string[]; nowMs: number },
): StripJob['ends'] {
  const short = new Set(shortContentDays(owners))
  return streamIds.flatMap((streamId): StripJob['ends'] => {
    const days = daysOfStream(states, owners, streamId)
    return short.has(days) ? [[streamId, nowMs - days * DAY_MS]] : []
  })
}

function streamsFact(shard: number, serverId: string): FactOf<'sorted'> {
  const max = Number.MAX_SAFE_INTEGER
  return { read: 'sorted', key: streamsKey(shard, serverId), min: 0, max, count: STREAMS_MAX }
}

function placeOf(item: string): Pick<StripItem, 'serverId' | 'segment'> {
  const { serverId, segment } = readColdItem(item) as StripItem
  return { serverId, segment }
}
