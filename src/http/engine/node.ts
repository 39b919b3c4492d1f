/**
 * node - the engine of `node:http`, for machines on which uWebSockets.js has no native module
 *
 * States of a connection: quiet (no request: it ends after 10 s, however much of a head has come) -> receiving (a body
 * has to bring 16 KiB a second, averaged over 10 s) -> working -> answering (it ends after 10 s in which the client
 * takes nothing) -> quiet. Several requests may be in flight; their answers leave in the order of the requests.
 *
 * Guarantees: the bounds are those of uWebSockets.js, except that it ends a connection if a request arrives before the
 * answer to the last one, while a few are allowed here.
 *
 * Spec request.framing, request.head-bytes, request.body.slow, request.body.max
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, type Socket, Server as TcpServer } from 'node:net'
import {
  type Engine,
  type EngineListener,
  type EnginePlace,
  type EngineRoute,
  HEAD_BYTES_MAX,
  HEAD_FIELDS_MAX,
  IDLE_S,
  type Incoming,
  type Receiver,
} from './engine.ts'
import { NodeWire } from './node-wire.ts'
import { makeRouter } from './router.ts'

const IDLE_MS = IDLE_S * 1000
/** Less than this within one idle time, and a body counts as stalled. */
const BODY_BYTES_MIN = IDLE_S * 16_384
const SWEEP_MS = 1000
/** Requests of a connection that may wait for their answers. */
const PIPELINED_MAX = 16
/** A refused peer reads its answer in this time, or loses it. */
const REFUSED_MS_MAX = 5000
const NOTHING = new Uint8Array(0)
/** The first versions whose `listen` knows `reusePort`. */
const [MAJOR = 0, MINOR = 0] = process.versions.node.split('.').map(Number)
const CAN_SHARE =
  process.platform === 'linux' && (MAJOR > 23 || (MAJOR === 22 && MINOR >= 12) || (MAJOR === 23 && MINOR >= 1))
const ABOVE_ASCII = /[\x80-\xff]/

/** A connection, and the request that it is busy with. */
interface Connection {
  readonly socket: Socket
  /** Requests whose answers have not been written. The last may still be read. */
  readonly open: Set<Reading>
  /** Monotonic ms of the connection's start or last answer. */
  quietSinceMs: number
  isRefused: boolean
}

type Find = ReturnType<typeof makeRouter>

/** Makes the engine. `reason` is why the other one is not used; null if this one was requested. */
export function nodeEngine(reason: string | null): Engine {
  return { name: 'node', reason, takesSockets: true, canShare: CAN_SHARE, listen }
}

async function listen(routes: readonly EngineRoute[], place: EnginePlace): Promise<EngineListener> {
  const find = makeRouter(routes)
  const connections = new Map<Socket, Connection>()
  const server = createServer({
    maxHeaderSize: HEAD_BYTES_MAX,
    requireHostHeader: true,
    insecureHTTPParser: false,
    keepAliveTimeout: IDLE_MS,
    // `cutSlow` has the rules of the other engine instead.
    headersTimeout: 0,
    requestTimeout: 0,
  })
  // Past this number the library ignores headers without a word: `accept` counts them instead.
  server.maxHeadersCount = 0
  const take = (req: IncomingMessage, res: ServerResponse): void => {
    const connection = connections.get(req.socket)
    if (connection !== undefined && !connection.isRefused) accept(connection, { req, res, find })
  }
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { socket, open: new Set(), quietSinceMs: performance.now(), isRefused: false })
    socket.once('close', () => lose(connections, socket))
  })
  server.on('request', take)
  // RFC 9110 10.1.1 allows ignoring an expectation other than 100-continue.
  server.on('checkExpectation', take)
  server.on('connect', (_req, socket) => fail(connections.get(socket as Socket), 'CONNECT'))
  server.on('clientError', ({ code }: NodeJS.ErrnoException, socket) => fail(connections.get(socket as Socket), code))
  server.setTimeout(IDLE_MS, (socket) => {
    if (connections.get(socket)?.open.size === 0 || socket.writableLength > 0) socket.destroy()
  })
  await open(server, place)
  const sweep = setInterval(() => cutSlow(connections.values()), SWEEP_MS).unref()
  return {
    port: (server.address() as AddressInfo).port,
    // `close` of an HTTP server would end connections on which a request may be under way.
    stop: () => void TcpServer.prototype.close.call(server),
    end() {
      clearInterval(sweep)
      server.close()
      for (const socket of connections.keys()) socket.destroy()
    },
  }
}

function open(server: Server, { host, port, fd = null, isShared = false }: EnginePlace): Promise<void> {
  // The types lack `reusePort`.
  const own = { host, port, exclusive: true, ...(isShared && { reusePort: true }) }
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(fd === null ? own : { fd }, () => {
      server.off('error', reject)
      resolve()
    })
  })
}

function lose(connections: Map<Socket, Connection>, socket: Socket): void {
  const connection = connections.get(socket)
  connections.delete(socket)
  for (const { receiver } of connection?.open ?? []) receiver.abort()
}

