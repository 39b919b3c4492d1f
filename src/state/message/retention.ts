/**
 * retention - how long the text and the HTML of sent mail are kept, as set for account, server and stream.
 *
 * The stream's value counts before the server's, and that before the account's; 0 means until no attempt is left. The
 * service's default is the maximum, which a value only shortens. Content is never removed while an attempt is left.
 *
 * Spec retention.settings
 */

import type { Due } from '../../../cluster/behaviour.ts'
import { TIMERS_LANE } from '../../../cluster/keyspace.ts'
import { SENT_CONTENT_DAYS_MAX, TEST_SENT_CONTENT_DAYS_MAX } from '../../../schemas/limits.ts'
import type { AccountState } from '../account.ts'
import { contentExpiresAtMs } from '../age.ts'
import { DAY_MS } from '../calendar.ts'
import type { ServerState } from '../server.ts'
import type { StreamState } from '../stream.ts'
import { isOpen, type RecipientState } from './status.ts'

export const CONTENT_TIMER = 'content'

/** Whose settings count for a message. */
export interface ContentOwners {
  readonly account: Pick<AccountState, 'sentContentDays'> | null
  readonly server: Pick<ServerState, 'mode' | 'sentContentDays' | 'streamContentDays' | 'contentChanges'>
}

/** Days for which the content of a stream's messages is kept; without a stream, those that a stream inherits. */
export function sentContentDays(
  { account, server }: ContentOwners,
  stream: Pick<StreamState, 'sentContentDays'> | null,
): number {
  const most = server.mode === 'test' ? TEST_SENT_CONTENT_DAYS_MAX : SENT_CONTENT_DAYS_MAX
  const set = stream?.sentContentDays ?? server.sentContentDays ?? account?.sentContentDays ?? most
  return Math.min(most, set)
}

/** Each number of days below the service's default that messages of a server may have, ascending. */
export function shortContentDays(owners: ContentOwners): number[] {
  const { server } = owners
  const most = sentContentDays({ account: null, server: { mode: server.mode } }, null)
  const all = [sentContentDays(owners, null), ...(server.streamContentDays ?? [])]
  return [...new Set(all)].filter((days) => days < most).sort((one, other) => one - other)
}

/** A text that differs once any setting has changed which counts for a server. */
export function markOfSettings({ account, server }: ContentOwners): string {
  return `${account?.sentContentDays ?? ''}/${server.contentChanges ?? 0}`
}

/** When the content of a message ends, ms, if no attempt is left then. */
export function sentContentEndsAtMs(submittedAtMs: number, days: number): number {
  return submittedAtMs + days * DAY_MS
}

/** A message as far as its content's age goes. */
export interface AgedMessage {
  readonly submittedAtMs: number
  readonly test: boolean
  readonly contentDays: number
  readonly recipients: readonly Pick<RecipientState, 'status'>[]
}

/** Whether a message keeps its content: until its days are over, and as long as an attempt is left. */
export function keepsContent({ submittedAtMs, test, contentDays, recipients }: AgedMessage, nowMs: number): boolean {
  if (nowMs < sentContentEndsAtMs(submittedAtMs, contentDays)) return true
  return nowMs < contentExpiresAtMs(submittedAtMs, test) && recipients.some(({ status }) => isOpen(status))
}

/** The timer that removes content of a server whose time is over. */
export function contentDue(serverId: string, atMs: number): Due {
  return { lane: TIMERS_LANE, item: `${CONTENT_TIMER}:${serverId}`, atMs }
}
