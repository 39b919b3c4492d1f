/**
 * account - the Account resource, and whether an operator's key is live
 *
 * Keys: `key:<sha256>`
 *
 * Spec account.read, account.limits
 */

import type { Account, AccountApplication } from '../../schemas/account.ts'
import type { OperatorRole } from '../../schemas/operator/role.ts'
import type { AccountCounters, AccountState } from '../state/account.ts'
import { DESK_SHARD } from '../state/dashboard/desk.ts'
import type { Application } from '../state/dashboard/member.ts'
import { limitsOfAccount } from '../state/limit.ts'
import { formatInstant } from './instant.ts'
import { keyFact, type OperatorKey, ownerOfRow, type Reader } from './key.ts'
import { formatLimit } from './server.ts'

/**
 * Returns the role of an operator's active key. For a session, the key that opened it must be active too, and that
 * key's role applies. Out: false if it is not active; null if the store did not answer.
 */
export async function readActiveRole(
  read: Reader,
  { hash, operatorHash }: Pick<OperatorKey, 'hash' | 'operatorHash'>,
): Promise<OperatorRole | false | null> {
  const hashes = operatorHash === null ? [hash] : [hash, operatorHash]
  const seen = await read(
    DESK_SHARD,
    hashes.map((one) => keyFact(DESK_SHARD, one)),
  )
  if (seen === null) return null
  const owners = hashes.map((one, at) => ownerOfRow(one, seen[at]))
  const key = owners.at(-1)
  return owners.every((owner) => owner?.kind === 'operator') && key?.kind === 'operator' ? key.role : false
}

/** Whether an operator's key is active now; null if the store did not answer. */
export async function isOperatorLive(
  read: Reader,
  key: Pick<OperatorKey, 'hash' | 'operatorHash'>,
): Promise<boolean | null> {
  const role = await readActiveRole(read, key)
  return role === null ? null : role !== false
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

/** The application of a pending account, as its members described it. */
export function formatApplication(application: Application | null): AccountApplication {
  if (application === null) return null
  const { monthlyVolume, purpose, website, atMs } = application
  return { monthlyVolume, purpose, website, at: formatInstant(atMs) }
}
