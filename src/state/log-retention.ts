/**
 * log-retention - for how many months the log of an account is kept, as the installation and the account say.
 *
 * The shorter of both counts. The installation's value has a copy on each shard, so that a turn can read it.
 *
 * Key: `retention`
 *
 * Spec retention.settings
 */

import type { Due, Fact } from '../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../cluster/keyspace.ts'
import { LOG_RETENTION_MONTHS_MAX } from '../../schemas/limits.ts'
import type { AccountState } from './account.ts'
import { retentionKey } from './keys.ts'

export const PEOPLE_TIMER = 'people'

/** With how many months the persons of an account were walked last; absent: the default. */
export interface PeopleCounters {
  readonly months: number
}

/** The shard whose copy of the installation's months is shown, and written last. */
export const INSTALLATION_SHARD = 0
/** The field of the installation's months. */
export const MONTHS_FIELD = 'logRetentionMonths'

/** The read of the installation's months. */
export function installationFact(shard: number): Fact & { readonly read: 'fields' } {
  return { read: 'fields', key: retentionKey(shard), fields: [MONTHS_FIELD] }
}

/** The installation's months, from what its read found; null: the default. */
export function installationMonths(stored: string | null): number | null {
  return stored === null ? null : Number(stored)
}

/** The months for which an account's log is kept. Takes those of the installation, null for the default. */
export function logMonthsOf(
  account: Pick<AccountState, 'logRetentionMonths'> | null,
  installation: number | null,
): number {
  const most = LOG_RETENTION_MONTHS_MAX
  return Math.min(most, account?.logRetentionMonths ?? most, installation ?? most)
}

/** Owner of the counters of an account's walk over its persons. */
export function peopleOwner(accountId: string): string {
  return `${PEOPLE_TIMER}:${accountId}`
}

/** The step of a walk over the persons of an account. Takes the index of their hash, from 0. */
export function peopleDue(accountId: string, place: number, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${PEOPLE_TIMER}:${accountId}:${place}`, atMs }
}
