/**
 * report-event - the report by mail that an event of a recipient causes
 *
 * Guarantees: the report waits in the commit of its event, so each event has exactly one; none above 100 an hour and
 * server; none unless the server has them switched on, on a broadcast stream, or for an erased message.
 *
 * Spec submission.reports
 */

import type { Due, States } from '../../../../cluster/behaviour.ts'
import {
  BOUNCE_MAIL_LANE,
  countBounceMail,
  formatReportItem,
  isReported,
  notifyOf,
} from '../../../state/message/bounce-mail.ts'
import { type RawContent, unpackHead } from '../../../state/message/head.ts'
import { parseAttemptItem } from '../../../state/message/item.ts'
import type { StatusEvent } from '../../../state/message/status.ts'
import { type ReportCount, type ServerCounters, type ServerState, serverRef } from '../../../state/server.ts'

export interface ReportTurn {
  readonly server: ServerState | null
  /** The message as it came; null if it did not come whole, or was erased. */
  readonly raw: RawContent | null
  /** Name of the recipient's item. */
  readonly name: string
  readonly event: StatusEvent
  /** Events of the recipient before this one. */
  readonly before: readonly StatusEvent[]
  readonly acceptedAtMs: number
  readonly count: ReportCount | undefined
  readonly nowMs: number
}

/** The report of an event, and the server's count with it; null if there is none. */
export function reportEvent(turn: ReportTurn): { readonly due: Due; readonly count: ReportCount } | null {
  const { server, raw, name, event, before, acceptedAtMs, count: known, nowMs } = turn
  const { recipient, broadcastStreamId } = parseAttemptItem(name)
  if (server?.bounceMail !== true || server.mode === 'test' || broadcastStreamId !== null) return null
  if (!isReported(event, { notify: notifyOf(raw, recipient), before, acceptedAtMs })) return null
  const count = countBounceMail(known, nowMs)
  if (count === null) return null
  const item = formatReportItem(name, before.length, event.occurredAtMs)
  return { due: { lane: BOUNCE_MAIL_LANE, item, atMs: nowMs }, count }
}

export interface LoggedTurn extends Omit<ReportTurn, 'server' | 'raw' | 'count'> {
  /** The packed head of the message; null if it was not read, as that of a message that did not come whole. */
  readonly head: string | null
  readonly counters: ServerCounters
}

/** The report of an event of a logged message, and the server's counters with it. */
export function reportLogged(
  states: States,
  { head, counters, ...turn }: LoggedTurn,
): { readonly due: readonly Due[]; readonly counters: ServerCounters } {
  const { serverId, recipients } = parseAttemptItem(turn.name)
  const server = states.get<ServerState | null>(serverRef(serverId))
  // Most servers have none, and a head takes time to unpack.
  if (server?.bounceMail !== true || head === null) return { due: [], counters }
  const { raw } = unpackHead(head, recipients)
  const made = reportEvent({ ...turn, server, raw, count: counters.bounceMails })
  return made === null ? { due: [], counters } : { due: [made.due], counters: { ...counters, bounceMails: made.count } }
}
