/** deps - what the dashboard's handlers need, and how a request of theirs looks */

import type { DashboardBodyOf, DashboardRouteName } from '../../schemas/dashboard/routes.ts'
import type { DashboardEdge } from '../http/dashboard-edge.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import type { Secrets } from '../process/secrets.ts'
import type { OrderDeps } from '../routes/answer.ts'
import type { Reader, SessionKey } from '../views/key.ts'

export interface DashboardDeps extends OrderDeps {
  readonly read: Reader
  readonly secrets: Pick<Secrets, 'loginHmac' | 'clientHmac' | 'linkKey' | 'challengeKey' | 'sealingKey'>
  readonly baseUrl: string
  readonly edge: DashboardEdge
}

/** A request of one of the dashboard's own routes; its session where the route takes one, or where there is one. */
export type DashboardRequest<Name extends DashboardRouteName = DashboardRouteName> = EdgeRequest<
  SessionKey | null,
  DashboardBodyOf<Name>
>

export type DashboardHandler<Name extends DashboardRouteName> = Handler<DashboardRequest<Name>>

/** The session of a request whose route takes one. */
export function sessionOf({ key }: { readonly key: SessionKey | null }): SessionKey {
  if (key === null) throw new TypeError('A route without a session has none')
  return key
}
