/**
 * account-routes - settings by administrators, account keys, actions of members, the checklist, the kind of an id
 *
 * Spec member.settings, member.application, member.audit, member.checklist, member.find
 */

import { homeShard, isId, shardOf } from '../../cluster/id.ts'
import type { SettingsReply } from '../actors/dashboard/settings.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { parsePage } from '../routes/answer.ts'
import { orderToken } from '../routes/tokens.ts'
import { proofOf } from '../state/dashboard/session.ts'
import { hasFactor } from '../state/dashboard/user.ts'
import { formatAccount } from '../views/account.ts'
import { readActs } from '../views/dashboard/acts.ts'
import { readChecklist } from '../views/dashboard/checklist.ts'
import { findById, NOTHING_FOUND } from '../views/dashboard/find.ts'
import { askAs, type DashboardDeps, type DashboardHandler, type DashboardRequest, orderAs, sessionOf } from './deps.ts'
import { readOwnUser } from './own-user.ts'

/** PATCH /dashboard/api/account */
export function makePatchSettings(deps: DashboardDeps): DashboardHandler<'patchSettings'> {
  return async (request) => {
    const { hideContent, requireSecondFactor, ...changes } = request.body
    const settings = {
      ...(hideContent !== undefined && { hideContent }),
      ...(requireSecondFactor !== undefined && { requireSecondFactor }),
    }
    if (requireSecondFactor) {
      // An administrator who requires a second factor must have one, or the account could lock out all its
      // administrators.
      const user = await readOwnUser(deps, request)
      if (!('userId' in user)) return user
      if (!hasFactor(user)) return refusalReply('second_factor_required')
    }
    return orderOfAccount(deps, request, { name: 'change-settings', body: { changes, settings } })
  }
}

/** POST /dashboard/api/account/application */
export function makeApplyForVolume(deps: DashboardDeps): DashboardHandler<'applyForVolume'> {
  return (request) => {
    const { monthlyVolume, purpose, website } = request.body
    const application = { monthlyVolume, purpose, website: website ?? null }
    return orderOfAccount(deps, request, { name: 'apply-for-cap', body: { application } })
  }
}

async function orderOfAccount(
  deps: DashboardDeps,
  request: DashboardRequest,
  order: { readonly name: string; readonly body: object },
): Promise<Answer> {
  const { reply, answer } = await orderAs<SettingsReply>(deps, request, order)
  return answer ?? { status: 200, json: formatAccount(reply.account, reply.counters, deps.nowMs()) }
}

/** POST /dashboard/api/account/tokens */
export function makeCreateAccountKey(deps: DashboardDeps): DashboardHandler<'createAccountKey'> {
  return (request) => {
    const { accountId, hash } = sessionOf(request)
    const order = { accountId, serverId: null, orderedBy: 'account', keyHash: proofOf('a', hash) } as const
    return orderToken({ ...deps, ask: askAs(deps.ask, request) }, order, { kind: 'ak', name: request.body.name })
  }
}

/** GET /dashboard/api/audit */
export function makeListActs({ read, nowMs }: DashboardDeps): DashboardHandler<'listActs'> {
  return async (request) => {
    const page = { ...parsePage(request.query), nowMs: nowMs() }
    const acts = await readActs(read, sessionOf(request).accountId, page)
    return acts === null ? refusalReply('unavailable') : { status: 200, json: acts }
  }
}

/** GET /dashboard/api/checklist */
export function makeReadChecklist({ read }: DashboardDeps): DashboardHandler<'readChecklist'> {
  return async (request) => {
    const checklist = await readChecklist(read, sessionOf(request).accountId)
    return checklist === null ? refusalReply('unavailable') : { status: 200, json: checklist }
  }
}

/** POST /dashboard/api/find */
export function makeFind(deps: DashboardDeps): DashboardHandler<'find'> {
  return async (request) => {
    const { accountId } = sessionOf(request)
    const id = request.body.text.trim().toLowerCase()
    const isOurs = isId(id) && shardOf(id) === homeShard(accountId)
    const found = isOurs ? await findById(deps.read, accountId, id) : NOTHING_FOUND
    return found === 'unavailable' ? refusalReply('unavailable') : { status: 200, json: found }
  }
}
