/**
 * account - GET /v1/account, and its keys: GET /v1/account/tokens, POST /v1/account/tokens/{tokenId}/revoke
 *
 * An account key cannot create an account key, so that a leaked key cannot create its own successor.
 *
 * Spec account.read, key.list, key.revoke
 */

import { homeShard } from '../../cluster/id.ts'
import type { HandlerOf } from '../http/request.ts'
import { refusalReply } from '../http/respond.ts'
import { formatAccount } from '../views/account.ts'
import { readAccountOf } from '../views/resource-access.ts'
import { listTokens } from '../views/token.ts'
import { parsePage } from './answer.ts'
import { orderRevocation, type TokenDeps } from './tokens.ts'

/** GET /v1/account */
export function makeReadAccount({ read, nowMs }: TokenDeps): HandlerOf<'readAccount'> {
  return async ({ key }) => {
    const seen = await readAccountOf(read, key, '')
    if (typeof seen === 'string') return refusalReply(seen)
    return { status: 200, json: formatAccount(seen.account, seen.counters, nowMs()) }
  }
}

/** GET /v1/account/tokens */
export function makeListAccountTokens({ read }: TokenDeps): HandlerOf<'listAccountTokens'> {
  return async ({ key, query }) => {
    const { accountId, hash } = key
    const of = { shard: homeShard(accountId), ownerId: accountId, keyHash: hash }
    const seen = await listTokens(read, of, parsePage(query))
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}

/** POST /v1/account/tokens/{tokenId}/revoke */
export function makeRevokeAccountToken(deps: TokenDeps): HandlerOf<'revokeAccountToken'> {
  return ({ key, params }) => {
    const { accountId, hash } = key
    const order = { accountId, serverId: null, orderedBy: 'account', keyHash: hash } as const
    return orderRevocation(deps, order, params.tokenId ?? '')
  }
}
