/**
 * admit - may this request's body be looked at: key, path, kind of key, media type, headers, in that order
 *
 * Each step is one line of `admit`; the first refusal answers. The plain-text 429 and 413 come before, the body after.
 *
 * Spec refusal.order, key.unknown, key.kind, request.media, request.idempotency
 */

import { IDEMPOTENCY_KEY_CHARS_MAX } from '../../schemas/limits.ts'
import type { SessionNeed } from '../../schemas/route.ts'
import type { KeyKind, Route } from '../../schemas/routes.ts'
import { admitToDashboard, type DashboardEdge, NOT_SIGNED_IN } from './dashboard-edge.ts'
import type { DoorRouteOptions } from './door.ts'
import type { RequestHeaders } from './headers.ts'
import type { KeyOwner, ParsedKey, TokenKind } from './key.ts'
import { parseKey } from './key.ts'
import { type Reply, refusalReply } from './respond.ts'

/** Checks that a path makes before the body counts. */
export interface Gate {
  readonly listener: Route['listener']
  /** False if the path takes no key. */
  readonly needsKey: boolean
  /** The refusal of an unknown path or method; null for a route. */
  readonly noRoute: Reply | null
  /** Kinds of owner that the route takes; empty: all. */
  readonly owners: readonly KeyOwner['kind'][]
  readonly wrongKind: Reply
  readonly takesBody: boolean
  readonly media: DoorRouteOptions['media']
  readonly isIdempotent: boolean
  readonly badIdempotencyKey: Reply
  readonly idempotencyCharsMax: number
  /** The session that a dashboard route needs; null elsewhere. */
  readonly session: SessionNeed | null
  readonly method: Route['method']
}

const OWNERS: Readonly<Record<KeyKind, KeyOwner['kind']>> = { S: 'server', A: 'account', O: 'operator' }
const KIND_NAMES: Readonly<Record<KeyKind, string>> = {
  S: 'a server key (sk_ or sk_test_)',
  A: 'an account key (ak_)',
  O: 'an operator key (ok_)',
}
/** The operator's key, and a session opened with one. */
const OPERATOR_KINDS: readonly TokenKind[] = ['ok', 'os']
const BEARER = /^bearer +(\S+)$/i
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/

const KEY_MISSING = refusalReply('unauthorized', {}, 'API key missing: send the header "Authorization: Bearer <key>"')
const KEY_MALFORMED = refusalReply(
  'unauthorized',
  {},
  'API key malformed: send the header "Authorization: Bearer <key>" with the whole key',
)
/** For a well-formed key; the answer does not reveal whether it ever existed. */
const KEY_UNKNOWN = refusalReply('unauthorized', {}, 'API key unknown or revoked')
/** A header that may be there once. */
export const REPEATED = {
  Host: refusalReply('invalid_request', {}, 'Host must be given once'),
  Authorization: refusalReply('invalid_request', {}, 'Authorization must be given once'),
} as const
const UNSUPPORTED: Reply = refusalReply('unsupported_media_type')
const UNSUPPORTED_FORM: Reply = refusalReply(
  'unsupported_media_type',
  {},
  'Body must be multipart/form-data or application/x-www-form-urlencoded without a Content-Encoding',
)
const FORMS = ['multipart/form-data', 'application/x-www-form-urlencoded']

/** Makes the gate of a route. */
export function makeGate(route: Route, options?: DoorRouteOptions): Gate {
  const kinds = route.keys.map((kind) => KIND_NAMES[kind]).join(' or ')
  return {
    listener: route.listener,
    needsKey: route.session === null ? route.keys.length > 0 : route.session.level !== null,
    noRoute: null,
    owners: route.keys.map((kind) => OWNERS[kind]),
    wrongKind: refusalReply('wrong_token_kind', {}, `Wrong kind of key: this operation takes ${kinds}`),
    takesBody: route.body !== null,
    media: options?.media ?? 'json',
    isIdempotent: route.isIdempotent,
    ...boundsOfKey(options?.idempotencyCharsMax),
    session: route.session,
    method: route.method,
  }
}

/** Makes the gate of unknown paths, which requires a key first, so that paths cannot be mapped without one. */
export function makeDeadEnd(
  listener: Route['listener'],
  noRoute: Reply,
  needsKey = true,
  session: SessionNeed | null = null,
): Gate {
  return {
    listener,
    needsKey,
    noRoute,
    owners: [],
    wrongKind: KEY_UNKNOWN,
    takesBody: false,
    media: 'json',
    isIdempotent: false,
    ...boundsOfKey(),
    session,
    method: 'GET',
  }
}

/** Reads the key of a request; null if it is missing, malformed, or of a kind that this listener does not know. */
export function readKey(gate: Gate, authorization: string): ParsedKey | null {
  const parsed = parsedKey(authorization)
  // Spec key.unknown
  if (parsed === null || parsed.kind === 'ss') return null
  return OPERATOR_KINDS.includes(parsed.kind) === (gate.listener === 'operator') ? parsed : null
}

function parsedKey(authorization: string): ParsedKey | null {
  const token = authorization.startsWith('Bearer sk_') ? authorization.slice(7) : BEARER.exec(authorization)?.[1]
  return token === undefined ? null : parseKey(token)
}

/** The refusal of a request without an owner: which of three it is, as far as the sender can see it too. */
export function unauthorized(authorization: string): Reply {
  if (authorization === '') return KEY_MISSING
  return parsedKey(authorization) === null ? KEY_MALFORMED : KEY_UNKNOWN
}

/** Decides on all but the body. Takes the owner of the key (null if it is unknown). Returns the refusal, or null. */
export function admit(
  gate: Gate,
  headers: RequestHeaders,
  owner: KeyOwner | null,
  dashboard: DashboardEdge | null = null,
): Reply | null {
  if (gate.needsKey && owner === null)
    return gate.session === null ? unauthorized(headers.authorization) : NOT_SIGNED_IN
  if (gate.noRoute !== null) return gate.noRoute
  if (gate.session !== null && dashboard !== null) {
    const refusal = admitToDashboard(dashboard, gate.session, { method: gate.method, headers, owner })
    if (refusal !== null) return refusal
  }
  // Spec key.kind
  else if (owner !== null && gate.needsKey && !gate.owners.includes(owner.kind)) return gate.wrongKind
  if (gate.takesBody && !isOfMedia(gate.media, headers)) return gate.media === 'json' ? UNSUPPORTED : UNSUPPORTED_FORM
  if (gate.isIdempotent && !isIdempotencyKey(gate, headers.idempotencyKey)) return gate.badIdempotencyKey
  return null
}

// Spec request.media
function isOfMedia(expected: Gate['media'], { contentType, contentEncoding }: RequestHeaders): boolean {
  if (contentEncoding !== '') return false
  if (expected === 'json' && contentType === 'application/json') return true
  const end = contentType.indexOf(';')
  const media = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase()
  return expected === 'json' ? media === 'application/json' : FORMS.includes(media)
}

// Spec request.idempotency
function isIdempotencyKey({ idempotencyCharsMax }: Gate, value: string | null): boolean {
  return value === null || (value.length <= idempotencyCharsMax && PRINTABLE_ASCII.test(value))
}

function boundsOfKey(charsMax = IDEMPOTENCY_KEY_CHARS_MAX): Pick<Gate, 'idempotencyCharsMax' | 'badIdempotencyKey'> {
  const message = `Idempotency-Key must be 1 to ${charsMax} printable ASCII characters`
  return { idempotencyCharsMax: charsMax, badIdempotencyKey: refusalReply('invalid_request', {}, message) }
}
