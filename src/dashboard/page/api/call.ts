/**
 * call - a request to the dashboard's interface, and its refusal
 *
 * Guarantees: a failed answer becomes an `ApiError` with the Request-Id; if a confirmation is required, the user is
 * asked for it and the request is sent again; without a session the user is sent to the sign-in page.
 */

interface Issue {
  readonly path: string
  readonly message: string
}

/** The refusal of a request, or the reason for a missing answer (status 0). */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null
  readonly issues: readonly Issue[]
  /** Fields of the refusal's own. */
  readonly extra: Readonly<Record<string, unknown>>

  constructor(status: number, body: Readonly<Record<string, unknown>>, requestId: string | null) {
    super(String(body.message ?? 'The service did not answer'))
    this.status = status
    this.code = String(body.error ?? 'no_answer')
    this.requestId = requestId
    this.issues = (body.issues as Issue[] | undefined) ?? []
    this.extra = body
  }
}

/** Hooks set by the pages: the path of the interface, and handlers for the end or interruption of a session. */
export const gates = {
  base: '/dashboard/api',
  /** A path that answers without a session, because one may have ended. */
  probe: '/dashboard/',
  /** A request got no answer. */
  lost: (): void => undefined,
  /** The session is over. */
  signedOut: (): void => undefined,
  /** Asks for a password, a code or a passkey. Returns whether the user confirmed. */
  confirm: async (): Promise<boolean> => false,
  /** The authorization header, if no cookie is used. */
  authorization: (): string | null => null,
}

export type ApiMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE'

interface CallOptions {
  readonly body?: object
  readonly signal?: AbortSignal
}

/** Calls a route: `call('GET', '/servers')`. Returns the answer, or null for 204. Throws ApiError. */
export async function call<Result>(method: ApiMethod, path: string, options: CallOptions = {}): Promise<Result> {
  const sent = await send(method, path, options)
  if (sent.ok) return sent.value as Result
  const { error } = sent
  if (error.code === 'confirmation_required' && (await gates.confirm())) {
    const again = await send(method, path, options)
    if (again.ok) return again.value as Result
    throw again.error
  }
  if (error.status === 401 && error.code === 'unauthorized') gates.signedOut()
  throw error
}

/** Fetches a file that a POST answers. Throws ApiError, also if the file breaks off. */
export async function fetchFile(path: string, body: object): Promise<Blob> {
  const response = await request('POST', path, { body })
  if (response?.ok) {
    const blob = await response.blob().catch(() => null)
    if (blob !== null) return blob
    throw new ApiError(0, { message: 'The file broke off: try again' }, response.headers.get('Request-Id'))
  }
  const error = response === null ? unreachable() : await readRefusal(response, isRead('POST', path))
  if (error.status === 401 && error.code === 'unauthorized') gates.signedOut()
  throw error
}

/** Routes that only read, although they are a POST. */
const READS = /\/(?:search|find|outcomes|read|export)$/

function isRead(method: ApiMethod, path: string): boolean {
  return method === 'GET' || READS.test(path)
}

type Sent = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: ApiError }

async function send(method: ApiMethod, path: string, options: CallOptions): Promise<Sent> {
  const response = await request(method, path, options)
  if (response === null) return { ok: false, error: unreachable() }
  if (!response.ok) return { ok: false, error: await readRefusal(response, isRead(method, path)) }
  return { ok: true, value: parseBody(response, await response.text()) }
}

/** Sends a request. Returns null if the service does not answer. */
async function request(method: ApiMethod, path: string, { body, signal }: CallOptions): Promise<Response | null> {
  const authorization = gates.authorization()
  const isWrite = method !== 'GET'
  const init: RequestInit = {
    method,
    credentials: 'same-origin',
    headers: {
      // Every write is JSON: another page's form cannot be.
      ...(isWrite && { 'Content-Type': 'application/json' }),
      ...(authorization !== null && { Authorization: authorization }),
    },
    ...(isWrite && { body: JSON.stringify(body ?? {}) }),
    ...(signal !== undefined && { signal }),
  }
  const response = await fetch(gates.base + path, init).catch((cause: unknown) => {
    if (signal?.aborted) throw cause
    return null
  })
  if (response === null) gates.lost()
  return response
}

function unreachable(): ApiError {
  return new ApiError(0, { message: 'The service cannot be reached' }, null)
}

async function readRefusal(response: Response, isOfRead: boolean): Promise<ApiError> {
  const text = await response.text()
  const { status, headers } = response
  const body = parseBody(response, text) as Record<string, unknown> | null
  const said = body ?? { message: text || `Answered ${status}` }
  // The words of the refusal are about writes.
  if (status === 503 && isOfRead) said.message = 'This could not be read. Try again in a moment.'
  return new ApiError(status, said, headers.get('Request-Id'))
}

/** The JSON of an answer; null if it has none. */
function parseBody({ headers }: Response, text: string): unknown {
  const isJson = headers.get('Content-Type')?.startsWith('application/json') ?? false
  return isJson && text !== '' ? JSON.parse(text) : null
}

/** A query; undefined and empty values are left out. */
export function formatQuery(fields: Readonly<Record<string, string | number | null | undefined>>): string {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const query = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString()
  return query === '' ? '' : `?${query}`
}
