/**
 * body - turns body and query of a request into checked values, or into one refusal that lists the faults
 *
 * Spec refusal.order, error.issues, request.json
 */

import { isAscii, isUtf8 } from 'node:buffer'

import { ISSUES_MAX } from '../../schemas/limits.ts'
import type { Route } from '../../schemas/routes.ts'
import { type Reply, refusalReply } from './respond.ts'
import { isOvernested } from './shape/nesting.ts'
import { compileQuery, type Query } from './shape/query.ts'
import { type Check, type Checked, compileBody } from './shape/validate.ts'

/** Body and query for a handler. */
export interface Content {
  readonly body: unknown
  readonly query: Query
}

/** The two checks of a route, compiled once. */
export interface ContentCheck {
  readonly body: Check<unknown> | null
  readonly query: (text: string) => Checked<Query>
  readonly hasQuery: boolean
  /** The body is a form, which its handler reads. */
  readonly isForm: boolean
}

const NO_BODY: Checked<undefined> = { ok: true, value: undefined }
const NO_QUERY: Checked<Query> = { ok: true, value: Object.freeze({}) }
const NOT_JSON: Checked<never> = { ok: false, issues: [{ path: '', message: 'Must be JSON in UTF-8' }] }

/** Compiles the checks of a route. */
export function makeContentCheck(route: Route, media: 'json' | 'form' = 'json'): ContentCheck {
  const body = route.body === null ? null : compileBody(route.body)
  return { body, query: compileQuery(route.query), hasQuery: route.query !== null, isForm: media === 'form' }
}

/** Checks the bytes of the body and the raw query. Returns both parsed, or the refusal with the issues. */
export function readContent(
  check: ContentCheck,
  bytes: Buffer,
  query: string,
): { content: Content } | { refusal: Reply } {
  const body = check.body === null ? NO_BODY : check.isForm ? bytesOf(bytes) : readBody(check.body, bytes)
  const parameters = query === '' && !check.hasQuery ? NO_QUERY : check.query(query)
  if (body.ok && parameters.ok) return { content: { body: body.value, query: parameters.value } }
  const issues = [...(body.ok ? [] : body.issues), ...(parameters.ok ? [] : parameters.issues)].slice(0, ISSUES_MAX)
  return { refusal: refusalReply('invalid_request', { issues }) }
}

/** A copy, because the library's buffer of a body in one piece is only valid during the call. */
function bytesOf(bytes: Buffer): Checked<Buffer> {
  return { ok: true, value: Buffer.from(bytes) }
}

// Spec request.json
function readBody(check: Check<unknown>, bytes: Buffer): Checked<unknown> {
  // The texts of most bodies are plain ASCII, which needs no decoding.
  const isPlain = isAscii(bytes)
  if (!isPlain && !isUtf8(bytes)) return NOT_JSON
  const text = bytes.toString(isPlain ? 'latin1' : 'utf8')
  if (isOvernested(text)) return NOT_JSON
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return NOT_JSON
  }
  return check(value, text.includes('\\u'))
}

/** The bytes of a body that came in pieces; one piece is not copied. */
export function joinPieces(pieces: readonly Buffer[]): Buffer {
  return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
}
