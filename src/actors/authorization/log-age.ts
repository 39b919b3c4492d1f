/**
 * log-age - whether a message has left the log, or is about to, by the months for which its account's log is kept.
 *
 * Nothing is read for a message of less than 30 days.
 *
 * Spec retention.settings
 */

import type { Context, Facts, Need, Ref, States } from '../../../cluster/behaviour.ts'
import { msOf } from '../../../cluster/id.ts'
import { LOG_RETENTION_MONTHS_MIN } from '../../../schemas/limits.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { isPastAge, mayBePastAge } from '../../state/age.ts'
import { installationFact, installationMonths, logMonthsOf, MONTHS_FIELD } from '../../state/log-retention.ts'
import type { AttemptItem } from '../../state/message/item.ts'
import { isTestSegment } from '../../state/segment.ts'
import { type ServerState, serverRef } from '../../state/server.ts'
import { isGone } from '../../state/webhook/delivery.ts'
import type { WebhookState } from '../../state/webhook/webhook.ts'

/** What a turn has read, and when it is. */
export interface AgeTurn {
  readonly states: States
  readonly facts: Facts
  readonly context: Pick<Context, 'shard' | 'nowMs'>
}

/** The months for which the log of an account is kept, or what must be read first. */
export function logMonths({ states, facts, context }: AgeTurn, accountId: string): number | Need {
  const ref = accountRef(accountId)
  const fact = installationFact(context.shard)
  if (!states.has(ref) || !facts.has(fact)) return { kind: 'need', entities: [ref], facts: [fact] }
  const months = installationMonths(facts.field(fact.key, MONTHS_FIELD))
  return logMonthsOf(states.get<AccountState | null>(ref), months)
}

/** Whether the message of an item has left the log, or is about to; or what must be read first. */
export function isPastLog(
  item: Pick<AttemptItem, 'messageId' | 'segment' | 'serverId'>,
  turn: AgeTurn,
): boolean | Need {
  const { nowMs } = turn.context
  const submittedAtMs = msOf(item.messageId)
  if (!mayBePastAge(submittedAtMs, nowMs)) return false
  const test = isTestSegment(item.segment)
  if (test || isPastAge(submittedAtMs, { nowMs, test })) return isPastAge(submittedAtMs, { nowMs, test })
  const server = serverIn(turn.states, item.serverId)
  if (server === null || 'kind' in server) return server ?? true
  const months = logMonths(turn, server.accountId)
  return typeof months === 'number' ? isPastAge(submittedAtMs, { nowMs, test, months }) : months
}

/** Whether what a delivery tells of has left the log; or what must be read first. */
export function isPastDelivery(
  delivery: Parameters<typeof isGone>[0],
  { accountId, test }: Pick<WebhookState, 'accountId' | 'test'>,
  turn: AgeTurn,
): boolean | Need {
  const { nowMs } = turn.context
  // By the fewest months first: most deliveries are young.
  if (!isGone(delivery, { nowMs, test, months: LOG_RETENTION_MONTHS_MIN })) return false
  const months = logMonths(turn, accountId)
  return typeof months === 'number' ? isGone(delivery, { nowMs, test, months }) : months
}

function serverIn(states: States, serverId: string): ServerState | Need | null {
  const ref: Ref = serverRef(serverId)
  return states.has(ref) ? states.get<ServerState | null>(ref) : { kind: 'need', entities: [ref] }
}
