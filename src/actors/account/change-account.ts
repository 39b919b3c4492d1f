/**
 * change-account - what every order of an operator about an account has in common: found or not, closed or not, what
 * changed, the entry in the audit log, and the release of mail that was held.
 *
 * Spec account.states, operator.audit
 */

import type { CommandType, Context, Done, Refusal, States } from '../../../cluster/behaviour.ts'
import {
  type AccountChanges,
  type AccountCounters,
  type AccountState,
  accountOwner,
  accountRef,
} from '../../state/account.ts'
import { auditOps, differenceOf, type OperatorAct } from '../../state/audit.ts'
import { releaseDue } from '../message/held.ts'
import { type Refused, refuse } from '../order/refusal.ts'

/** What every such order holds. */
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

/** What an order makes of an account that is not closed; a refusal where it cannot. */
export type AccountRule<Body> = (account: AccountState, body: Body) => AccountChanges | Refusal<Refused>

/** Makes the command type of an order. In: its name and its rule, and whether it is an order about closed ones too. */
export function makeAccountAct<Body extends AccountAct>(
  name: string,
  rule: AccountRule<Body>,
  takesClosed = false,
): CommandType<Body, AccountActReply | Refused> {
  return {
    name,
    entities: ({ accountId }) => [accountRef(accountId)],
    counters: ({ accountId }) => [accountOwner(accountId)],
    facts: () => [],
    decide(body, states, _facts, context) {
      const account = states.get<AccountState | null>(accountRef(body.accountId))
      if (account === null) return refuse('not_found')
      if (account.status === 'closed' && !takesClosed) return refuse('account_closed')
      const changes = rule(account, body)
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
    ops: auditOps(context, by, { targets: { accountId }, ...differenceOf(account, changed) }),
    due: account.held && !changed.held ? [releaseDue(accountId, context.nowMs)] : [],
  }
}

function isRefusal(changes: AccountChanges | Refusal<Refused>): changes is Refusal<Refused> {
  return 'kind' in changes
}
