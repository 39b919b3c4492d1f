/**
 * change-account - an operator approves, pauses, resumes or closes an account, or changes its figures.
 *
 * States: pending -> active (approve); active <-> paused, with accepted mail held or not; any -> closed for good.
 * Closing releases held mail: accepted mail is still delivered. Limits apply from the next request on. Every such
 * order is one rule; `makeAccountAct` does the common part: it finds the account, refuses a closed one, records the
 * changes, writes the audit entry and releases held mail.
 *
 * Spec account.states, account.limits, account.hold, operator.account, operator.audit
 */

import type { CommandType, Context, Done, Due, Refusal, States } from '../../../cluster/behaviour.ts'
import { APPROVED_CAPS, MONTHLY_CAP_DEFAULT } from '../../../schemas/limits.ts'
import {
  type AccountChanges,
  type AccountCounters,
  type AccountLimits,
  type AccountState,
  accountOwner,
  accountRef,
  highestCapOf,
} from '../../state/account.ts'
import { auditOps, computeDifference, type OperatorAct } from '../../state/audit.ts'
import { type Settings, settingsFact } from '../../state/dashboard/member.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { wakeDue } from '../broadcast/running.ts'
import { settingsIn } from '../dashboard/link.ts'
import { releaseDue } from '../message/held.ts'

/** The common fields of every such order. */
export interface AccountAct {
  readonly accountId: string
  readonly by: OperatorAct
}

export interface AccountActReply {
  readonly kind: 'account'
  /** As it is now. */
  readonly account: AccountState
  readonly counters: AccountCounters | null
}

/** The effect of an order on an account that is not closed, or a refusal. */
export type AccountRule<Body> = (
  account: AccountState,
  body: Body,
  settings: () => Settings,
) => AccountChanges | Refusal<Refused>

export interface ApproveAccountBody extends AccountAct {
  /** The approved cap; the monthly cap begins at it. Null for the one that the application requests. */
  readonly monthlyCap: number | null
  /** Null = as it is. */
  readonly perMinuteLimit: number | null
}

export interface PauseAccountBody extends AccountAct {
  /** Whether accepted mail waits until the account is resumed. */
  readonly hold: boolean
}

export const approveAccount = makeAccountAct<ApproveAccountBody>('approve-account', approve, {
  takesClosed: true,
  readsSettings: true,
})
export const pauseAccount = makeAccountAct<PauseAccountBody>('pause-account', pause)
export const resumeAccount = makeAccountAct<AccountAct>('resume-account', resume)
export const closeAccount = makeAccountAct<AccountAct>('close-account', () => ({ status: 'closed', held: false }))

export interface PatchAccountBody extends AccountAct {
  /** Any subset. */
  readonly changes: Partial<AccountLimits>
}

export const patchAccount = makeAccountAct<PatchAccountBody>('patch-account', (account, { changes }) => {
  const patched = { ...account, ...changes }
  const max = highestCapOf(patched)
  return patched.monthlyCap > max ? refuse('limit_too_high', { max }) : changes
})

/**
 * Makes the command type of an order.
 * @param takesClosed it may act on a closed account
 * @param readsSettings its rule reads the account's settings
 */
export function makeAccountAct<Body extends AccountAct>(
  name: string,
  rule: AccountRule<Body>,
  { takesClosed = false, readsSettings = false }: { takesClosed?: boolean; readsSettings?: boolean } = {},
): CommandType<Body, AccountActReply | Refused> {
  return {
    name,
    entities: ({ accountId }) => [accountRef(accountId)],
    counters: ({ accountId }) => [accountOwner(accountId)],
    facts: ({ accountId }, _states, { shard }) => (readsSettings ? [settingsFact(shard, accountId)] : []),
    decide(body, states, facts, context) {
      const account = states.get<AccountState | null>(accountRef(body.accountId))
      if (account === null) return refuse('not_found')
      if (account.status === 'closed' && !takesClosed) return refuse('account_closed')
      const settings = () => settingsIn(facts, context.shard, body.accountId)
      const changes = rule(account, body, settings)
      return isRefusal(changes) ? changes : change(body, { account, changes }, { states, context })
    },
  }
}

function change(
  { accountId, by }: AccountAct,
  { account, changes }: { account: AccountState; changes: AccountChanges },
  { states, context }: { states: States; context: Context },
): Done<AccountActReply> {
  const changed = { ...account, ...changes }
  const isSame = Object.keys(changes).length === 0
  return {
    kind: 'done',
    reply: { kind: 'account', account: changed, counters: states.counter<AccountCounters>(accountOwner(accountId)) },
    events: isSame ? [] : [{ ref: accountRef(accountId), event: { type: 'patched', changes } }],
    ops: auditOps(context, by, { targets: { accountId }, ...computeDifference(account, changed) }),
    due: dueAfter(account, changed, context.nowMs),
  }
}

/** Mail that was held goes, and so do broadcasts; those of a closed account end. */
function dueAfter(account: AccountState, changed: AccountState, nowMs: number): Due[] {
  const { accountId } = account
  const isFree = account.held && !changed.held
  const isClosed = changed.status === 'closed' && account.status !== 'closed'
  return [...(isFree ? [releaseDue(accountId, nowMs)] : []), ...(isFree || isClosed ? [wakeDue(accountId, nowMs)] : [])]
}

function isRefusal(changes: AccountChanges | Refusal<Refused>): changes is Refusal<Refused> {
  return 'kind' in changes
}

function approve(
  account: AccountState,
  { monthlyCap, perMinuteLimit }: ApproveAccountBody,
  settings: () => Settings,
): ReturnType<AccountRule<never>> {
  const isPending = account.status === 'pending'
  // Only a pending account has a volume that it applied for.
  if (monthlyCap === null && !isPending) return refuse('account_not_pending')
  const cap = monthlyCap ?? capApplied(settings())
  if (typeof cap !== 'number') return cap
  const limits = { approvedCap: cap, monthlyCap: cap, perMinuteLimit: perMinuteLimit ?? account.perMinuteLimit }
  const max = highestCapOf({ ...account, ...limits })
  if (cap > max) return refuse('limit_too_high', { max })
  return isPending ? { ...limits, status: 'active' } : refuse('account_not_pending')
}

/** The smallest cap that holds the volume applied for. A volume above all caps is refused. */
function capApplied({ application }: Settings): number | Refusal<Refused> {
  if (application === null) return MONTHLY_CAP_DEFAULT
  const { monthlyVolume } = application
  return APPROVED_CAPS.find((cap) => cap >= monthlyVolume) ?? refuse('invalid_request', { monthlyVolume })
}

/** A pause with a different `hold` replaces the current one. */
function pause({ status, held }: AccountState, { hold }: PauseAccountBody): ReturnType<AccountRule<never>> {
  if (status === 'pending') return refuse('account_not_active')
  return status === 'paused' && held === hold ? {} : { status: 'paused', held: hold }
}

function resume({ status }: AccountState): ReturnType<AccountRule<never>> {
  if (status === 'pending') return refuse('account_not_active')
  return status === 'active' ? {} : { status: 'active', held: false }
}
