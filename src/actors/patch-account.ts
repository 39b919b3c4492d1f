/**
 * patch-account - changes an account's figures, by order of the operator; they count from the next request.
 *
 * Spec operator.account, operator.audit
 */

import { type AccountLimits, highestCapOf } from '../state/account.ts'
import { type AccountAct, makeAccountAct } from './account/change-account.ts'
import { refuse } from './order/refusal.ts'

export interface PatchAccountBody extends AccountAct {
  /** Any subset. */
  readonly changes: Partial<AccountLimits>
}

export const patchAccount = makeAccountAct<PatchAccountBody>('patch-account', (account, { changes }) => {
  const patched = { ...account, ...changes }
  const max = highestCapOf(patched)
  return patched.monthlyCap > max ? refuse('limit_too_high', { max }) : changes
})
