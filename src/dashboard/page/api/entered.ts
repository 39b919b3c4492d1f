/** entered - tells the browser's other tabs that its cookie is of another session: whose, and in which account */
import type { SignedIn } from '../../../../schemas/dashboard/session.ts'

/** Name in localStorage. */
export const ENTERED = 'entered'

/** Whose session it is, and in which account. */
export function placeOf({ user, account }: SignedIn): string {
  return `${account.accountId}.${user.userId}`
}

/** Tells that a session has begun. What is written twice alike is told to nobody, so some random goes with it. */
export function tellEntered(session: SignedIn): void {
  localStorage.setItem(ENTERED, `${placeOf(session)} ${Math.random()}`)
}
