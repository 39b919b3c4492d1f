/**
 * bounce-mail - the lane of reports to SMTP clients: what a report says, and when its mail is tried again
 *
 * A report is derived from the message when it is sent. Guarantees: none once a person that it names, or the message,
 * is erased; none if the server has switched reports off, or the sender's domain is not the account's any more.
 *
 * Spec submission.reports
 */

import type { CommandType, Decision, Facts, OutcomeBody, PrepareBody } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { nextAttemptAtMs, parseRetryHintMs } from '../../mail/retry.ts'
import { hashFraction } from '../../state/hash-fraction.ts'
import { NOTIFY, notifyOf, parseReportItem, type ReportItem } from '../../state/message/bounce-mail.ts'
import { isErasedHead, unpackHead } from '../../state/message/head.ts'
import { MessageRows } from '../../state/message/row.ts'
import { type StatusEvent, unpackStatus } from '../../state/message/status.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { isPastLog } from '../authorization/log-age.ts'
import type { AttemptOutcome } from '../message/attempt-outcome.ts'
import {
  type AttemptJob,
  addressFacts,
  addressIn,
  itemFacts,
  type LoggedMessage,
  makeJob,
  sendingFact,
} from '../message/prepare-attempt.ts'

/** A report as its performer gets it. */
export interface BounceMailJob extends Pick<ReportItem, 'place' | 'atMs'> {
  /** The message, from the recipient of the report. */
  readonly attempt: AttemptJob
  readonly event: StatusEvent
  readonly envid: string | null
  /** Whether ORCPT named the recipient. */
  readonly hasOriginal: boolean
}

/** How an attempt ended. */
export type BounceMailOutcome = Pick<AttemptOutcome, 'result' | 'response'>

const NOTHING = { kind: 'done', reply: null } as const

export const prepareBounceMail: CommandType<PrepareBody, BounceMailJob | null> = {
  name: 'prepare bounce mail',
  entities: ({ item }) => [serverRef(parseReportItem(item).attempt.serverId)],
  counters: () => [],
  facts: ({ item }, _states, { shard }) => itemFacts(shard, parseReportItem(item).attempt),
  decide({ item: name }, states, facts, context): Decision<BounceMailJob | null> {
    const { attempt: item, place, atMs } = parseReportItem(name)
    const isPast = isPastLog(item, { states, facts, context })
    if (typeof isPast !== 'boolean') return isPast
    const server = states.get<ServerState | null>(serverRef(item.serverId))
    if (isPast || server?.bounceMail !== true || server.removedAtMs !== undefined) return NOTHING
    const rows = new MessageRows(context.shard, item)
    const entry = rows.entry(facts, item.messageId)
    const packed = rows.head(facts, item.short)
    const event = unpackStatus(rows.status(facts, item), msOf(item.messageId)).events[place]
    if (entry === null || packed === null || event === undefined) return NOTHING
    const head = unpackHead(packed, item.recipients)
    if (isErasedHead(head)) return NOTHING
    const job = readJob({ item, accountId: server.accountId, entry, head }, { server, facts, shard: context.shard })
    if (job === null) return NOTHING
    if ('kind' in job) return job
    const hasOriginal = (notifyOf(head.raw, item.recipient) & NOTIFY.same) !== 0
    const { envid = null } = head.raw?.reports ?? {}
    return { kind: 'done', reply: { attempt: job, event, place, atMs, envid, hasOriginal } }
  },
}

/** The message with its addresses; null if one of them is erased, or the sender's domain is not verified. */
function readJob(
  found: LoggedMessage,
  { server, facts, shard }: { readonly server: ServerState; readonly facts: Facts; readonly shard: number },
): AttemptJob | Extract<Decision<never>, { kind: 'need' }> | null {
  const missing = addressFacts(shard, found).filter((fact) => !facts.has(fact))
  if (missing.length > 0) return { kind: 'need', facts: missing }
  const addressOf = (number: number) => addressIn(facts, shard, found.accountId, number)
  const sending = sendingFact(shard, found, addressOf(found.entry.sender))
  if (!facts.has(sending)) return { kind: 'need', facts: [sending] }
  const hasReturnPath = facts.field(sending.key, sending.fields[0]) !== null
  return hasReturnPath ? makeJob(found, { addressOf, hasReturnPath, server, listName: null }) : null
}

export const bounceMailOutcome: CommandType<OutcomeBody<BounceMailOutcome>, null> = {
  name: 'bounce mail outcome',
  frees: true,
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide({ lane, item, attempt, current, outcome }, _states, _facts, { nowMs }) {
    if (outcome === null || outcome.result !== 'deferred' || !current) return NOTHING
    const hintMs = outcome.response === null ? null : parseRetryHintMs(outcome.response)
    const { atMs: acceptedAtMs } = parseReportItem(item)
    const nextAtMs = nextAttemptAtMs({ attempt, acceptedAtMs, nowMs, unit: hashFraction(`${item}#${attempt}`), hintMs })
    return { kind: 'done', reply: null, due: nextAtMs === null ? [] : [{ lane, item, atMs: nextAtMs }] }
  },
}
