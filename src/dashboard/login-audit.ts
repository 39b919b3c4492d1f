/**
 * login-audit - records failed tries with a user's address, or in a user's session, in the log of the account
 *
 * It is not awaited, because the time of an answer must not show whether an address is known. A reached limit is
 * recorded once, so that a flood of tries makes no flood of entries. An unknown address has no account to record in.
 *
 * Spec member.audit, session.limits
 */

import { homeShard } from '../../cluster/id.ts'
import { giveOrder } from '../routes/answer.ts'
import type { MemberAct } from '../state/dashboard/act.ts'
import { bucketOfHmac } from '../state/hash-fraction.ts'
import { readUserByLogin } from '../views/dashboard/user.ts'
import type { SessionKey } from '../views/key.ts'
import { type DashboardDeps, type DashboardRequest, sessionOf } from './deps.ts'
import { isLimitNews } from './login-rate-limit.ts'

const NOT_NOTED = 'An action of a member could not be written to the audit log of the account'

/** Records a refusal in an account; without one it does nothing. */
export function noteRefusal(deps: DashboardDeps, accountId: string | undefined, userId: string): void {
  if (accountId === undefined) return
  note(deps, { accountId, userId, act: 'signInRefused', targets: {} }).catch(() => undefined)
}

/** Notes that the tries with an address have reached their limit. */
export function noteLimit(deps: DashboardDeps, address: string): void {
  noteLimitOfUser(deps, address).catch(() => undefined)
}

async function noteLimitOfUser(deps: DashboardDeps, address: string): Promise<void> {
  const hmac = deps.secrets.loginHmac(address)
  const user = await readUserByLogin(deps.read, hmac)
  const accountId = user === 'unavailable' ? undefined : user?.accounts[0]
  if (user === null || user === 'unavailable' || accountId === undefined) return
  if (!(await isLimitNews(deps, bucketOfHmac(hmac), `a.${hmac}`))) return
  await note(deps, { accountId, userId: user.userId, act: 'limitReached', targets: {} })
}

/** Records that a signed-in user has reached a limit. */
export function noteSessionLimit(deps: DashboardDeps, { accountId, row }: SessionKey): void {
  const { userId } = row
  const act = { accountId, userId, act: 'limitReached', targets: {} }
  isLimitNews(deps, homeShard(userId), `u.${userId}`)
    .then((isNews) => (isNews ? note(deps, act) : undefined))
    .catch(() => undefined)
}

/** Records a member's change of their own data, in the current account. */
export function noteOwn(deps: DashboardDeps, request: DashboardRequest): Promise<void> {
  const { accountId, row } = sessionOf(request)
  return note(deps, { accountId, userId: row.userId, act: request.route.name, targets: { ...request.params } })
}

/** Records an action that changes nothing in the account itself; if that fails, it is logged by the service. */
async function note(deps: DashboardDeps, act: MemberAct): Promise<void> {
  const { answer } = await giveOrder(deps, homeShard(act.accountId), { name: 'note-act', body: act })
  if (answer !== undefined) deps.log.error({ ...act }, NOT_NOTED)
}
