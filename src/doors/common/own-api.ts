/**
 * own-api - our own routes, as doors call them: a mapped request is checked by our route's schema and answered by our
 * route's handler
 *
 * An Idempotency-Key is bound to the body as the client wrote it and to the door's route.
 *
 * Spec refusal.order, error.issues
 */

import type { Issue } from '../../../schemas/error.ts'
import { ISSUES_MAX } from '../../../schemas/limits.ts'
import { type PublicRouteName, ROUTES, type Route } from '../../../schemas/routes.ts'
import { type ContentCheck, makeContentCheck } from '../../http/body.ts'
import type { EdgeRequest, Handler, Handlers } from '../../http/request.ts'
import { type Answer, type Reply, refusalReply } from '../../http/respond.ts'

/** A request to one of our routes. */
export interface Asked {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The body of a route that takes it as it came. */
  readonly pieces?: readonly Buffer[]
  readonly idempotencyKey?: string | null
  /** Whether no string of the body can have a forbidden character: each was checked when it came. */
  readonly areStringsChecked?: boolean
  /** The data to which an Idempotency-Key is bound; absent for the body of the request. */
  readonly original?: unknown
  /** Translates a field of ours to the name in the client's request. */
  readonly rename?: (path: string) => string
}

/** Our own routes. */
export interface OwnApi {
  readonly baseUrl: string
  /** The store's clock. */
  readonly nowMs: () => number
  /** Calls a route as the key of a request. Returns its answer; a refusal names the client's fields. */
  call(name: PublicRouteName, request: EdgeRequest, asked?: Asked): Promise<Answer>
}

/** The body of one of our refusals, or of one message's within an answer. */
export interface OwnRefusal {
  readonly error?: string
  readonly message?: string
  readonly issues?: readonly Issue[]
  readonly domain?: string
}

/** The parts that calls of our own routes need. */
export interface OwnApiDeps {
  readonly handlers: Handlers<PublicRouteName>
  readonly baseUrl: string
  readonly nowMs: () => number
}

/** Makes our own routes callable. */
export function makeOwnApi({ handlers, baseUrl, nowMs }: OwnApiDeps): OwnApi {
  const checks = new Map<PublicRouteName, ContentCheck>()
  const checkOf = (name: PublicRouteName): ContentCheck => {
    const known = checks.get(name)
    if (known !== undefined) return known
    const made = makeContentCheck(ROUTES[name])
    checks.set(name, made)
    return made
  }
  return {
    baseUrl,
    nowMs,
    async call(name, request, asked = {}) {
      const { params = {}, pieces = [], idempotencyKey = null, rename } = asked
      const route: Route = ROUTES[name]
      const checked = check(checkOf(name), route.takesPieces ? { ...asked, body: undefined } : asked)
      if ('issues' in checked) return refuseFields(checked.issues, rename)
      const { body, query } = checked
      const { original = request.body } = asked
      const mapped = withFields(request, { params, query, body, pieces, idempotencyKey, original })
      const answer = await (handlers[name] as Handler)(mapped)
      return isReply(answer) ? renamed(answer, rename) : answer
    },
  }
}

type Mapped = 'params' | 'query' | 'body' | 'pieces' | 'idempotencyKey' | 'original'

/** A request with other fields. They are listed because a spread of so many takes 5 us. */
function withFields(request: EdgeRequest, mapped: Pick<EdgeRequest, Mapped>): EdgeRequest {
  const { connection } = request
  return {
    requestId: request.requestId,
    route: request.route,
    params: mapped.params,
    query: mapped.query,
    body: mapped.body,
    idempotencyKey: mapped.idempotencyKey,
    lastEventId: request.lastEventId,
    accept: request.accept,
    acceptLanguage: request.acceptLanguage,
    acceptEncoding: request.acceptEncoding,
    key: request.key,
    pieces: mapped.pieces,
    client: request.client,
    cookies: request.cookies,
    userAgent: request.userAgent,
    fetchDest: request.fetchDest,
    named: request.named,
    original: mapped.original,
    aborted: request.aborted,
    ...(connection && { connection }),
  }
}

const NO_QUERY = { ok: true, value: Object.freeze({}) } as const

function check(
  { body, query }: ContentCheck,
  asked: Asked,
):
  | { readonly body: unknown; readonly query: Readonly<Record<string, string>> }
  | { readonly issues: readonly Issue[] } {
  const parameters = asked.query === undefined ? NO_QUERY : query(new URLSearchParams(asked.query).toString())
  if (!parameters.ok) return parameters
  if (body === null || asked.pieces !== undefined) return { body: undefined, query: parameters.value }
  const content = body(asked.body, asked.areStringsChecked !== true)
  return content.ok ? { body: content.value, query: parameters.value } : content
}

/** Refuses fields of a client's request without calling a route of ours. */
export function refuseFields(issues: readonly Issue[], rename: (path: string) => string = (path) => path): Reply {
  const shown = issues.slice(0, ISSUES_MAX).map(({ path, message }) => ({ path: rename(path), message }))
  return refusalReply('invalid_request', { issues: shown })
}

function renamed(answer: Reply, rename: Asked['rename']): Reply {
  const { issues } = (answer.json ?? {}) as { issues?: readonly Issue[] }
  if (rename === undefined || issues === undefined) return answer
  const shown = issues.map(({ path, message }) => ({ path: rename(path), message }))
  return { ...answer, json: { ...(answer.json as object), issues: shown } }
}

/** Whether an answer is complete, that is neither a feed nor a download nor the end of the connection. */
export function isReply(answer: Answer): answer is Reply {
  return 'status' in answer
}

/** Whether an answer is that of success. */
export function isAccepted(answer: Answer): answer is Reply {
  return isReply(answer) && answer.status < 300
}

/** Converts our answer to the client's; a refusal stays unchanged. Headers are kept. */
export function answerWith<Json>(answer: Answer, make: (json: Json) => Partial<Reply>): Answer {
  if (!isAccepted(answer)) return answer
  const made = make(answer.json as Json)
  return { status: 200, ...(answer.headers && { headers: answer.headers }), ...made }
}
