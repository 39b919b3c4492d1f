/**
 * account - the entity of an account, with its status, its limits and its live keys.
 *
 * States: pending (test servers send), active, paused (nothing is accepted; with `held` nothing is attempted either),
 * closed (nothing is written, for good). Counters `account:<id>`: minute and month of its live servers together,
 * and of its test servers together.
 *
 * Spec account.read, account.limits
 */

import type { EntityType, Ref } from '../../cluster/behaviour.ts'
import {
  HIGHEST_CAP_FACTOR,
  MONTHLY_CAP_DEFAULT,
  PER_MINUTE_DEFAULT,
  SERVER_LIMIT_DEFAULT,
} from '../../schemas/limits.ts'
import { applyKeyEvent, type KeyEvent, type LiveKey } from './api-key.ts'
import { memoize } from './memoize.ts'
import type { CapTold, Period } from './quota.ts'

export type AccountStatus = 'pending' | 'active' | 'paused' | 'closed'

/** Figures that an operator may change. */
export interface AccountLimits {
  readonly approvedCap: number
  readonly monthlyCap: number
  /** Null = a multiple of the approved cap. */
  readonly highestCap: number | null
  readonly serverLimit: number
  readonly perMinuteLimit: number
  readonly testPerMinuteLimit: number
  readonly testMonthlyCap: number
  readonly inboundPerMinuteLimit: number
  readonly subscriptionActive: boolean
}

export interface AccountState extends AccountLimits {
  readonly accountId: string
  readonly name: string
  readonly status: AccountStatus
  readonly createdAtMs: number
  readonly keys: readonly LiveKey[]
  /** Servers that were not removed. */
  readonly servers: number
  /** Whether accepted mail waits until the account is resumed. */
  readonly held: boolean
  /** Days for which text and HTML of sent mail are kept; null or absent: the service's. */
  readonly sentContentDays?: number | null
  /** Months for which its log is kept; null or absent: the installation's. */
  readonly logRetentionMonths?: number | null
  /** Its servers that have any webhook; absent if none has. */
  readonly webhookServers?: readonly WebhookServer[]
}

/** A server with webhooks, for the events of caps that several servers share. */
export interface WebhookServer {
  readonly serverId: string
  readonly mode: 'live' | 'test'
}

/** Changes of an account by events. */
export type AccountChanges = Partial<
  AccountLimits & Pick<AccountState, 'name' | 'status' | 'servers' | 'held' | 'sentContentDays' | 'logRetentionMonths'>
>

/** Counters of an account. */
export interface AccountCounters {
  readonly minute?: Period
  readonly month?: Period
  readonly testMinute?: Period
  readonly testMonth?: Period
  /** Recipients of received mail. */
  readonly inboundMinute?: Period
  /** Events sent about the monthly cap, and about that of test servers. */
  readonly monthTold?: CapTold
  readonly testMonthTold?: CapTold
}

export type AccountEvent =
  | { readonly type: 'created'; readonly account: AccountState }
  | { readonly type: 'patched'; readonly changes: AccountChanges }
  | { readonly type: 'webhook servers'; readonly webhookServers: readonly WebhookServer[] }
  | KeyEvent

/** The initial limits of an account. */
export const ACCOUNT_DEFAULTS: AccountLimits = {
  approvedCap: MONTHLY_CAP_DEFAULT,
  monthlyCap: MONTHLY_CAP_DEFAULT,
  highestCap: null,
  serverLimit: SERVER_LIMIT_DEFAULT,
  perMinuteLimit: PER_MINUTE_DEFAULT,
  testPerMinuteLimit: PER_MINUTE_DEFAULT,
  testMonthlyCap: MONTHLY_CAP_DEFAULT,
  inboundPerMinuteLimit: PER_MINUTE_DEFAULT,
  subscriptionActive: true,
}

export const accountEntity: EntityType<AccountState | null, AccountEvent> = {
  kind: 'account',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'created') return event.account
    if (state === null) return null
    if (event.type === 'webhook servers') return { ...state, webhookServers: event.webhookServers }
    if (event.type === 'patched') return { ...state, ...event.changes }
    return { ...state, keys: applyKeyEvent(state.keys, event) }
  },
}

export const accountRef = memoize((accountId): Ref => ({ kind: 'account', id: accountId }))

/** Owner of an account's counters. */
export const accountOwner = memoize((accountId) => `account:${accountId}`)

/** The cap that an account's monthly cap may not pass. */
export function highestCapOf({ highestCap, approvedCap }: Pick<AccountLimits, 'highestCap' | 'approvedCap'>): number {
  return highestCap ?? approvedCap * HIGHEST_CAP_FACTOR
}
