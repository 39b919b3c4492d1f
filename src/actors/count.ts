/**
 * count - what an accepted request takes from the limits: one for each recipient.
 *
 * Spec limit.count
 */

import type { SendTurn } from './accept.ts'
import type { CapTelling } from './cap.ts'
import { type Period, periodOf, take } from './quota.ts'
import type { Segment } from './segment.ts'
import type { ServerCounters } from './server.ts'

/** Counters of account and server once the request is counted. Test mail counts on the account's test limits alone. */
export function countersAfter(
  turn: SendTurn,
  segment: Segment | null,
  telling: CapTelling | null = null,
): { owner: string; value: unknown }[] {
  const { body, names, context, requested, accountCounters, serverCounters } = turn
  const minute = periodOf('minute', context.nowMs)
  const month = periodOf('month', context.nowMs)
  const taken = (counter: Period | undefined, now: number) => take(counter, now, requested)
  const account = body.test
    ? {
        ...accountCounters,
        testMinute: taken(accountCounters?.testMinute, minute),
        testMonth: taken(accountCounters?.testMonth, month),
      }
    : {
        ...accountCounters,
        minute: taken(accountCounters?.minute, minute),
        month: taken(accountCounters?.month, month),
      }
  const counted = body.test
    ? serverCounters
    : { ...serverCounters, minute: taken(serverCounters?.minute, minute), month: taken(serverCounters?.month, month) }
  const server: ServerCounters = segment === null ? { ...counted } : { ...counted, segment }
  return [
    { owner: names.accountOwner, value: telling === null ? account : { ...account, ...telling.account } },
    { owner: names.serverOwner, value: telling === null ? server : { ...server, ...telling.server } },
  ]
}
