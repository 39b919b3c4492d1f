/**
 * tokens - POST and GET /v1/tokens, POST /v1/tokens/{tokenId}/revoke
 *
 * A key's value is created here and is only in the answer; the command has its hash.
 *
 * Spec key.create, key.revoke, key.list
 */

import { homeShard } from '../../cluster/id.ts'
import type { Ask } from '../../cluster/work.ts'
import type { CreateTokenBody, RevokeTokenBody, TokenReply } from '../actors/account/token.ts'
import type { TokenOrder } from '../actors/authorization/token.ts'
import { makeKey, type TokenKind } from '../http/key.ts'
import type { HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { Reader, ServerKey } from '../views/key.ts'
import { formatToken, listTokens } from '../views/token.ts'
import { giveOrder, parsePage } from './answer.ts'

/** Dependencies of the routes of keys. */
export interface TokenDeps {
  readonly ask: Ask
  readonly read: Reader
  readonly newCmdId: () => string
  readonly nowMs: () => number
}

/** POST /v1/tokens */
export function makeCreateToken(deps: TokenDeps): HandlerOf<'createToken'> {
  return ({ key, body }) => {
    const kind = key.mode === 'test' ? 'sk_test' : 'sk'
    return orderToken(deps, orderOf(key), { kind, name: body.name })
  }
}

/** GET /v1/tokens */
export function makeListTokens({ read }: TokenDeps): HandlerOf<'listTokens'> {
  return async ({ key, query }) => {
    const { accountId, serverId, hash } = key
    const shard = homeShard(accountId)
    const seen = await listTokens(read, { shard, ownerId: serverId, keyHash: hash }, parsePage(query))
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** POST /v1/tokens/{tokenId}/revoke */
export function makeRevokeToken(deps: TokenDeps): HandlerOf<'revokeToken'> {
  return ({ key, params }) => orderRevocation(deps, orderOf(key), params.tokenId ?? '')
}

/** Makes a key for the owner that the order names, and answers it with its value. */
export async function orderToken(
  deps: TokenDeps,
  order: TokenOrder,
  { kind, name }: { readonly kind: TokenKind; readonly name: string },
): Promise<Answer> {
  const shard = homeShard(order.accountId)
  const { token, hash, prefix } = makeKey(kind, shard)
  const body: CreateTokenBody = { ...order, name, key: { hash, prefix } }
  const { reply, answer } = await giveOrder<TokenReply>(deps, shard, { name: 'create-token', body })
  return answer ?? { status: 201, json: { ...formatToken(reply.tokenId, reply.token), token } }
}

/** Revokes a key of the owner that the order names. */
export async function orderRevocation(deps: TokenDeps, order: TokenOrder, tokenId: string): Promise<Answer> {
  const shard = homeShard(order.accountId)
  const body: RevokeTokenBody = { ...order, tokenId: tokenId.toLowerCase() }
  const { reply, answer } = await giveOrder<TokenReply>(deps, shard, { name: 'revoke-token', body })
  return answer ?? { status: 200, json: formatToken(reply.tokenId, reply.token) }
}

function orderOf({ accountId, serverId, hash }: ServerKey): TokenOrder {
  return { accountId, serverId, orderedBy: 'server', keyHash: hash }
}
