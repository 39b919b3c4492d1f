/** own-user - whose request it is */

import { type Answer, refusalReply } from '../http/respond.ts'
import type { User } from '../state/dashboard/user.ts'
import { readUser } from '../views/dashboard/user.ts'
import { type DashboardDeps, type DashboardRequest, sessionOf } from './deps.ts'

/** Message if a second factor is required and a password is not enough. */
export const SHOW_FACTOR = 'Confirm with a code or a passkey: you have a second factor'

/** The user of a request. */
export async function readOwnUser({ read }: DashboardDeps, request: DashboardRequest): Promise<User | Answer> {
  const user = await readUser(read, sessionOf(request).row.userId)
  return user === null || user === 'unavailable' ? refusalReply('unavailable') : user
}
