/** deps - the dependencies of the dashboard's handlers, and the form of their requests */

import { homeShard } from '../../cluster/id.ts'
import type { DashboardBodyOf, DashboardRouteName } from '../../schemas/dashboard/routes.ts'
import type { DashboardEdge } from '../http/dashboard-edge.ts'
import type { EdgeLog, EdgeRequest, Handler } from '../http/request.ts'
import type { Secrets } from '../process/secrets.ts'
import { giveOrder, type OrderDeps, type Replied } from '../routes/answer.ts'
import type { MemberAct } from '../state/dashboard/act.ts'
import { proofOf } from '../state/dashboard/session.ts'
import type { Reader, SessionKey } from '../views/key.ts'

export interface DashboardDeps extends OrderDeps {
  readonly read: Reader
  readonly secrets: Pick<
    Secrets,
    'loginHmac' | 'clientHmac' | 'linkKey' | 'challengeKey' | 'deviceKey' | 'recoveryHmac' | 'ring'
  >
  readonly baseUrl: string
  readonly log: EdgeLog
  readonly edge: DashboardEdge
}

/**
 * A request of one of the dashboard's own routes, with its session if the route requires one, or the request has one.
 */
export type DashboardRequest<Name extends DashboardRouteName = DashboardRouteName> = EdgeRequest<
  SessionKey | null,
  DashboardBodyOf<Name>
>

export type DashboardHandler<Name extends DashboardRouteName> = Handler<DashboardRequest<Name>>

/** The session of a request whose route takes one. */
export function sessionOf({ key }: { readonly key: SessionKey | null }): SessionKey {
  if (key === null) throw new TypeError('This route has no session')
  return key
}

/** Sends a command as a member, whose effect is logged; that of an automatic check only if it changes something. */
export function askAs(
  ask: OrderDeps['ask'],
  { key, route, params }: Pick<EdgeRequest<SessionKey | null>, 'key' | 'route' | 'params'>,
  { isLook = false }: { readonly isLook?: boolean } = {},
): OrderDeps['ask'] {
  const { accountId, row } = sessionOf({ key })
  const member: MemberAct = { accountId, userId: row.userId, act: route.name, targets: { ...params } }
  const as = isLook ? { member, isLook } : { member }
  return (shard, command) => ask(shard, { ...command, body: { ...(command.body as object), ...as } })
}

/** Gives an order of the request's member about the account; the session is its proof, and it is logged. */
export function orderAs<Reply extends { readonly kind: string }>(
  deps: OrderDeps,
  request: DashboardRequest,
  { name, body }: { readonly name: string; readonly body: object },
): Promise<Replied<Reply>> {
  const { accountId, hash } = sessionOf(request)
  const keyHash = proofOf(request.route.session?.level ?? 'a', hash)
  const asking = { ...deps, ask: askAs(deps.ask, request) }
  return giveOrder<Reply>(asking, homeShard(accountId), { name, body: { ...body, accountId, keyHash } })
}
