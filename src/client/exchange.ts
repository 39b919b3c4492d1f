/**
 * exchange - one call of the API: the request, its answer or error, and its retries
 *
 * A call is repeated only if that cannot take effect twice: reads and searches, and sends, which carry an
 * Idempotency-Key. It is repeated after 429, 502, 503, 504 and a lost connection, at most four times.
 *
 * Spec client.retries, request.idempotency
 */
import { ConnectionError, makeError, type Refused, SendwrightError } from './errors.ts'
import type { SendOptions, SendwrightOptions, Signal } from './options.ts'

/** Retries of a call, and the pause before the first of them if the answer names none. */
const RETRIES_MAX = 4
const RETRY_MS = 500
/** A longer Retry-After is left to the caller, because that of a monthly cap is weeks. */
const RETRY_AFTER_SECONDS_MAX = 60
/** Longer than the service waits before it answers or closes the connection. */
const ANSWER_MS_MAX = 40_000
/** A received mail with its attachments, and JSON around it. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
/** Maximum seconds of a search's wait, and additional seconds for an answer. */
const WAIT_SECONDS_MAX = 30
const ANSWER_SECONDS = 5
const TRANSIENT: readonly number[] = [429, 502, 503, 504]

/** One call. */
export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly query?: object | undefined
  readonly body?: object | undefined
  /** Whether the route honours an Idempotency-Key. */
  readonly isSend?: boolean
  readonly options?: SendOptions | undefined
}

export interface Exchange {
  /** Seconds that a search can wait within the time limit of an attempt. */
  readonly waitSecondsMax: number
  /** The JSON of the answer. */
  ask<Answer>(call: Call): Promise<Answer>
  /** The bytes of the answer. */
  bytes(call: Call): Promise<Uint8Array>
  /** A streamed answer, after its head: of a POST if there is a body. `signal` ends it. */
  open(
    call: Pick<Call, 'path' | 'body'> & { readonly headers?: Record<string, string> },
    signal: Signal,
  ): Promise<AsyncIterable<Uint8Array>>
}

/**
 * Makes the exchange of a client.
 * @throws SendwrightError if an option is wrong, or in a browser unless it is allowed
 */
export function makeExchange(options: SendwrightOptions): Exchange {
  const { retries, timeoutMs, base, key } = checked(options)
  const urlOf = ({ path, query }: Pick<Call, 'path' | 'query'>) => base + path + formatQuery(query)
  const authorization = `Bearer ${key}`
  const reply = async (call: Call): Promise<Reply> => {
    const { method, body, isSend = false, options: { signal } = {} } = call
    const headers = await makeHeaders(call, authorization)
    const request = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const isRepeatable = isSend || method === 'GET' || /\/(?:search|preview)$/.test(call.path)
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await attemptAt(urlOf(call), request, { signal, timeoutMs })
      if (outcome instanceof Reply && outcome.isOk) return outcome
      const pauseMs = isRepeatable && attempt < retries ? pauseBefore(outcome, attempt) : null
      if (pauseMs === null) throw outcome instanceof Reply ? outcome.error() : outcome
      await pause(pauseMs, signal)
    }
  }
  return {
    waitSecondsMax: Math.max(0, Math.min(WAIT_SECONDS_MAX, Math.floor(timeoutMs / 1000) - ANSWER_SECONDS)),
    async ask<Answer>(call: Call): Promise<Answer> {
      const answer = await reply(call)
      return (answer.status === 204 ? undefined : answer.json()) as Answer
    },
    bytes: async (call) => (await reply(call)).bytes,
    async open({ path, body, headers = {} }, signal) {
      const json = body === undefined ? {} : { 'content-type': 'application/json' }
      const posted = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      const request = { ...posted, headers: { authorization, ...json, ...headers } }
      const outcome = await openAt(base + path, request, signal)
      if (outcome instanceof Reply) throw outcome.error()
      return outcome
    },
  }
}

/** Throws SendwrightError if the Idempotency-Key cannot be sent. */
async function makeHeaders(call: Call, authorization: string): Promise<Record<string, string>> {
  const { body, isSend = false, options: { idempotencyKey } = {} } = call
  if (idempotencyKey !== undefined && !/^[\x20-\x7e]{1,255}$/.test(idempotencyKey))
    throw new SendwrightError('idempotencyKey must be 1 to 255 printable ASCII characters')
  const headers: Record<string, string> = { authorization }
  if (body !== undefined) headers['content-type'] = 'application/json'
  if (isSend) headers['idempotency-key'] = idempotencyKey ?? (await newUuid())
  return headers
}

