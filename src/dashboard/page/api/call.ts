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
  /** A read that any service answers. */
  probe: '/session',
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

/** Routes that only read, although they are a POST. */
const READS = /\/(?:search|find|outcomes|read)$/

type Sent = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: ApiError }

async function send(method: ApiMethod, path: string, { body, signal }: CallOptions): Promise<Sent> {
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
  if (response === null) {
    gates.lost()
    return { ok: false, error: new ApiError(0, { message: 'The service cannot be reached' }, null) }
  }
  const text = await response.text()
  const isJson = response.headers.get('Content-Type')?.startsWith('application/json') ?? false
  const value: unknown = isJson && text !== '' ? JSON.parse(text) : null
  if (response.ok) return { ok: true, value }
  const said = (value as Record<string, unknown> | null) ?? { message: text || `Answered ${response.status}` }
  // The words of the refusal are about writes.
  const isUnread = response.status === 503 && (!isWrite || READS.test(path))
  if (isUnread) said.message = 'This could not be read. Try again in a moment.'
  return { ok: false, error: new ApiError(response.status, said, response.headers.get('Request-Id')) }
}

/** A query; undefined and empty values are left out. */
export function queryOf(fields: Readonly<Record<string, string | number | null | undefined>>): string {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const query = new URLSearchParams(known.map(([name, value]) => [name, String(value)])).toString()
  return query === '' ? '' : `?${query}`
}
