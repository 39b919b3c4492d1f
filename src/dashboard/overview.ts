/**
 * overview - what the overview of a server shows besides statistics, from the handlers that answer each part alone
 *
 * Spec dashboard.overview
 */

import { type PublicRouteName, ROUTES } from '../../schemas/routes.ts'
import type { EdgeRequest, Handler } from '../http/request.ts'
import { type Answer, refusalReply } from '../http/respond.ts'
import { readChecklist } from '../views/dashboard/checklist.ts'
import { type ApiProxyDeps, accountKeyOf, findServer } from './api-proxy.ts'
import { type DashboardHandler, sessionOf } from './deps.ts'

/** Entries of each list. */
const QUERY = { limit: '100' }

/** GET /dashboard/api/servers/{serverId}/overview */
export function makeReadOverview(deps: ApiProxyDeps): DashboardHandler<'readOverview'> {
  return async (request) => {
    const session = sessionOf(request)
    const found = await findServer(deps, session, { serverId: request.params.serverId ?? '', level: 'r' })
    if ('answer' in found) return found.answer
    const handlers = deps.handlersWith(deps.ask)
    const read = async (name: PublicRouteName, key: EdgeRequest['key']): Promise<Answer> => {
      const asked: EdgeRequest = Object.assign(Object.create(request), { key, route: ROUTES[name], query: QUERY })
      return (handlers[name] as Handler)(asked)
    }
    const parts = await Promise.all([
      read('readServer', found.key),
      read('listStreams', found.key),
      read('listWebhooks', found.key),
      read('readWebhookHealth', found.key),
      read('listDomains', accountKeyOf(session, 'r')),
    ])
    const checklist = await readChecklist(deps.read, session.accountId)
    return answerOf(parts, checklist)
  }
}

/** All parts in one, or the first that is refused. */
function answerOf(parts: readonly Answer[], checklist: object | null): Answer {
  if (checklist === null) return refusalReply('unavailable')
  const refused = parts.find((part) => !('status' in part) || part.status !== 200)
  if (refused !== undefined) return refused
  const [server, streams, webhooks, health, domains] = parts.map((part) => jsonOf(part))
  return {
    status: 200,
    json: {
      server,
      streams: streams?.streams,
      domains: domains?.domains,
      webhooks: webhooks?.webhooks,
      health: health?.webhooks,
      checklist,
    },
  }
}

function jsonOf(part: Answer): Readonly<Record<string, unknown>> {
  return (part as { readonly json: Record<string, unknown> }).json
}
