/**
 * server-order - orders about servers by account keys and operators, and their answers
 *
 * Spec server.create, server.limits
 */

import { homeShard } from '../../cluster/id.ts'
import type { ServerBody, ServerPatchBody } from '../../schemas/server.ts'
import type { AccountOrderer } from '../actors/authorization/server.ts'
import type { CreateServerBody, CreateServerReply } from '../actors/server/create-server.ts'
import { makeKey } from '../http/key.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { readServerResource } from '../views/servers.ts'
import { formatToken } from '../views/token.ts'
import { giveOrder } from './answer.ts'
import type { TokenDeps } from './tokens.ts'

/** Makes a server, and answers it with the value of its first key. */
export async function orderServer(deps: TokenDeps, orderer: AccountOrderer, body: ServerBody): Promise<Answer> {
  const wrong = refuseTestLimits(body.mode, body)
  if (wrong !== null) return wrong
  const { name, mode, perMinuteLimit, monthlyCap } = body
  const shard = homeShard(orderer.accountId)
  const { token, hash, prefix } = makeKey(mode === 'test' ? 'sk_test' : 'sk', shard)
  const server = { name, mode, perMinuteLimit, monthlyCap, key: { hash, prefix } }
  const order: CreateServerBody = { ...orderer, server }
  const { reply: made, answer } = await giveOrder<CreateServerReply>(deps, shard, {
    name: 'create-server',
    body: order,
  })
  return answer ?? answerMade(deps, shard, { made, token })
}

/** The server was created, but if its domains cannot be read now, its resource is unknown. */
async function answerMade(
  { read, nowMs }: TokenDeps,
  shard: number,
  { made, token }: { made: CreateServerReply; token: string },
): Promise<Answer> {
  const { server, account, accountCounters: counters, created, key } = made
  const of = { server, serverCounters: null, nowMs: nowMs() }
  const resource = await readServerResource(read, { shard, account, counters }, of)
  if (resource === null) return { close: true }
  return { status: 201, json: { ...resource, key: { ...formatToken(created.tokenId, key), token } } }
}

type TestRefused = Partial<Pick<ServerPatchBody, 'perMinuteLimit' | 'monthlyCap' | 'bounceMail'>>

/**
 * Refuses limits for a test server, because all test servers of an account share the account's, and bounce mail,
 * because it sends none. Null if none are given.
 */
export function refuseTestLimits(
  mode: 'live' | 'test',
  { perMinuteLimit = null, monthlyCap = null, bounceMail = false }: TestRefused,
): Answer | null {
  if (mode === 'live') return null
  const issues = Object.entries({ perMinuteLimit, monthlyCap })
    .filter(([, limit]) => limit !== null)
    .map(([path]) => ({ path, message: 'Must be null on a test server' }))
  if (bounceMail) issues.push({ path: 'bounceMail', message: 'Must be false on a test server' })
  return issues.length === 0 ? null : refusalReply('invalid_request', { issues })
}
