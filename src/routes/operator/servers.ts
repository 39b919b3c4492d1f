/**
 * servers - the operator's routes for servers of accounts and the keys of both
 *
 * Spec server.create, server.list, key.create, key.list, key.revoke, operator.note
 */

import { shardOf } from '../../../cluster/id.ts'
import type { TokenOrder } from '../../actors/authorization/token.ts'
import type { TokenKind } from '../../http/key.ts'
import type { EdgeRequest, Handler, HandlerOf } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import type { OperatorAct } from '../../state/audit.ts'
import { readAccountOf, readServerOf, type SeenAccount } from '../../views/resource-access.ts'
import { listServers } from '../../views/servers.ts'
import { listTokens } from '../../views/token.ts'
import { parsePage } from '../answer.ts'
import { asOperator, type OperatorRequest, withOwnKey } from '../as-operator.ts'
import { orderServer } from '../server-order.ts'
import { orderRevocation, orderToken, type TokenDeps } from '../tokens.ts'

/** The owner of keys that a path names, and the kind of these keys. */
interface Holder extends SeenAccount {
  readonly serverId: string | null
  readonly kind: TokenKind
}

/** GET /v1/operator/accounts/{accountId}/servers */
export function makeListServersAsOperator({ read, nowMs }: TokenDeps): HandlerOf<'listServersAsOperator'> {
  return asOperator(read, async ({ params, query }) => {
    const seen = await readAccountOf(read, null, params.accountId ?? '')
    if (typeof seen === 'string') return refusalReply(seen)
    const list = await listServers(read, seen, { ...parsePage(query), nowMs: nowMs() })
    return list === null ? refusalReply('unavailable') : { status: 200, json: list }
  })
}

/** POST /v1/operator/accounts/{accountId}/servers */
export function makeCreateServerAsOperator(deps: TokenDeps): HandlerOf<'createServerAsOperator'> {
  return withOwnKey(deps.read, async ({ params, body }, by) => {
    const accountId = (params.accountId ?? '').toLowerCase()
    if (shardOf(accountId) === null) return refusalReply('not_found')
    return orderServer(deps, { accountId, keyHash: null, by }, body)
  })
}

/** GET /v1/operator/accounts/{accountId}/tokens, GET /v1/operator/servers/{serverId}/tokens */
export function makeListTokensAsOperator(
  deps: TokenDeps,
): HandlerOf<'listAccountTokensAsOperator' | 'listServerTokensAsOperator'> {
  return onHolder(deps, async ({ shard, account, serverId }, { query }) => {
    const of = { shard, ownerId: serverId ?? account.accountId, keyHash: null }
    const seen = await listTokens(deps.read, of, parsePage(query))
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  })
}

/** POST /v1/operator/accounts/{accountId}/tokens, POST /v1/operator/servers/{serverId}/tokens */
export function makeCreateTokenAsOperator(
  deps: TokenDeps,
): HandlerOf<'createAccountToken' | 'createServerTokenAsOperator'> {
  return onHolder(
    deps,
    (holder, { body }, by) => orderToken(deps, orderOf(holder, by), { kind: holder.kind, name: body.name }),
    withOwnKey,
  )
}

/** POST /v1/operator/accounts/{accountId}/tokens/{tokenId}/revoke, and the same below /servers/{serverId} */
export function makeRevokeTokenAsOperator(
  deps: TokenDeps,
): HandlerOf<'revokeAccountTokenAsOperator' | 'revokeServerTokenAsOperator'> {
  return onHolder(deps, (holder, { params }, by) => orderRevocation(deps, orderOf(holder, by), params.tokenId ?? ''))
}

/**
 * Finds the account, or the server, that the path names. `as` decides who may call; by default every key and session
 * of an operator.
 */
function onHolder<Body>(
  { read }: TokenDeps,
  act: (holder: Holder, request: OperatorRequest<Body>, by: OperatorAct) => Promise<Answer>,
  as: typeof asOperator = asOperator,
): Handler<OperatorRequest<Body>> {
  return as(read, async (request, by) => {
    const holder = await readHolder(read, request.params)
    return typeof holder === 'string' ? refusalReply(holder) : act(holder, request, by)
  })
}

async function readHolder(
  read: TokenDeps['read'],
  { accountId, serverId }: EdgeRequest['params'],
): Promise<Holder | 'unauthorized' | 'not_found' | 'unavailable'> {
  if (serverId === undefined) {
    const seen = await readAccountOf(read, null, accountId ?? '')
    return typeof seen === 'string' ? seen : { ...seen, serverId: null, kind: 'ak' }
  }
  const seen = await readServerOf(read, null, { accountId: null, serverId })
  if (typeof seen === 'string') return seen
  const { server } = seen
  if (server === null) return 'not_found'
  return { ...seen, serverId: server.serverId, kind: server.mode === 'test' ? 'sk_test' : 'sk' }
}

function orderOf({ account, serverId }: Holder, by: OperatorAct): TokenOrder {
  return { accountId: account.accountId, serverId, orderedBy: 'operator', keyHash: '', by }
}