function checked(options: SendwrightOptions) {
  const { key, url = 'http://127.0.0.1:8080', retries = RETRIES_MAX, timeoutMs = ANSWER_MS_MAX } = options
  if (typeof key !== 'string' || !/^[\x21-\x7e]+$/.test(key))
    throw new SendwrightError('No API key: set `key` to a server key (sk_) or an account key (ak_)')
  if (isBrowser() && options.allowBrowser !== true)
    throw new SendwrightError(
      'A key in a browser can be read by every visitor: call the API from your server, or set `allowBrowser: true`',
    )
  if (!/^https?:\/\/[^/?#]/.test(url)) throw new SendwrightError(`url must begin with http:// or https://: ${url}`)
  if (!(Number.isInteger(retries) && retries >= 0 && retries <= RETRIES_MAX))
    throw new SendwrightError(`retries must be an integer from 0 to ${RETRIES_MAX}: ${retries}`)
  if (!(timeoutMs > 0 && timeoutMs <= 2 ** 31 - 1))
    throw new SendwrightError(`timeoutMs must be a number of milliseconds above 0: ${timeoutMs}`)
  return { key, base: url.replace(/\/+$/, ''), retries, timeoutMs }
}

/** A page or a worker of one. */
function isBrowser(): boolean {
  const here = globalThis as { window?: { document?: unknown }; importScripts?: unknown }
  return here.window?.document !== undefined || typeof here.importScripts === 'function'
}

/** Values that are undefined are left out. */
function formatQuery(query: object | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined)
  const text = pairs.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')
  return text === '' ? '' : `?${text}`
}

/** A whole answer. */
class Reply {
  readonly status: number
  readonly isOk: boolean
  readonly bytes: Uint8Array
  readonly requestId: string | null
  readonly retryAfterSeconds: number | null

  constructor(response: Response, bytes: Uint8Array) {
    const seconds = response.headers.get('retry-after') ?? ''
    this.status = response.status
    this.isOk = response.ok
    this.bytes = bytes
    this.requestId = response.headers.get('request-id')
    this.retryAfterSeconds = /^\d{1,9}$/.test(seconds) ? Number(seconds) : null
  }

  json(): unknown {
    const text = new TextDecoder().decode(this.bytes)
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw new SendwrightError(`The answer is not JSON, is this the address of the API? ${text.slice(0, 200)}`, {
        cause,
      })
    }
  }

  error(): SendwrightError {
    const text = new TextDecoder().decode(this.bytes)
    const { status, requestId, retryAfterSeconds } = this
    return makeError({ status, body: refusalIn(text), text, requestId, retryAfterSeconds })
  }
}

function refusalIn(text: string): Refused | null {
  try {
    const body = JSON.parse(text) as Partial<Refused> | null
    return typeof body?.error === 'string' && typeof body.message === 'string' ? (body as Refused) : null
  } catch {
    return null
  }
}

interface Ending {
  readonly signal: Signal | undefined
  readonly timeoutMs: number
}

/** One attempt. Returns the answer, or the reason why there is none; throws the reason of the caller's signal. */
async function attemptAt(
  url: string,
  request: RequestInit,
  { signal, timeoutMs }: Ending,
): Promise<Reply | ConnectionError> {
  const ending = new AbortController()
  const end = () => ending.abort()
  const timer = setTimeout(end, timeoutMs)
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  try {
    const response = await fetch(url, { ...request, redirect: 'manual', signal: ending.signal })
    return new Reply(response, await readBytes(response))
  } catch (cause) {
    if (signal?.aborted === true) throw signal.reason ?? cause
    if (cause instanceof SendwrightError) throw cause
    const why = ending.signal.aborted ? `none within ${timeoutMs} ms` : reasonOf(cause)
    return new ConnectionError(`No answer from ${new URL(url).origin}: ${why}`, { cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of piecesOf(response)) {
    pieces.push(piece)
    length += piece.length
    if (length > ANSWER_BYTES_MAX) throw new SendwrightError(`The answer is larger than ${ANSWER_BYTES_MAX} bytes`)
  }
  const all = new Uint8Array(length)
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}

/** The pieces of an answer. (Not every runtime iterates over a stream.) */
async function* piecesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = body?.getReader()
  if (reader === undefined) return
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/** Returns the pieces of a success, otherwise the whole answer. */
async function openAt(url: string, request: RequestInit, signal: Signal): Promise<AsyncIterable<Uint8Array> | Reply> {
  const response = await fetch(url, { ...request, redirect: 'manual', signal: signal as AbortSignal })
  return response.ok ? piecesOf(response) : new Reply(response, await readBytes(response))
}

/** Milliseconds until the next attempt; null if there is none. */
function pauseBefore(outcome: Reply | ConnectionError, attempt: number): number | null {
  const backOffMs = RETRY_MS * 2 ** attempt * (0.5 + Math.random() / 2)
  if (!(outcome instanceof Reply)) return backOffMs
  if (!TRANSIENT.includes(outcome.status)) return null
  const seconds = outcome.retryAfterSeconds
  if (seconds === null) return backOffMs
  return seconds <= RETRY_AFTER_SECONDS_MAX ? seconds * 1000 : null
}

/** Why a connection ended, as a system error code or in words. */
export function reasonOf(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string }
  return cause?.code || cause?.message || message || String(error)
}

/** Waits. Throws the reason of the signal that ends it. */
export async function pause(ms: number, signal: Signal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
    if (signal?.aborted === true) end()
  })
  if (signal?.aborted === true) throw signal.reason ?? new SendwrightError('The call was aborted')
}

/** The Web Crypto API, which Node.js 18 has in a module alone. */
export async function webCrypto(): Promise<typeof globalThis.crypto> {
  if (globalThis.crypto?.subtle !== undefined) return globalThis.crypto
  // Bundlers for browsers must not resolve it.
  const name = ['node', 'crypto'].join(':')
  return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)).webcrypto
}

async function newUuid(): Promise<string> {
  return (await webCrypto()).randomUUID()
}
