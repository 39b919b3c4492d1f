/**
 * server - the entity of a server of an account, with its mode, its own limits and its live keys.
 *
 * Counters `server:<id>`: the use of its minute and month, and the open segment of its log.
 *
 * Spec server.read
 */

import type { EntityType, Ref } from '../../cluster/behaviour.ts'
import { applyKeyEvent, type KeyEvent, type LiveKey } from './api-key.ts'
import { memoize } from './memoize.ts'
import type { CapTold, Period } from './quota.ts'
import type { ScheduledDays } from './scheduled.ts'
import type { Segment } from './segment.ts'

export type ServerMode = 'live' | 'test'

export interface ServerState {
  readonly serverId: string
  readonly accountId: string
  readonly name: string
  readonly mode: ServerMode
  readonly createdAtMs: number
  /** Emails a minute; null = the account's limit alone. */
  readonly perMinuteLimit: number | null
  /** Emails a month; null = the account's cap alone. */
  readonly monthlyCap: number | null
  readonly defaultStreamId: string
  readonly keys: readonly LiveKey[]
  /** Whether it has any webhook, enabled or not; absent if it has none. */
  readonly hasWebhooks?: boolean
  /** Days for which text and HTML of sent mail are kept; null or absent: the account's. */
  readonly sentContentDays?: number | null
  /** What its streams have, or had, in place of it: each number of days once, at most 31. */
  readonly streamContentDays?: readonly number[]
  /** How often a retention of its own or of a stream was changed: removed content is looked for again. */
  readonly contentChanges?: number
  /** Whether SMTP clients of the server get bounce mail; absent: no. */
  readonly bounceMail?: boolean
  /** Set once it was removed: it has no key then, and is not shown. */
  readonly removedAtMs?: number
}

/** Changes of a server by an order. */
export type ServerChanges = Partial<
  Pick<
    ServerState,
    'name' | 'perMinuteLimit' | 'monthlyCap' | 'bounceMail' | 'sentContentDays' | 'streamContentDays' | 'contentChanges'
  >
>

/** Figures of one hour, stream by stream (`message/hour-count.ts`). */
export type HourCounters = readonly [hour: number, streams: Readonly<Record<string, readonly number[]>>]

/** An hour, and its bounce mails. */
export type ReportCount = readonly [hour: number, count: number]

/** Counters of a server. */
export interface ServerCounters {
  readonly minute?: Period
  readonly month?: Period
  readonly segment?: Segment
  /** Recipients accepted in the hour that runs. */
  readonly hour?: HourCounters
  /** Events sent about the monthly cap. */
  readonly monthTold?: CapTold
  /** Until when a feed of its events is open. */
  readonly listenedUntilMs?: number
  /** Broadcasts that are open. */
  readonly openBroadcasts?: number
  /** Recipients of scheduled messages. */
  readonly scheduled?: ScheduledDays
  /** Bounce mails in the hour that runs. */
  readonly bounceMails?: ReportCount
}

export type ServerEvent =
  | { readonly type: 'created'; readonly server: ServerState }
  | { readonly type: 'webhooks'; readonly hasWebhooks: boolean }
  | { readonly type: 'patched'; readonly changes: ServerChanges }
  | { readonly type: 'removed'; readonly removedAtMs: number }
  | KeyEvent

export const serverEntity: EntityType<ServerState | null, ServerEvent> = {
  kind: 'server',
  version: 1,
  empty: null,
  apply(state, event) {
    if (event.type === 'created') return event.server
    if (state === null) return null
    if (event.type === 'webhooks') return { ...state, hasWebhooks: event.hasWebhooks }
    if (event.type === 'patched') return { ...state, ...event.changes }
    if (event.type === 'removed') return { ...state, keys: [], removedAtMs: event.removedAtMs }
    return { ...state, keys: applyKeyEvent(state.keys, event) }
  },
}

/** The field of a server's name among the names of its account. */
export function serverName(name: string): string {
  return `server/${name}`
}

export const serverRef = memoize((serverId): Ref => ({ kind: 'server', id: serverId }))

/** Owner of a server's counters. */
export const serverOwner = memoize((serverId) => `server:${serverId}`)

/** A server as its account sees it: null for another account's, and for one that was removed. */
export function shownServer(server: ServerState | null, accountId: string): ServerState | null {
  return server === null || server.accountId !== accountId || server.removedAtMs !== undefined ? null : server
}
