/**
 * figures - the effect of an attempt's outcome, a report or a click on the figures of its server.
 *
 * It rides in the commit of the event itself, so what is counted is what happened, once.
 *
 * Keys: stats, group-days, group-hours
 *
 * Spec stats.count, stats.groups
 */

import type { Need, Op } from '../../../cluster/behaviour.ts'
import { msOf, shortId } from '../../../cluster/id.ts'
import { BY_GROUP, computeGroups, groupOwner } from '../../state/message/group-count.ts'
import { groupFacts, groupOps } from '../../state/message/group-rows.ts'
import {
  type Counted,
  classifyEvent,
  countInHour,
  DEFAULT_STREAM,
  hourOwner,
  rowOf,
} from '../../state/message/hour-count.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import { MessageRows } from '../../state/message/row.ts'
import { statsFact, statsOps } from '../../state/message/stats-rows.ts'
import type { StatusEvent } from '../../state/message/status.ts'
import { isTestSegment } from '../../state/segment.ts'
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
  /** Absent if `streamId` is, or if the message has no tag. */
  readonly tagHash?: string | undefined
  /** Class of a deferral. */
  readonly deferralClass?: string | null | undefined
}

const NOTHING: FiguresWrites = { ops: [], counters: [] }

/** Owners of the counters that `figuresAfter` needs. */
export function figuresOwners(serverId: string): string[] {
  return [hourOwner(serverId), groupOwner(serverId)]
}

/**
 * The current hour of a server after counting the events, or the reads needed first. `figuresOwners` and `serverRef`
 * of the server must be named.
 */
export function figuresAfter(item: AttemptItem, input: FiguresInput, turn: SuppressTurn): FiguresWrites | Need {
  const { told, before } = input
  // The acceptance of a scheduled message counts no recipient as suppressed.
  const countedOf = (event: StatusEvent) =>
    item.sendAtMs !== null && event.event === 'bounced' && event.status === 'suppressed'
      ? 'suppressed'
      : classifyEvent(event, before)
  const rows = told.flatMap((event) => countedOf(event) ?? []).map(rowOf)
  if (rows.length === 0) return NOTHING
  const labels = findLabels(item, input, turn)
  if (labels === null) return NOTHING
  if ('kind' in labels) return labels
  const { stream, tagHash } = labels
  const counted = rows.map((figures) => ({ stream, figures }))
  const acceptedAtMs = Math.max(msOf(item.messageId), item.sendAtMs ?? 0)
  const deferralClass = input.deferralClass ?? null
  const test = isTestSegment(item.segment)
  const groups = computeGroups({ told, before, stream, tagHash, test, deferralClass, acceptedAtMs })
  return written(item.serverId, { counted, groups }, turn)
}

/** Adds to both counters, and moves an hour that has ended to its rows. */
function written(
  serverId: string,
  { counted, groups }: { readonly counted: readonly Counted[]; readonly groups: readonly Counted[] },
  { states, facts, context }: SuppressTurn,
): FiguresWrites | Need {
  const place = { shard: context.shard, serverId }
  const counterOf = (owner: string) => states.counter<HourCounters>(owner)
  const hour = countInHour(counterOf(hourOwner(serverId)), counted, context.nowMs)
  const group =
    groups.length === 0 ? null : countInHour(counterOf(groupOwner(serverId)), groups, context.nowMs, BY_GROUP)
  const groupsEnded = group?.ended ?? null
  const missing = [
    ...(hour.ended === null ? [] : [statsFact(place, hour.ended)]),
    ...(groupsEnded === null ? [] : groupFacts(place, groupsEnded)),
  ].filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  return {
    ops: [
      ...(hour.ended === null ? [] : statsOps(facts, place, hour.ended)),
      ...(groupsEnded === null ? [] : groupOps(facts, place, groupsEnded)),
    ],
    counters: [
      { owner: hourOwner(serverId), value: hour.value },
      ...(group === null ? [] : [{ owner: groupOwner(serverId), value: group.value }]),
    ],
  }
}

/** The groups of a message that its events do not name. */
interface Labels {
  /** As in `HourCounters`. */
  readonly stream: string
  readonly tagHash: string | null
}

/** Stream and tag of a message; null if it has left the log, and is past its age. */
function findLabels(
  item: AttemptItem,
  { streamId, tagHash }: Pick<FiguresInput, 'streamId' | 'tagHash'>,
  { states, facts, context }: SuppressTurn,
): Labels | Need | null {
  const known = (id: string): string => {
    const server = states.get<ServerState | null>(serverRef(item.serverId))
    return id === server?.defaultStreamId ? DEFAULT_STREAM : shortId(id)
  }
  if (streamId !== undefined) return { stream: known(streamId), tagHash: tagHash ?? null }
  const rows = new MessageRows(context.shard, item)
  const missing = rows.missingEntry(facts, item.messageId)
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const message = rows.entry(facts, item.messageId)
  if (item.broadcastStreamId !== null)
    return { stream: known(item.broadcastStreamId), tagHash: message?.tagHash ?? null }
  if (message === null) return null
  return { stream: message.streamId === null ? DEFAULT_STREAM : shortId(message.streamId), tagHash: message.tagHash }
}
