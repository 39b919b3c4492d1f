/**
 * servers - the servers of an account and their keys, for account keys: /v1/servers and below
 *
 * Spec server.list, server.create, server.change, server.remove, key.create, key.list, key.revoke
 */

import type { ServerOrder } from '../actors/authorization/server.ts'
import type { TokenOrder } from '../actors/authorization/token.ts'
import type { PatchServerBody, PatchServerReply } from '../actors/server/patch-server.ts'
import type { EdgeRequest, HandlerOf } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import type { ServerState } from '../state/server.ts'
import type { AccountKey, Reader } from '../views/key.ts'
import { readAccountOf, readServerOf, type SeenServer } from '../views/resource-access.ts'
import { readServer } from '../views/server.ts'
import { listServers, readServerResource } from '../views/servers.ts'
import { listTokens } from '../views/token.ts'
import { giveOrder, parsePage } from './answer.ts'
import { orderServer, refuseTestLimits } from './server-order.ts'
import { orderRevocation, orderToken, type TokenDeps } from './tokens.ts'

type AccountRequest = EdgeRequest<AccountKey>

/** The server of the path, if the account has it. */
type Found = SeenServer & { readonly server: ServerState }

/** GET /v1/servers */
export function makeListServers({ read, nowMs }: TokenDeps): HandlerOf<'listServers'> {
  return async ({ key, query }) => {
    const seen = await readAccountOf(read, key, '')
    if (typeof seen === 'string') return refusalReply(seen)
    const list = await listServers(read, seen, { ...parsePage(query), nowMs: nowMs() })
    return list === null ? refusalReply('unavailable') : { status: 200, json: list }
  }
}

/** POST /v1/servers */
export function makeCreateServer(deps: TokenDeps): HandlerOf<'createServer'> {
  return ({ key, body }) => {
    const { accountId, hash } = key
    return orderServer(deps, { accountId, keyHash: hash }, body)
  }
}

/** GET /v1/servers/{serverId} */
export function makeReadAccountServer({ read, nowMs }: TokenDeps): HandlerOf<'readAccountServer'> {
  return (request) =>
    onServer(read, request, 'reads', async (found) => {
      const resource = await readServerResource(read, found, { ...found, nowMs: nowMs() })
      return resource === null ? refusalReply('unavailable') : { status: 200, json: resource }
    })
}

/** PATCH /v1/servers/{serverId} */
export function makePatchServer(deps: TokenDeps): HandlerOf<'patchServer'> {
  return (request) =>
    onServer(deps.read, request, 'writes', async (found) => {
      const changes = request.body
      const wrong = refuseTestLimits(found.server.mode, changes)
      if (wrong !== null) return wrong
      const body: PatchServerBody = { ...orderOf(request, found), changes }
      const { reply, answer } = await giveOrder<PatchServerReply>(deps, found.shard, { name: 'patch-server', body })
      return answer ?? answerPatched(deps, found.shard, reply)
    })
}

/** DELETE /v1/servers/{serverId} */
export function makeDeleteServer(deps: TokenDeps): HandlerOf<'deleteServer'> {
  return (request) =>
    onServer(deps.read, request, 'writes', async (found) => {
      const body = orderOf(request, found)
      const { answer } = await giveOrder(deps, found.shard, { name: 'remove-server', body })
      return answer ?? { status: 204 }
    })
}

/** GET /v1/servers/{serverId}/tokens */
export function makeListServerTokens({ read }: TokenDeps): HandlerOf<'listServerTokens'> {
  return (request) =>
    onServer(read, request, 'reads', async ({ shard, server }) => {
      const of = { shard, ownerId: server.serverId, keyHash: null }
      const seen = await listTokens(read, of, parsePage(request.query))
      return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
    })
}

/** POST /v1/servers/{serverId}/tokens */
export function makeCreateServerToken(deps: TokenDeps): HandlerOf<'createServerToken'> {
  return (request) =>
    onServer(deps.read, request, 'writes', (found) => {
      const kind = found.server.mode === 'test' ? 'sk_test' : 'sk'
      return orderToken(deps, tokenOrderOf(request, found), { kind, name: request.body.name })
    })
}

/** POST /v1/servers/{serverId}/tokens/{tokenId}/revoke */
export function makeRevokeServerToken(deps: TokenDeps): HandlerOf<'revokeServerToken'> {
  return (request) =>
    onServer(deps.read, request, 'writes', (found) =>
      orderRevocation(deps, tokenOrderOf(request, found), request.params.tokenId ?? ''),
    )
}

/** Finds the server of the path, or refuses in the contract's order: key, account's state, object. */
async function onServer(
  read: TokenDeps['read'],
  { key, params }: AccountRequest,
  what: 'reads' | 'writes',
  act: (found: Found) => Promise<Answer>,
): Promise<Answer> {
  const seen = await readServerOf(read, key, { accountId: key.accountId, serverId: params.serverId ?? '' })
  if (typeof seen === 'string') return refusalReply(seen)
  const { server } = seen
  // Spec account.closed
  if (what === 'writes' && seen.account.status === 'closed') return refusalReply('account_not_active')
  return server === null ? refusalReply('not_found') : act({ ...seen, server })
}

function orderOf({ key }: AccountRequest, { server }: Found): ServerOrder {
  return { accountId: server.accountId, serverId: server.serverId, keyHash: key.hash }
}

function tokenOrderOf({ key }: AccountRequest, { server }: Found): TokenOrder {
  const { accountId, serverId } = server
  return { accountId, serverId, orderedBy: 'account', keyHash: key.hash }
}

/** The server was changed, but if its domains cannot be read now, its resource is unknown. */
async function answerPatched({ read, nowMs }: TokenDeps, shard: number, patched: PatchServerReply): Promise<Answer> {
  const { server, account, accountCounters: counters, counters: serverCounters } = patched
  const of = { server, serverCounters, nowMs: nowMs() }
  const resource = await readServerResource(read, { shard, account, counters }, of)
  return resource === null ? { close: true } : { status: 200, json: resource }
}

/** GET /v1/server */
export function makeReadServer({ read, nowMs }: { read: Reader; nowMs: () => number }): HandlerOf<'readServer'> {
  return async ({ key }) => {
    const seen = await readServer(read, key, nowMs())
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  }
}
