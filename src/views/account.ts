/**
 * account - the Account resource, and whether an operator's key is live
 *
 * Keys: `key:<sha256>`
 *
 * Spec account.read, account.limits
 */

import type { Account, AccountApplication } from '../../schemas/account.ts'
import type { AccountCounters, AccountState } from '../state/account.ts'
import { DESK_SHARD } from '../state/dashboard/desk.ts'
import type { Application } from '../state/dashboard/member.ts'
import { limitsOfAccount } from '../state/limit.ts'
import { formatInstant } from './instant.ts'
import { keyFact, type OperatorKey, ownerOfRow, type Reader } from './key.ts'
import { formatLimit } from './server.ts'

/**
 * Whether an operator's key is live now, of a session also the key that it was opened with; null when the store did not
 * answer.
 */
export async function isOperatorLive(
  read: Reader,
  { hash, operatorHash }: Pick<OperatorKey, 'hash' | 'operatorHash'>,
): Promise<boolean | null> {
  const hashes = operatorHash === null ? [hash] : [hash, operatorHash]
  const seen = await read(
    DESK_SHARD,
    hashes.map((one) => keyFact(DESK_SHARD, one)),
  )
  return seen === null ? null : hashes.every((one, at) => ownerOfRow(one, seen[at])?.kind === 'operator')
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

/** What a pending account has said of itself. */
export function formatApplication(application: Application | null): AccountApplication {
  if (application === null) return null
  const { monthlyVolume, purpose, website, atMs } = application
  return { monthlyVolume, purpose, website, at: formatInstant(atMs) }
}
