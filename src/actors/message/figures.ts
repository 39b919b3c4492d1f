/**
 * figures - what the end of an attempt, a report or a click adds to the figures of its server.
 *
 * It rides in the commit of the event itself, so what is counted is what happened, once.
 *
 * Keys: stats
 *
 * Spec stats.count
 */

import type { Need, Op } from '../../../cluster/behaviour.ts'
import { shortId } from '../../../cluster/id.ts'
import { countInHour, DEFAULT_STREAM, figureOf, hourOwner, rowOf } from '../../state/message/hour-count.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { statsFact, statsOps } from '../../state/message/stats-rows.ts'
import type { StatusEvent } from '../../state/message/status.ts'
import { type HourCounters, type ServerState, serverRef } from '../../state/server.ts'
import type { SuppressTurn } from '../suppression/suppress.ts'

/** Writes about the figures of a server. */
export interface FiguresWrites {
  readonly ops: readonly Op[]
  readonly counters: readonly { readonly owner: string; readonly value: unknown }[]
}

/** The new events of a recipient, and the known data about it. */
interface FiguresInput {
  readonly told: readonly StatusEvent[]
  /** The events before these. */
  readonly before: readonly StatusEvent[]
  /** Absent if it is unknown, and then it is read. */
  readonly streamId?: string | undefined
}

const NOTHING: FiguresWrites = { ops: [], counters: [] }

/**
 * The current hour of a server after counting the events, or the reads needed first. `hourOwner` and `serverRef` of
 * the server must be named.
 */
export function figuresAfter(
  item: AttemptItem,
  { told, before, streamId }: FiguresInput,
  turn: SuppressTurn,
): FiguresWrites | Need {
  // The acceptance of a scheduled message counts no recipient as suppressed.
  const countedOf = (event: StatusEvent) =>
    item.sendAtMs !== null && event.event === 'bounced' && event.status === 'suppressed'
      ? 'suppressed'
      : figureOf(event, before)
  const rows = told.flatMap((event) => countedOf(event) ?? []).map(rowOf)
  if (rows.length === 0) return NOTHING
  const { states, facts, context } = turn
  const stream = streamOf(item, streamId, turn)
  if (stream === null) return NOTHING
  if (typeof stream !== 'string') return stream
  const { serverId } = item
  const owner = hourOwner(serverId)
  const counted = rows.map((figures) => ({ stream, figures }))
  const { value, ended } = countInHour(states.counter<HourCounters>(owner), counted, context.nowMs)
  const counters = [{ owner, value }]
  if (ended === null) return { ops: [], counters }
  const place = { shard: context.shard, serverId }
  const fact = statsFact(place, ended)
  return facts.has(fact) ? { ops: statsOps(facts, place, ended), counters } : { kind: 'need', facts: [fact] }
}

/** The stream of a recipient among those of a counter; null if the message has left the log, and is past its age. */
function streamOf(
  item: AttemptItem,
  told: string | undefined,
  { states, facts, context }: SuppressTurn,
): string | Need | null {
  const known = item.broadcastStreamId ?? told
  if (known !== undefined) {
    const server = states.get<ServerState | null>(serverRef(item.serverId))
    return known === server?.defaultStreamId ? DEFAULT_STREAM : shortId(known)
  }
  const rows = new MessageRows(context.shard, item)
  const missing = rows.missingEntry(facts, item.messageId)
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const message = rows.entry(facts, item.messageId)
  if (message === null) return null
  return message.streamId === null ? DEFAULT_STREAM : shortId(message.streamId)
}
