/** edge-listener - a real listener with known keys and trivial handlers, and a client for it */

import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'

import type { Route } from '../../../schemas/routes.ts'
import { ROUTES } from '../../../schemas/routes.ts'
import type { Engine, EngineName } from '../../../src/http/engine/engine.ts'
import { loadEngine } from '../../../src/http/engine/load.ts'
import { type KeyFinder, type KeyOwner, makeKey, type TokenKind } from '../../../src/http/key.ts'
import { type Listener, type ListenerOptions, type RouteHandler, startListener } from '../../../src/http/listener.ts'
import type { Handler } from '../../../src/http/request.ts'

/** One known key of each kind, a well-formed unknown one, and the function that finds the known ones. */
export function makeKeyRing() {
  const owners = new Map<string, KeyOwner>()
  function issue(kind: TokenKind): string {
    const { token, hash } = makeKey(kind, 7)
    owners.set(hash, ownerOf(kind, hash))
    return token
  }
  const finder: KeyFinder = async (parsed) => owners.get(parsed.hash) ?? null
  const tokens = { sk: issue('sk'), sk_test: issue('sk_test'), ak: issue('ak'), ok: issue('ok') }
  return { ...tokens, unknown: makeKey('sk', 7).token, finder }
}

function ownerOf(kind: TokenKind, hash: string): KeyOwner {
  const key = { tokenId: kind, hash }
  if (kind === 'ok') return { ...key, kind: 'operator', operatorHash: null, role: 'admin' }
  if (kind === 'ak') return { ...key, kind: 'account', accountId: 'account' }
  const mode = kind === 'sk' ? 'live' : 'test'
  return { ...key, kind: 'server', accountId: 'account', serverId: 'server', mode, defaultStreamId: 'stream' }
}

export type KeyRing = ReturnType<typeof makeKeyRing>

/** Routes of one listener. Each returns its success status and the input of its handler. */
export function makeRoutes(listener: Route['listener'], handle?: Handler): RouteHandler[] {
  return Object.values(ROUTES)
    .filter((route) => route.listener === listener)
    .map((route) => ({
      route,
      handle: handle ?? ((seen) => ({ status: route.success.status, json: seen.body ?? {} })),
    }))
}

/** The library that serves HTTP in this run: `HTTP_ENGINE`, as the service takes it. */
export const ENGINE: Engine = await loadEngine((process.env.HTTP_ENGINE ?? 'auto') as EngineName | 'auto')

/** Starts a listener on a free port, with keys, without rate limits and with a log that keeps its entries. */
export async function startEdge(ring: KeyRing, options: Partial<ListenerOptions> = {}) {
  const faults: object[] = []
  const log = { error: (facts: object) => faults.push(facts), debug: () => undefined }
  const listener: Listener = await startListener({
    engine: ENGINE,
    setting: 'HTTP_PORT',
    host: '127.0.0.1',
    port: 0,
    routes: makeRoutes('public'),
    trustedProxies: [],
    keys: ring.finder,
    log,
    ...options,
  })
  return { ...listener, faults }
}

/** The parts of a request. */
export interface Call {
  readonly method?: string
  readonly path: string
  readonly token?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer | object
}

/** The response. */
export interface Came {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  readonly json: any
}

/** Makes one request on a new connection. An object as body is sent as JSON. */
export function call(port: number, { method = 'GET', path, token, headers = {}, body }: Call): Promise<Came> {
  const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
  const bytes = isJson ? JSON.stringify(body) : body
  return new Promise((resolve, reject) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      agent: false,
      timeout: 60_000,
      headers: {
        ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
        ...(isJson ? { 'Content-Type': 'application/json' } : {}),
        ...(bytes === undefined ? {} : { 'Content-Length': String(Buffer.byteLength(bytes)) }),
        ...headers,
      },
    })
    sent.on('error', reject)
    sent.on('timeout', () => sent.destroy(new Error('No answer')))
    sent.on('response', (came) => {
      let text = ''
      came.setEncoding('utf8')
      came.on('data', (piece: string) => {
        text += piece
      })
      came.on('error', reject)
      came.on('end', () => {
        const isBodyJson = came.headers['content-type'] === 'application/json' && text !== ''
        resolve({
          status: came.statusCode ?? 0,
          headers: came.headers,
          text,
          json: isBodyJson ? JSON.parse(text) : undefined,
        })
      })
    })
    sent.end(bytes)
  })
}

/** Sends raw bytes. Returns the received bytes once `isDone` returns true, the peer closes, or the time is over. */
export function sendRaw(
  port: number,
  bytes: Buffer | string,
  isDone: (text: string) => boolean = () => false,
  timeoutMs = 60_000,
): Promise<{ text: string; isClosed: boolean }> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    function finish(isClosed: boolean): void {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text, isClosed })
    }
    const timer = setTimeout(() => finish(false), timeoutMs)
    socket.on('data', (data) => {
      text += data.toString('latin1')
      if (isDone(text)) finish(false)
    })
    socket.on('error', () => finish(true))
    socket.on('close', () => finish(true))
    socket.write(bytes)
  })
}
