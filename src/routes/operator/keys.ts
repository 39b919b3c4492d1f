/**
 * keys - GET and POST /v1/operator/tokens, POST /v1/operator/tokens/{tokenId}/revoke
 *
 * Spec key.create, key.revoke, key.list
 */

import type { TokenReply } from '../../actors/account/token.ts'
import type { CreateOperatorKeyBody, RevokeOperatorKeyBody } from '../../actors/operator/operator-key.ts'
import { makeKey } from '../../http/key.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { DESK_SHARD } from '../../state/dashboard/desk.ts'
import { formatOperatorKey, listOperatorKeys } from '../../views/operator/operator-keys.ts'
import { giveOrder, parsePage } from '../answer.ts'
import { asOperator, type OperatorDeps, withOwnKey } from '../as-operator.ts'

/** GET /v1/operator/tokens */
export function makeListOperatorKeys({ read }: OperatorDeps): HandlerOf<'listOperatorKeys'> {
  return asOperator(read, async ({ query }) => {
    const seen = await listOperatorKeys(read, parsePage(query))
    return seen === null ? refusalReply('unavailable') : { status: 200, json: seen }
  })
}

/** POST /v1/operator/tokens */
export function makeCreateOperatorKey(deps: OperatorDeps): HandlerOf<'createOperatorKey'> {
  return withOwnKey(deps.read, async ({ body: { name, role } }, by) => {
    const { token, hash, prefix } = makeKey('ok', DESK_SHARD)
    const body: CreateOperatorKeyBody = { name, role, key: { hash, prefix }, by }
    const { reply, answer } = await giveOrder<TokenReply>(deps, DESK_SHARD, { name: 'create-operator-key', body })
    return answer ?? { status: 201, json: { ...formatOperatorKey(reply.tokenId, reply.token), token } }
  })
}

/** POST /v1/operator/tokens/{tokenId}/revoke */
export function makeRevokeOperatorKey(deps: OperatorDeps): HandlerOf<'revokeOperatorKey'> {
  return asOperator(deps.read, async ({ params }, by) => {
    const body: RevokeOperatorKeyBody = { tokenId: (params.tokenId ?? '').toLowerCase(), by }
    const { reply, answer } = await giveOrder<TokenReply>(deps, DESK_SHARD, { name: 'revoke-operator-key', body })
    return answer ?? { status: 200, json: formatOperatorKey(reply.tokenId, reply.token) }
  })
}
