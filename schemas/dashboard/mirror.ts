/**
 * mirror - the API routes that the dashboard has too, derived from the table of routes
 *
 * A route of a server key is at `/dashboard/api/servers/{serverId}/<rest>`, one of an account key at
 * `/dashboard/api/<rest>`, with the same bodies and answers. If both lead to the same path, the account key's is used.
 * Routes that send are not mirrored, and a feed of events is the dashboard's own.
 *
 * Spec member.mirror, member.role
 */

import type { Level, Route } from '../route.ts'
import { type PublicRouteName, ROUTES } from '../routes.ts'
import { DASHBOARD_PATH } from './routes.ts'

/** A mirrored route, and its original. */
export interface MirroredRoute {
  readonly name: PublicRouteName
  readonly route: Route
  /** Whether its path names the server, which the handler otherwise derives from a server key. */
  readonly isOfServer: boolean
}

const NOT_MIRRORED: readonly string[] = [
  'sendEmail',
  'sendBatch',
  'createBroadcast',
  'previewBroadcast',
  'listenToEvents',
]
/** Routes that only read, although they are a POST. An export of an account is for administrators, as its list is. */
const LOOKS = /^(?:search|export(?:Tls)?Reports$)/
const SERVER_LOOKS = /^(?:search|export)/
/** Orders of a member, though they are routes of account keys. */
const OF_MEMBERS: readonly string[] = ['verifyDomain', 'createServerToken', 'revokeServerToken']
/** A stolen session must not create anything that outlives it, or remove anything that cannot be restored. */
const CONFIRMED: readonly string[] = [
  'createServer',
  'deleteServer',
  'createServerToken',
  'revokeServerToken',
  'revokeAccountToken',
  'deleteDomain',
  'createWebhook',
  'deleteWebhook',
  'addWebhookSecret',
  'deleteWebhookSecret',
  'createErasure',
]

export const MIRRORED_ROUTES: readonly MirroredRoute[] = makeMirror()

function makeMirror(): MirroredRoute[] {
  const made = new Map<string, MirroredRoute>()
  for (const [name, row] of Object.entries<Route>(ROUTES)) {
    if (row.listener !== 'public' || row.keys.length === 0 || NOT_MIRRORED.includes(name)) continue
    const isOfServer = !row.keys.includes('A')
    const path = `${DASHBOARD_PATH}${isOfServer ? '/servers/{serverId}' : ''}${row.path.slice('/v1'.length)}`
    const session = { level: levelOfRoute(name, row, isOfServer), confirms: CONFIRMED.includes(name), isBefore: false }
    const place = `${row.method} ${path}`
    if (isOfServer && made.has(place)) continue
    made.set(place, { name: name as PublicRouteName, isOfServer, route: { ...row, path, keys: [], session } })
  }
  return [...made.values()]
}

/** The least that a route takes. */
function levelOfRoute(name: string, { method }: Route, isOfServer: boolean): Level {
  if (method === 'GET' || (isOfServer ? SERVER_LOOKS : LOOKS).test(name)) return 'r'
  return isOfServer || OF_MEMBERS.includes(name) ? 'w' : 'a'
}
