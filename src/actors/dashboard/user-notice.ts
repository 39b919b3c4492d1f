/**
 * user-notice - who can sign in is told by mail what has changed of how he does
 *
 * Whoever has changed it in his place is seen that way. The item waits in the lane of notices, in the commit of the
 * change; whom it is for is read when it is sent, so who is forgotten meanwhile is told nothing.
 *
 * Item: `me.<what>.<user short>.<ms>`
 *
 * Spec session.notice
 */

import type { Due } from '../../../cluster/behaviour.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import { NOTICE_LANE } from '../../state/dashboard/places.ts'

/** What has changed, as items name it. */
export const USER_NOTICES = [
  'totp',
  'remove-totp',
  'passkey',
  'remove-passkey',
  'codes',
  'password',
  'operator-link',
  'operator-link-factors',
] as const
export type UserNotice = (typeof USER_NOTICES)[number]

const ITEM = /^me\.([a-z-]+)\.([^.]+)\.(\d+)$/

/** An item of the lane that tells a user. */
export interface UserNoticeItem {
  readonly what: UserNotice
  readonly userId: string
  readonly atMs: number
}

/** The item that tells a user; none for what he is told nothing of. */
export function userNoticeDues(what: string | undefined, userId: string, nowMs: number): Due[] {
  if (!isUserNotice(what)) return []
  return [{ lane: NOTICE_LANE, item: `me.${what}.${shortId(userId)}.${nowMs}`, atMs: nowMs }]
}

/** What an item of the lane of notices tells a user; null where it tells of something else. */
export function userNoticeOfItem(item: string): UserNoticeItem | null {
  const [, what, short = '', atMs] = ITEM.exec(item) ?? []
  return isUserNotice(what) ? { what, userId: idOfShort(short), atMs: Number(atMs) } : null
}

function isUserNotice(what: string | undefined): what is UserNotice {
  return USER_NOTICES.some((one) => one === what)
}
