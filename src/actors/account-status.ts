/**
 * account-status - an account approved, paused, resumed and closed, by order of the operator.
 *
 * States: pending -> active (approve); active <-> paused, with accepted mail held or not; any -> closed for good. Closing
 * lets held mail go: what was accepted is still delivered.
 *
 * Spec account.states, account.hold
 */

import { type AccountState, highestCapOf } from '../state/account.ts'
import { type AccountAct, type AccountRule, makeAccountAct } from './account/change-account.ts'
import { refuse } from './order/refusal.ts'

export interface ApproveAccountBody extends AccountAct {
  /** The cap that was approved; the monthly cap begins at it. */
  readonly monthlyCap: number
  /** Null = as it is. */
  readonly perMinuteLimit: number | null
}

export interface PauseAccountBody extends AccountAct {
  /** Whether accepted mail waits until the account is resumed. */
  readonly hold: boolean
}

export const approveAccount = makeAccountAct<ApproveAccountBody>('approve-account', approve, true)
export const pauseAccount = makeAccountAct<PauseAccountBody>('pause-account', pause)
export const resumeAccount = makeAccountAct<AccountAct>('resume-account', resume)
export const closeAccount = makeAccountAct<AccountAct>('close-account', () => ({ status: 'closed', held: false }))

function approve(
  account: AccountState,
  { monthlyCap, perMinuteLimit }: ApproveAccountBody,
): ReturnType<AccountRule<never>> {
  const limits = { approvedCap: monthlyCap, monthlyCap, perMinuteLimit: perMinuteLimit ?? account.perMinuteLimit }
  const max = highestCapOf({ ...account, ...limits })
  if (monthlyCap > max) return refuse('limit_too_high', { max })
  return account.status === 'pending' ? { ...limits, status: 'active' } : refuse('account_not_pending')
}

/** A pause with another `hold` than the one that stands takes its place. */
function pause({ status, held }: AccountState, { hold }: PauseAccountBody): ReturnType<AccountRule<never>> {
  if (status === 'pending') return refuse('account_not_active')
  return status === 'paused' && held === hold ? {} : { status: 'paused', held: hold }
}

function resume({ status }: AccountState): ReturnType<AccountRule<never>> {
  if (status === 'pending') return refuse('account_not_active')
  return status === 'active' ? {} : { status: 'active', held: false }
}
