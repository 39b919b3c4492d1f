/**
 * user-notice - notifies users by mail of changes to their sign-in
 *
 * This reveals changes by someone else. The item is placed in the lane of notices by the commit of the change. The
 * recipient is read when it is sent, so users deleted in the meantime get no mail.
 *
 * Item: `me.<what>.<user short>.<ms>`
 *
 * Spec session.notice
 */

import type { Due } from '../../../cluster/behaviour.ts'
import { idOfShort, shortId } from '../../../cluster/id.ts'
import { NOTICE_LANE } from '../../state/dashboard/places.ts'

/** Kinds of changes, as items name them. */
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

/** An item of the lane for a user. */
export interface UserNoticeItem {
  readonly what: UserNotice
  readonly userId: string
  readonly atMs: number
}

/** The item for a user; empty for changes without a notice. */
export function userNoticeDues(what: string | undefined, userId: string, nowMs: number): Due[] {
  if (!isUserNotice(what)) return []
  return [{ lane: NOTICE_LANE, item: `me.${what}.${shortId(userId)}.${nowMs}`, atMs: nowMs }]
}

/** The user notice of an item of the lane; null if it is another notice. */
export function userNoticeOfItem(item: string): UserNoticeItem | null {
  const [, what, short = '', atMs] = ITEM.exec(item) ?? []
  return isUserNotice(what) ? { what, userId: idOfShort(short), atMs: Number(atMs) } : null
}

function isUserNotice(what: string | undefined): what is UserNotice {
  return USER_NOTICES.some((one) => one === what)
}
