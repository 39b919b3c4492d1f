/**
 * recipient-rules - whether a recipient under INBOUND_DOMAIN is taken: the table of replies, in its order
 *
 * Permanent refusals come first, and temporary ones, which may have changed by the next attempt, after them. One
 * transaction is one account's: it becomes one commit, and has one true answer. Senders bring the rest in another one.
 * A paused account, or one that is not paid for, receives: both concern sending.
 *
 * Spec inbound.recipient, inbound.limit
 */

import { periodOf, used } from '../state/quota.ts'
import type { InboundAddressee } from '../views/inbound/address.ts'
import type { SmtpAnswer } from './smtp-answer.ts'

/** The transaction that a recipient would join. */
export interface JoinedTransaction {
  /** The account of its inbound recipients; null if it has none. */
  readonly accountId: string | null
  /** The number of these recipients. */
  readonly recipients: number
  /** Whether it has return paths among its recipients. */
  readonly hasReturnPaths: boolean
}

/** The data about a recipient. `unavailable` means that the store does not answer. */
export interface RecipientCase {
  readonly addressee: InboundAddressee | null | 'unavailable'
  readonly joined: JoinedTransaction
  /** Whether store and disk have room for new mail. */
  readonly hasRoom: boolean
  readonly nowMs: number
}

export const TEMPORARY_FAILURE: SmtpAnswer = { code: 451, text: '4.3.0 Temporary failure, try again later' }
export const NO_ROOM: SmtpAnswer = { code: 452, text: '4.3.1 Out of room for new mail, try again later' }
export const TOO_MANY_A_MINUTE: SmtpAnswer = { code: 451, text: '4.7.1 Too many recipients a minute, try again later' }
export const NO_SUCH_RECIPIENT: SmtpAnswer = { code: 550, text: '5.1.1 No such recipient' }
const NO_LONGER: SmtpAnswer = { code: 550, text: '5.2.1 Address no longer accepts mail' }
const CLOSED: SmtpAnswer = { code: 550, text: '5.7.1 Account is closed' }
const ONE_ACCOUNT: SmtpAnswer = { code: 452, text: '4.5.3 One account per transaction' }

/** Judges a recipient; null if it is accepted. */
export function judgeInboundRecipient({ addressee, joined, hasRoom, nowMs }: RecipientCase): SmtpAnswer | null {
  if (addressee === 'unavailable') return TEMPORARY_FAILURE
  if (addressee === null || addressee.stream.kind !== 'inbound') return NO_SUCH_RECIPIENT
  const { stream, server, account, counters } = addressee
  if (stream.archivedAtMs !== null || server.removedAtMs !== undefined) return NO_LONGER
  if (account.status === 'closed') return CLOSED
  if (joined.hasReturnPaths) return ONE_ACCOUNT
  if (joined.accountId !== null && joined.accountId !== account.accountId) return ONE_ACCOUNT
  const taken = used(counters?.inboundMinute, periodOf('minute', nowMs)) + joined.recipients
  if (taken + 1 > account.inboundPerMinuteLimit) return TOO_MANY_A_MINUTE
  return hasRoom ? null : NO_ROOM
}
