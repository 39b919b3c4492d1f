/**
 * accounts - accounts, as the operator makes, reads, changes, approves, pauses, resumes and closes them
 *
 * A change takes effect with its answer: the next request is decided with it.
 *
 * Spec account.create, account.list, account.detail, account.states, operator.account, operator.note
 */

import { randomBytes } from 'node:crypto'
import { shardOf } from '../../../cluster/id.ts'
import type { AccountActReply } from '../../actors/account/change-account.ts'
import { type CreateAccountBody, type CreateAccountReply, placeAccount } from '../../actors/account/create-account.ts'
import type { Refused } from '../../actors/authorization/refusal.ts'
import type { Handler, HandlerOf } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import type { AccountState } from '../../state/account.ts'
import { LINK_ID_BYTES, newLinkId } from '../../state/dashboard/link-token.ts'
import { formatAccount } from '../../views/account.ts'
import { listAccounts, readAccountDetail } from '../../views/operator/accounts.ts'
import { readAccountOf } from '../../views/resource-access.ts'
import { giveOrder, parsePage } from '../answer.ts'
import { asOperator, isOwnKey, type OperatorDeps, type OperatorRequest, TAKES_A_KEY } from '../as-operator.ts'

/** Further dependencies of the routes of accounts. */
export interface OperatorAccountDeps extends OperatorDeps {
  /** How many accounts each shard holds; null when the store did not answer. */
  readonly countAccounts: () => Promise<readonly number[] | null>
  /** For each shard the name of the process that owns it and of the Redis that has it. */
  readonly shardPlaces: () => readonly string[]
  /** Initial status of a new account. */
  readonly approval: 'automatic' | 'manual'
}

/** GET /v1/operator/accounts */
export function makeListAccounts({ read, nowMs }: OperatorDeps): HandlerOf<'listAccounts'> {
  return asOperator(read, async ({ query }) => {
    const list = await listAccounts(read, { ...parsePage(query), nowMs: nowMs() })
    return list === null ? refusalReply('unavailable') : { status: 200, json: list }
  })
}

/** POST /v1/operator/accounts */
export function makeCreateAccount(deps: OperatorAccountDeps): HandlerOf<'createAccount'> {
  return asOperator(deps.read, async ({ body, key }, by) => {
    const { name, administrators } = body
    // Their invitations outlive a session.
    if (administrators.length > 0 && !isOwnKey(key)) return TAKES_A_KEY
    const counts = await deps.countAccounts()
    if (counts === null) return refusalReply('unavailable')
    const shard = placeAccount(counts, deps.shardPlaces())
    const addresses = [...new Set(administrators)]
    const order: CreateAccountBody = {
      name,
      status: deps.approval === 'automatic' ? 'active' : 'pending',
      accountKey: null,
      operatorKey: null,
      servers: [],
      administrators: addresses,
      invitationLinkIds: addresses.map(() => newLinkId(shard, randomBytes(LINK_ID_BYTES))),
      by,
    }
    const command = { name: 'create-account', body: order }
    const { reply, answer } = await giveOrder<CreateAccountReply>(deps, shard, command)
    return answer ?? { status: 201, json: formatAccount(reply.account, null, deps.nowMs()) }
  })
}

/** GET /v1/operator/accounts/{accountId} */
export function makeReadAccountAsOperator({ read, nowMs }: OperatorDeps): HandlerOf<'readAccountAsOperator'> {
  return asOperator(read, async ({ params }) => {
    const seen = await readAccountOf(read, null, params.accountId ?? '')
    if (typeof seen === 'string') return refusalReply(seen)
    const detail = await readAccountDetail(read, seen, nowMs())
    return detail === null ? refusalReply('unavailable') : { status: 200, json: detail }
  })
}

/** PATCH /v1/operator/accounts/{accountId} */
export function makePatchAccount(deps: OperatorDeps): HandlerOf<'patchAccount'> {
  return makeAct(deps, 'patch-account', (body) => {
    const { note: _note, ...changes } = body
    return { changes }
  })
}

/** POST /v1/operator/accounts/{accountId}/approve */
export function makeApproveAccount(deps: OperatorDeps): HandlerOf<'approveAccount'> {
  return makeAct(
    deps,
    'approve-account',
    ({ monthlyCap = null, perMinuteLimit = null }) => ({ monthlyCap, perMinuteLimit }),
    refuseVolume,
  )
}

/** POST /v1/operator/accounts/{accountId}/pause */
export function makePauseAccount(deps: OperatorDeps): HandlerOf<'pauseAccount'> {
  return makeAct(deps, 'pause-account', (body) => ({ hold: body.hold }))
}

/** POST /v1/operator/accounts/{accountId}/resume */
export function makeResumeAccount(deps: OperatorDeps): HandlerOf<'resumeAccount'> {
  return makeAct(deps, 'resume-account', () => ({}))
}

/** POST /v1/operator/accounts/{accountId}/close */
export function makeCloseAccount(deps: OperatorDeps): HandlerOf<'closeAccount'> {
  return makeAct(deps, 'close-account', () => ({}))
}

/** The answer to an approval without a cap that no cap of the rule fits; null for any other refusal. */
function refuseVolume({ code, extra }: Refused): Answer | null {
  if (code !== 'invalid_request') return null
  const message = `Must be given: the account applied for ${extra.monthlyVolume} emails a month`
  return refusalReply('invalid_request', { issues: [{ path: 'monthlyCap', message }] })
}

/**
 * A handler that gives one command about the account of the path.
 * @param orderOf adds fields of the body to the order
 * @param refusalOf overrides the answer to some refusals
 */
function makeAct<Body>(
  deps: OperatorDeps,
  name: string,
  orderOf: (body: Body) => object,
  refusalOf: (refused: Refused) => Answer | null = () => null,
): Handler<OperatorRequest<Body>> {
  return asOperator(deps.read, async ({ params, body }, by) => {
    const accountId = (params.accountId ?? '').toLowerCase()
    const shard = shardOf(accountId)
    if (shard === null) return refusalReply('not_found')
    const order = { accountId, by, ...orderOf(body) }
    const { reply, answer, refused } = await giveOrder<AccountActReply>(deps, shard, { name, body: order })
    if (answer === undefined) return answerAccount(deps, reply)
    return (refused && refusalOf(refused)) ?? answer
  })
}

function answerAccount(
  { nowMs }: OperatorDeps,
  { account, counters }: { account: AccountState; counters: AccountActReply['counters'] },
): Answer {
  return { status: 200, json: formatAccount(account, counters, nowMs()) }
}
