/**
 * dashboard-edge - the checks of a request to the dashboard: a session's cookie, an origin of ours, a level
 *
 * A cookie is sent by any page that a browser shows, so every request that may change something must come from a page
 * of our own origin: SameSite alone lets in pages on other ports of the host. Without TLS a session can be read in
 * transit, so signing in is allowed only on the loopback.
 *
 * Spec session.cookie, session.origin, member.role, session.confirm
 */

import type { Route, SessionNeed } from '../../schemas/route.ts'
import { holdsLevel } from '../state/dashboard/session.ts'
import type { KeyOwner } from '../views/key.ts'
import type { RequestHeaders } from './headers.ts'
import { type ParsedKey, parseKey } from './key.ts'
import { type Reply, refusalReply } from './respond.ts'

/** Shared settings of all requests to the dashboard. */
export interface DashboardEdge {
  readonly cookie: string
  /** Origins whose pages are ours. */
  readonly origins: ReadonlySet<string>
  /** Whether who signs in may be read on the way. */
  readonly isOpen: boolean
  readonly nowMs: () => number
}

/** Headers of every answer: no caching, and no content sniffing. */
export const DASHBOARD_HEADERS = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
export const NOT_SIGNED_IN: Reply = {
  status: 401,
  json: { error: 'unauthorized', message: 'Not signed in, or the session has ended' },
}
const CROSS_ORIGIN = refusalReply('cross_origin')
const INSECURE = refusalReply('insecure_address')
const ROLE_NOT_ALLOWED = refusalReply('role_not_allowed')
const FACTOR_REQUIRED = refusalReply('second_factor_required')
const CONFIRMATION_REQUIRED = refusalReply('confirmation_required')
/** The form of the name that a browser gets at the first step of signing in. */
const STEP = /^[\w-]{43}$/

/** Makes the shared part of requests. Takes the public address, the port of the listener, and the store's clock. */
export function makeDashboardEdge(baseUrl: string, port: number, nowMs: () => number): DashboardEdge {
  const { protocol, origin, hostname } = new URL(baseUrl)
  const isSecure = protocol === 'https:'
  const isLocal = LOOPBACK.includes(hostname)
  const own = isLocal ? LOOPBACK.map((host) => `${protocol}//${host}:${port}`) : []
  const cookie = isSecure ? '__Host-sendwright' : 'sendwright'
  return { cookie, origins: new Set([origin, ...own]), isOpen: !isSecure && !isLocal, nowMs }
}

/** The header that gives a browser its session; null takes it away. */
export function cookieHeader({ cookie }: Pick<DashboardEdge, 'cookie'>, token: string | null, maxAgeS = 0): string {
  const secure = cookie.startsWith('__Host-') ? '; Secure' : ''
  return `${cookie}=${token ?? ''}${secure}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${token === null ? 0 : maxAgeS}`
}

/** The session's token in the cookies of a request; null if there is none of its form, or more than one. */
export function readSession({ cookie }: Pick<DashboardEdge, 'cookie'>, cookies: string): ParsedKey | null {
  const parsed = parseKey(findCookie(cookies, cookie) ?? '')
  return parsed?.kind === 'ss' ? parsed : null
}

/** The header that names a browser between two steps of signing in. */
export function stepHeader({ cookie }: Pick<DashboardEdge, 'cookie'>, step: string, maxAgeS: number): string {
  return cookieHeader({ cookie: `${cookie}-step` }, step, maxAgeS)
}

/** The name that a browser was given for the steps of signing in; null if it has none. */
export function readStep({ cookie }: Pick<DashboardEdge, 'cookie'>, cookies: string): string | null {
  const step = findCookie(cookies, `${cookie}-step`)
  return step !== null && STEP.test(step) ? step : null
}

/** The header that names a device in which a user has signed in. */
export function deviceHeader({ cookie }: Pick<DashboardEdge, 'cookie'>, device: string, maxAgeS: number): string {
  return cookieHeader({ cookie: `${cookie}-device` }, device, maxAgeS)
}

/** The value of that cookie; null if there is none, or more than one. */
export function readDevice({ cookie }: Pick<DashboardEdge, 'cookie'>, cookies: string): string | null {
  return findCookie(cookies, `${cookie}-device`)
}

/** Null if there is none of the name, or more than one. */
function findCookie(cookies: string, name: string): string | null {
  const found = cookies.split(';').flatMap((one) => {
    const text = one.trim()
    return text.startsWith(`${name}=`) ? [text.slice(name.length + 1)] : []
  })
  return found.length === 1 ? (found[0] as string) : null
}

/** Decides on a request for a known path, with a session if needed. Returns the refusal, or null. */
export function admitToDashboard(
  { origins, isOpen, nowMs }: DashboardEdge,
  { level, confirms, isBefore }: SessionNeed,
  of: { readonly method: Route['method']; readonly headers: RequestHeaders; readonly owner: KeyOwner | null },
): Reply | null {
  const { method, headers, owner } = of
  if (method !== 'GET' && !origins.has(headers.origin)) return CROSS_ORIGIN
  if (level === null) return isOpen ? INSECURE : null
  if (owner?.kind !== 'session') return NOT_SIGNED_IN
  if (!holdsLevel(owner.row.level, level)) return ROLE_NOT_ALLOWED
  if (owner.row.needsFactor && !isBefore) return FACTOR_REQUIRED
  return confirms && owner.row.confirmedMs <= nowMs() ? CONFIRMATION_REQUIRED : null
}