function cutSlow(connections: Iterable<Connection>): void {
  const nowMs = performance.now()
  for (const { socket, open, quietSinceMs } of connections) {
    const isSilent = open.size === 0 && nowMs - quietSinceMs > IDLE_MS
    if (isSilent || [...open].some((reading) => reading.isStalled(nowMs))) socket.destroy()
  }
}

/** Hands a request over, or refuses one that the other engine's parser refuses. */
function accept(connection: Connection, { req, res, find }: { req: IncomingMessage; res: ServerResponse; find: Find }) {
  if (connection.open.size >= PIPELINED_MAX) {
    connection.socket.destroy()
    return
  }
  const target = req.url ?? ''
  const end = target.indexOf('?')
  const url = end === -1 ? target : target.slice(0, end)
  const method = (req.method ?? '').toLowerCase()
  const found = target.startsWith('/') ? find(method, url) : null
  if (req.httpVersion !== '1.1') refuse(connection, 505)
  else if (req.rawHeaders.length > 2 * HEAD_FIELDS_MAX) refuse(connection, 431)
  else if (found === null) refuse(connection, 400)
  else {
    const query = end === -1 ? '' : target.slice(end + 1)
    const incoming = makeIncoming(req.rawHeaders, { method, url, query, params: found.params })
    const reading = new Reading(req, res, found.route.open(incoming, new NodeWire(req, res)))
    connection.open.add(reading)
    res.once('finish', () => {
      connection.open.delete(reading)
      connection.quietSinceMs = performance.now()
    })
    reading.start()
  }
}

function makeIncoming(
  raw: readonly string[],
  { method, url, query, params }: { method: string; url: string; query: string; params: readonly string[] },
): Incoming {
  return {
    forEach(read) {
      for (let at = 0; at < raw.length; at += 2) read((raw[at] ?? '').toLowerCase(), decoded(raw[at + 1] ?? ''))
    },
    getMethod: () => method,
    getUrl: () => url,
    getQuery: () => query,
    getParameter: (index) => params[index],
  }
}

/** Values of headers are UTF-8 here, and Latin-1 to the library. */
function decoded(text: string): string {
  return ABOVE_ASCII.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text
}

/** Ends a connection whose bytes are no request. Takes the code of the parser's error. */
function fail(connection: Connection | undefined, code: string | undefined): void {
  if (connection === undefined || connection.isRefused) return
  const { socket, open } = connection
  // An answer that is pending, or half written, cannot be followed or replaced by this one.
  const isBusy = [...open].some(({ res, isWhole }) => !res.writableEnded && (isWhole || res.headersSent))
  if (isBusy || code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  for (const { receiver } of open) receiver.abort()
  refuse(connection, code === 'HPE_HEADER_OVERFLOW' ? 431 : 400)
}

/** Refuses a request that is not valid here. Further bytes of the connection are not read as a request. */
function refuse(connection: Connection, status: number): void {
  const { socket } = connection
  connection.isRefused = true
  const text = `${status} ${STATUS_CODES[status]}`
  const head = `HTTP/1.1 ${text}\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}`
  socket.end(`${head}\r\n\r\n${text}`)
  setTimeout(() => socket.destroy(), REFUSED_MS_MAX).unref()
}

/** One request whose body is read. */
class Reading {
  readonly res: ServerResponse
  readonly receiver: Receiver
  readonly #req: IncomingMessage
  /** Null if the body is chunked. */
  readonly #length: number | null
  #bytes = 0
  #windowBytes = 0
  #windowAtMs = performance.now()
  isWhole = false

  constructor(req: IncomingMessage, res: ServerResponse, receiver: Receiver) {
    this.#req = req
    this.res = res
    this.receiver = receiver
    const isChunked = req.headers['transfer-encoding'] !== undefined
    this.#length = isChunked ? null : Number(req.headers['content-length'] ?? 0)
  }

  start(): void {
    // Both streams report a lost connection here as well: `lose` handles it.
    this.#req.on('error', () => undefined)
    this.res.on('error', () => undefined)
    this.receiver.start()
    if (this.#length === 0) {
      this.#finish(NOTHING)
      this.#req.resume()
      return
    }
    this.#req.on('data', (piece: Buffer) => this.#take(piece))
    if (this.#length === null) this.#req.on('end', () => this.#endChunked())
  }

  /** Whether the body brings too little. */
  isStalled(nowMs: number): boolean {
    if (this.#req.complete || nowMs - this.#windowAtMs < IDLE_MS) return false
    const isStalled = this.#windowBytes < BODY_BYTES_MIN
    this.#windowBytes = 0
    this.#windowAtMs = nowMs
    return isStalled
  }

  #take(piece: Buffer): void {
    this.#bytes += piece.length
    this.#windowBytes += piece.length
    if (this.#bytes === this.#length) this.#finish(piece)
    else this.receiver.receive(piece, false)
  }

  #endChunked(): void {
    // Fields behind the body. Spec request.framing
    if (this.#req.rawTrailers.length > 0) this.#req.socket.destroy()
    else this.#finish(NOTHING)
  }

  #finish(piece: Uint8Array): void {
    this.isWhole = true
    this.receiver.receive(piece, true)
  }
}
