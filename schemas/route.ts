/**
 * route - one row of the table of routes
 *
 * Key kinds: S server key, A account key, O operator key; no kind at all means that the route takes no key.
 *
 * Spec route.table
 */

import { BODY_BYTES_MAX } from './limits.ts'
import { roleOfRoute } from './operator/role.ts'
import type { RefusalCode } from './refusals.ts'

export type KeyKind = 'S' | 'A' | 'O'

/** Permissions of a session: read, write as a member, administer. Each includes those before it. */
export type Level = 'r' | 'w' | 'a'

/** Input of a dashboard route. */
export interface SessionNeed {
  /** The least its session must allow; null: it takes no session. */
  readonly level: Level | null
  /** Whether its session must have been confirmed recently. */
  readonly confirms: boolean
  /** Whether it is open to users who have yet to set up the second factor that their account requires. */
  readonly isBefore: boolean
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** One route, typed by its name, its kinds of key and the schema of its body. */
export interface Route<Name extends string = string, Keys extends KeyKind = KeyKind, Body = object | null> {
  /** Short name, for logs and handlers. */
  readonly name: Name
  /** Which listener serves it. */
  readonly listener: 'public' | 'operator'
  readonly method: Method
  /** Path with `{parameter}` segments. */
  readonly path: string
  /** Accepted kinds of key; empty if none is required. */
  readonly keys: readonly Keys[]
  /** Schema of the body; null: any body is ignored. */
  readonly body: Body
  /** Schema of the query; null if it has no parameters. */
  readonly query: object | null
  /** Status of success, and the schema of that answer (null for no JSON body). */
  readonly success: {
    readonly status: number
    readonly body: object | null
    /** Media type of an answer that is no JSON. */
    readonly media?: string
  }
  readonly bodyBytesMax: number
  /** Whether the route honours Idempotency-Key. */
  readonly isIdempotent: boolean
  /** Whether it uses Last-Event-ID, after whose event a feed resumes. */
  readonly takesLastEventId: boolean
  /** Requests a second of one client, if the route has its own rate; null for that of its listener. */
  readonly ratePerSecond: number | null
  /** Whether its handler takes the raw body in pieces, with its schema checked elsewhere. */
  readonly takesPieces: boolean
  /** Null if it is not a route of the dashboard. */
  readonly session: SessionNeed | null
  /** Codes that it refuses with beside those of every route like it. */
  readonly refusals: readonly RefusalCode[]
}

type Rest<Keys extends KeyKind, Body> = Partial<
  Pick<
    Route<string, Keys, Body>,
    | 'listener'
    | 'keys'
    | 'body'
    | 'query'
    | 'bodyBytesMax'
    | 'isIdempotent'
    | 'takesLastEventId'
    | 'takesPieces'
    | 'session'
    | 'refusals'
  >
> &
  Pick<Route, 'success'>

/** A row; its default is a public route of a server key without body and query. */
export function route<const Name extends string, const Keys extends KeyKind = 'S', const Body = null>(
  name: Name,
  method: Method,
  path: string,
  rest: Rest<Keys, Body>,
): Route<Name, NoInfer<Keys>, NoInfer<Body>> {
  const row: Route = {
    name,
    method,
    path,
    listener: 'public',
    keys: ['S'],
    body: null,
    query: null,
    bodyBytesMax: BODY_BYTES_MAX,
    isIdempotent: false,
    takesLastEventId: false,
    ratePerSecond: null,
    takesPieces: false,
    session: null,
    refusals: [],
    ...(rest as Rest<KeyKind, object | null>),
  }
  const isRestricted = row.keys.includes('O') && roleOfRoute(row) !== 'readOnly'
  const refusals: readonly RefusalCode[] = isRestricted ? ['role_not_allowed', ...row.refusals] : row.refusals
  return { ...row, refusals } as Route<Name, Keys, Body>
}

/** Minimal type of the document of the interface; OpenAPI 3.1 defines the rest. */
export const OPENAPI = {
  type: 'object',
  properties: {
    openapi: { const: '3.1.0' },
    info: { type: 'object' },
    paths: { type: 'object' },
    components: { type: 'object' },
  },
  required: ['openapi', 'info', 'paths', 'components'],
} as const

/** Whether a route only reads, even by POST, so that a closed account may still use it. */
export function isLook({ method, path }: Pick<Route, 'method' | 'path'>): boolean {
  return method === 'GET' || /\/(?:search|outcomes|export|preview|checks)$/.test(path)
}
