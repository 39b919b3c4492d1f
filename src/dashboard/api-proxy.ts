/**
 * api-proxy - routes of the interface, asked by a session: the same handlers, with a key made of the session
 *
 * The key's proof is the session and the lowest sufficient level of the route, so every read and every turn checks the
 * current row of the session. Changes by a member are logged by their own commit.
 *
 * Spec member.mirror, member.role, member.audit, member.content
 */

import { MIRRORED_ROUTES, type MirroredRoute } from '../../schemas/dashboard/mirror.ts'
import type { Level } from '../../schemas/route.ts'
import { type PublicRouteName, ROUTES } from '../../schemas/routes.ts'
import { NOT_SIGNED_IN } from '../http/dashboard-edge.ts'
import type { EdgeRequest, Handler, Handlers } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { proofOf } from '../state/dashboard/session.ts'
import type { ServerState } from '../state/server.ts'
import type { AccountKey, ServerKey, SessionKey } from '../views/key.ts'
import { readServerOf } from '../views/resource-access.ts'
import { askAs, type DashboardDeps } from './deps.ts'
import { type ContentRule, findRule } from './redact.ts'
import { touch } from './session-routes.ts'

export interface ApiProxyDeps extends DashboardDeps {
  /** The handlers of the interface, whose commands are asked by `ask`. */
  readonly handlersWith: (ask: DashboardDeps['ask']) => Handlers<PublicRouteName>
}

type SessionRequest = EdgeRequest<SessionKey | null>

/** Every mirrored route with its handler. */
export function apiProxyHandlers(deps: ApiProxyDeps) {
  const shared = deps.handlersWith(deps.ask)
  return MIRRORED_ROUTES.map((mirrored) => ({
    route: mirrored.route,
    handle: ((request: SessionRequest) => answerMirrored(deps, shared, { mirrored, request })) as Handler,
  }))
}

async function answerMirrored(
  deps: ApiProxyDeps,
  shared: Handlers<PublicRouteName>,
  { mirrored, request }: { readonly mirrored: MirroredRoute; readonly request: SessionRequest },
): Promise<Answer> {
  const session = request.key
  if (session === null) return NOT_SIGNED_IN
  touch(deps, session)
  const { name, route, isOfServer } = mirrored
  const level = route.session?.level ?? 'a'
  const found = isOfServer ? await findServer(deps, session, { serverId: request.params.serverId ?? '', level }) : null
  if (found !== null && 'answer' in found) return found.answer
  const rule = await findRule(deps, session, { name, server: found?.server ?? null, params: request.params })
  if ('refusal' in rule) return rule.refusal
  const key = found?.key ?? accountKeyOf(session, level)
  const handlers = level === 'r' ? shared : deps.handlersWith(askAs(deps.ask, request))
  // The request of the interface's own route, which sees when the client goes away.
  const asked: EdgeRequest = Object.assign(Object.create(request), { key, route: ROUTES[name] })
  return clean(await (handlers[name] as Handler)(asked), rule)
}

/** A refusal of the key becomes one of the session; hidden content is removed. */
function clean(answer: Answer, { shown }: Extract<ContentRule, { shown: unknown }>): Answer {
  if (!('status' in answer)) return 'read' in answer ? shown(answer) : answer
  if (answer.status === 401) return NOT_SIGNED_IN
  return answer.status < 300 ? shown(answer) : answer
}

/** The key of a session. */
export function accountKeyOf({ accountId, tokenId, hash, row }: SessionKey, level: Level): AccountKey {
  return { kind: 'account', accountId, tokenId, hash: proofOf(level, hash), userId: row.userId }
}

/** A server of the session's account, and the session's key to it. */
export async function findServer(
  { read }: Pick<DashboardDeps, 'read'>,
  session: SessionKey,
  { serverId, level }: { readonly serverId: string; readonly level: Level },
): Promise<{ readonly server: ServerState; readonly key: ServerKey } | { readonly answer: Answer }> {
  const { accountId } = session
  const seen = await readServerOf(read, accountKeyOf(session, level), { accountId, serverId })
  if (typeof seen === 'string') return { answer: seen === 'unauthorized' ? NOT_SIGNED_IN : refusalReply(seen) }
  const { server } = seen
  if (server === null) return { answer: refusalReply('not_found') }
  const { mode, defaultStreamId } = server
  const { tokenId, hash, row } = session
  const place = { accountId, serverId: server.serverId, mode, defaultStreamId }
  return { server, key: { kind: 'server', ...place, tokenId, hash: proofOf(level, hash), userId: row.userId } }
}
