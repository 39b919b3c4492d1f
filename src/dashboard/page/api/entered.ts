/** entered - notifies the browser's other tabs of a new session: its user and account */
import type { SignedIn } from '../../../../schemas/dashboard/session.ts'

/** Name in localStorage. */
export const ENTERED = 'entered'

/** Whose session it is, and in which account. */
export function placeOf({ user, account }: SignedIn): string {
  return `${account.accountId}.${user.userId}`
}

/** Announces a new session. Equal values are not announced, so a random part is added. */
export function tellEntered(session: SignedIn): void {
  localStorage.setItem(ENTERED, `${placeOf(session)} ${Math.random()}`)
}
