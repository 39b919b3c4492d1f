/**
 * count - the use of limits by an accepted request, and its figures: one for each recipient.
 *
 * Spec limit.count, stats.count
 */

import type { AccountCounters } from '../../state/account.ts'
import { periodOf, take } from '../../state/quota.ts'
import { changeScheduled } from '../../state/scheduled.ts'
import type { Segment } from '../../state/segment.ts'
import type { HourCounters, ReportCount, ServerCounters } from '../../state/server.ts'
import type { CapTelling } from './cap.ts'
import type { SendTurn } from './send-turn.ts'

interface Counts {
  readonly segment: Segment | null
  readonly hour: HourCounters
  readonly telling?: CapTelling | null
  /** Absent if the request causes none. */
  readonly bounceMails?: ReportCount | undefined
}

type Writable<Value> = { -readonly [Name in keyof Value]: Value[Name] }

const NONE = {}

/** Counters of account and server once the request is counted. Test mail counts on the account's test limits alone. */
export function countersAfter(
  turn: SendTurn,
  { segment, hour, telling = null, bounceMails }: Counts,
): { owner: string; value: unknown }[] {
  const { body, names, context, requested, accountCounters, serverCounters } = turn
  const minute = periodOf('minute', context.nowMs)
  const month = periodOf('month', context.nowMs)
  // They are copied and then written, because object literals with a spread and further fields have no shape that the
  // engine caches.
  const account: Writable<AccountCounters> = { ...(accountCounters ?? NONE) }
  const server: Writable<ServerCounters> = { ...(serverCounters ?? NONE) }
  if (body.test) {
    account.testMinute = take(account.testMinute, minute, requested)
    account.testMonth = take(account.testMonth, month, requested)
  } else {
    account.minute = take(account.minute, minute, requested)
    account.month = take(account.month, month, requested)
    server.minute = take(server.minute, minute, requested)
    server.month = take(server.month, month, requested)
  }
  server.hour = hour
  for (const { sendAtMs, recipients } of body.messages) {
    if (sendAtMs === null) continue
    const change = recipients.length
    server.scheduled = changeScheduled(server.scheduled, { sendAtMs, change, nowMs: context.nowMs })
  }
  if (segment !== null) server.segment = segment
  if (bounceMails !== undefined) server.bounceMails = bounceMails
  if (telling !== null) {
    Object.assign(account, telling.account)
    Object.assign(server, telling.server)
  }
  return [
    { owner: names.accountOwner, value: account },
    { owner: names.serverOwner, value: server },
  ]
}
