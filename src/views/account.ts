/**
 * account - the Account resource, and whether an operator's key is live
 *
 * Keys: `key:<sha256>`
 *
 * Spec account.read, account.limits
 */

import type { Account } from '../../schemas/account.ts'
import type { AccountCounters, AccountState } from '../state/account.ts'
import { limitsOfAccount } from '../state/limit.ts'
import { formatInstant } from './instant.ts'
import { keyFact, type OperatorKey, ownerOfRow, type Reader } from './key.ts'
import { formatLimit } from './server.ts'

/** Operator keys live on shard 0. */
const OPERATOR_SHARD = 0

/** Whether an operator's key is live now; null when the store did not answer. */
export async function isOperatorLive(read: Reader, owner: OperatorKey): Promise<boolean | null> {
  const seen = await read(OPERATOR_SHARD, [keyFact(OPERATOR_SHARD, owner.hash)])
  return seen === null ? null : ownerOfRow(owner.hash, seen[0]) !== null
}

/** The resource of an account. */
export function formatAccount(state: AccountState, counters: AccountCounters | null, nowMs: number): Account {
  return {
    accountId: state.accountId,
    name: state.name,
    status: state.status,
    createdAt: formatInstant(state.createdAtMs),
    limits: limitsOfAccount(state, counters, nowMs).map(formatLimit),
    approvedCap: state.approvedCap,
    monthlyCap: state.monthlyCap,
    highestCap: state.highestCap,
    serverLimit: state.serverLimit,
    subscriptionActive: state.subscriptionActive,
  }
}
