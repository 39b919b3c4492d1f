/**
 * settings - settings of an account by its administrators, the application of a pending one, and notes of actions.
 *
 * Spec member.settings, member.application, member.audit
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import {
  type AccountChanges,
  type AccountCounters,
  type AccountState,
  accountOwner,
  accountRef,
  highestCapOf,
} from '../../state/account.ts'
import { actOps, type MemberAct } from '../../state/dashboard/act.ts'
import { type Application, fieldsOfSettings, type Settings } from '../../state/dashboard/member.ts'
import { settingsKey } from '../../state/dashboard/places.ts'
import type { Proof } from '../authorization/proof.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { refusePeople } from './member.ts'

export interface ChangeSettingsBody extends Proof {
  readonly changes: Pick<AccountChanges, 'name' | 'monthlyCap'>
  readonly settings: Partial<Pick<Settings, 'hideContent' | 'requireSecondFactor'>>
}

export interface SettingsReply {
  readonly kind: 'account'
  readonly account: AccountState
  readonly counters: AccountCounters | null
}

export const changeSettings: CommandType<ChangeSettingsBody, SettingsReply | Refused> = {
  name: 'change-settings',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: ({ accountId }) => [accountOwner(accountId)],
  facts: () => [],
  decide(body, states, facts, context) {
    const refused = refusePeople(body, states, { facts, context })
    if (refused !== null) return refused
    const { accountId, changes, settings } = body
    const account = states.get<AccountState>(accountRef(accountId))
    const max = highestCapOf(account)
    if ((changes.monthlyCap ?? 0) > max) return refuse('limit_too_high', { max })
    const isSame = Object.keys(changes).length === 0
    return {
      kind: 'done',
      reply: {
        kind: 'account',
        account: { ...account, ...changes },
        counters: states.counter<AccountCounters>(accountOwner(accountId)),
      },
      events: isSame ? [] : [{ ref: accountRef(accountId), event: { type: 'patched', changes } }],
      ops: settingsOps(context.shard, accountId, settings),
    }
  },
}

export interface ApplyBody extends Proof {
  readonly application: Omit<Application, 'atMs'>
}

export const applyForCap: CommandType<ApplyBody, SettingsReply | Refused> = {
  name: 'apply-for-cap',
  entities: ({ accountId }) => [accountRef(accountId)],
  counters: ({ accountId }) => [accountOwner(accountId)],
  facts: () => [],
  decide(body, states, facts, context) {
    const refused = refusePeople(body, states, { facts, context })
    if (refused !== null) return refused
    const { accountId, application } = body
    const account = states.get<AccountState>(accountRef(accountId))
    if (account.status !== 'pending') return refuse('account_not_pending')
    const settings = { application: { ...application, atMs: context.nowMs } }
    const counters = states.counter<AccountCounters>(accountOwner(accountId))
    const ops = settingsOps(context.shard, accountId, settings)
    return { kind: 'done', reply: { kind: 'account', account, counters }, ops }
  },
}

function settingsOps(shard: number, accountId: string, settings: Partial<Settings>): Op[] {
  const args = fieldsOfSettings(settings)
  return args.length === 0 ? [] : [{ key: settingsKey(shard, accountId), write: 'HSET', args }]
}

/** Records an action without any other change, such as a read of content or a reached limit. */
export const noteAct: CommandType<MemberAct, { readonly kind: 'noted' }> = {
  name: 'note-act',
  entities: () => [],
  counters: () => [],
  facts: () => [],
  decide(act, _states, _facts, context) {
    return { kind: 'done', reply: { kind: 'noted' }, ops: actOps(context, act) }
  },
}

/** The author of a member's order, and the logged action. */
export interface OrderedByMember {
  readonly member?: MemberAct
  /** An automatic check by a page, logged only if it has changed something. */
  readonly isLook?: boolean
}

/** A command type whose decisions log the member who ordered them, if any. */
export function logged<Body, Reply>(type: CommandType<Body, Reply>): CommandType<Body, Reply> {
  return {
    ...type,
    decide(body, states, facts, context, command) {
      const decision = type.decide(body, states, facts, context, command)
      const { member, isLook = false } = body as OrderedByMember
      if (member === undefined || decision.kind !== 'done') return decision
      if (isLook && (decision.ops ?? []).length === 0) return decision
      return { ...decision, ops: [...(decision.ops ?? []), ...actOps(context, member)] }
    },
  }
}
