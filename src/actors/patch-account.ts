/**
 * patch-account - changes an account's figures, by order of the operator; they count from the next request.
 *
 * Spec operator.account, operator.audit
 */

import type { CommandType } from '../../cluster/behaviour.ts'
import {
  type AccountCounters,
  type AccountLimits,
  type AccountState,
  accountOwner,
  accountRef,
  highestCapOf,
} from './account.ts'
import { auditOps, differenceOf, type OperatorAct } from './audit.ts'
import { type Refused, refuse } from './refusal.ts'

export interface PatchAccountBody {
  readonly accountId: string
  /** Any subset. */
  readonly changes: Partial<AccountLimits>
  readonly by: OperatorAct
}

export interface PatchAccountReply {
  readonly kind: 'patched'
  readonly account: AccountState
  readonly counters: AccountCounters | null
}

export const patchAccount: CommandType<PatchAccountBody, PatchAccountReply | Refused> = {
  name: 'patch-account',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: ({ accountId }) => [accountOwner(accountId)],
  facts: () => [],
  decide({ accountId, changes, by }, states, _facts, context) {
    const ref = accountRef(accountId)
    const account = states.get<AccountState | null>(ref)
    if (account === null) return refuse('not_found')
    const patched = { ...account, ...changes }
    const max = highestCapOf(patched)
    if (patched.monthlyCap > max) return refuse('limit_too_high', { max })
    const counters = states.counter<AccountCounters>(accountOwner(accountId))
    const events = Object.keys(changes).length === 0 ? [] : [{ ref, event: { type: 'patched', changes } }]
    const ops = auditOps(context, by, { targets: { accountId }, ...differenceOf(account, patched) })
    return { kind: 'done', reply: { kind: 'patched', account: patched, counters }, events, ops }
  },
}
