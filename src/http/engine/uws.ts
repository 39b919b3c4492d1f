/**
 * uws - the engine of uWebSockets.js: the only file that knows this library
 *
 * Guarantees: the abort handler is registered first; a request is copied before its callback returns, because it is
 * invalid afterwards; a taken port is an error.
 */

import type { HttpRequest, HttpResponse, TemplatedApp, us_listen_socket } from 'uWebSockets.js'
import { STATUS_CODES } from 'node:http'
import {
  type AnswerHead,
  type AnswerHow,
  type Engine,
  type EngineListener,
  type EnginePlace,
  type EngineRoute,
  HEAD_BYTES_MAX,
  type Open,
  type Receiver,
  type ResponseSocket,
} from './engine.ts'

type Library = typeof import('uWebSockets.js')

type ListenWith = (
  host: string,
  port: number,
  options: number,
  done: (socket: us_listen_socket | false) => void,
) => TemplatedApp

/** Options of a listening socket. The types lack them. */
const SHARED_PORT = 0
/** Makes a taken port an error, because otherwise a second process shares the port. */
const EXCLUSIVE_PORT = 1
const STATUS_LINES: readonly string[] = Array.from({ length: 600 }, (_, status) => {
  return `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
})

/** Loads the library. Returns an Error if its native module does not load here. */
export async function loadUws(): Promise<Engine | Error> {
  // The library reads this once, when it is loaded. Spec request.head-bytes
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(HEAD_BYTES_MAX)
  try {
    const library = await import('uWebSockets.js')
    const listenAt: Engine['listen'] = async (routes, place) => listen(library, routes, place)
    return { name: 'uws', reason: null, takesSockets: false, canShare: true, listen: listenAt }
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function listen(library: Library, routes: readonly EngineRoute[], place: EnginePlace): EngineListener {
  const app = library.App()
  for (const { method, pattern, open } of routes) app[method](pattern, (res, req) => hand(open, res, req))
  let socket: us_listen_socket | false = false
  const listenWith = app.listen.bind(app) as unknown as ListenWith
  listenWith(place.host, place.port, place.isShared === true ? SHARED_PORT : EXCLUSIVE_PORT, (one) => {
    socket = one
  })
  if (socket === false) throw null
  const listening = socket as Parameters<typeof library.us_socket_local_port>[0] & us_listen_socket
  return {
    port: library.us_socket_local_port(listening),
    stop: () => library.us_listen_socket_close(listening),
    end: () => void app.close(),
  }
}

function hand(open: Open, res: HttpResponse, req: HttpRequest): void {
  let receiver: Receiver | null = null
  res.onAborted(() => receiver?.abort())
  const opened = open(req, new UwsWire(res))
  receiver = opened
  res.onData((piece, isLast) => opened.receive(new Uint8Array(piece), isLast))
  opened.start()
}

class UwsWire implements ResponseSocket {
  readonly #res: HttpResponse

  constructor(res: HttpResponse) {
    this.#res = res
  }

  peer(): string {
    return Buffer.from(this.#res.getRemoteAddressAsText()).toString('latin1')
  }

  answer(head: AnswerHead, body: string | Uint8Array | null, { isHead, closes, length }: AnswerHow): void {
    const res = this.#res
    res.cork(() => {
      this.#writeHead(head, closes)
      // RFC 9110 8.6 forbids Content-Length on a 204, and the library writes one as soon as it gets an argument.
      if (body === null) res.endWithoutBody()
      else if (isHead && !closes) {
        // Given a length, the library waits for that body and gives the connection up at the next request.
        res.writeHeader('Content-Length', String(length ?? Buffer.byteLength(body)))
        res.endWithoutBody()
      } else if (isHead) res.endWithoutBody(length ?? Buffer.byteLength(body), true)
      else res.end(body, closes)
    })
  }

  begin(head: AnswerHead): void {
    this.#writeHead(head, false)
  }

  write(text: string): boolean {
    return this.#res.write(text)
  }

  end(text: string): void {
    // An end that closes the connection would write its header into the body, once some of the body is written.
    this.#res.end(text, false)
  }

  tryEnd(piece: Uint8Array, size: number): [boolean, boolean] {
    return this.#res.tryEnd(piece, size)
  }

  getWriteOffset(): number {
    return this.#res.getWriteOffset()
  }

  onWritable(call: () => void): void {
    this.#res.onWritable(() => {
      call()
      return true
    })
  }

  cork(write: () => void): void {
    this.#res.cork(write)
  }

  close(): void {
    this.#res.close()
  }

  #writeHead({ status, requestId, contentType, headers, cookies = [] }: AnswerHead, closes: boolean): void {
    // The library's own status is 200.
    if (status !== 200) this.#res.writeStatus(STATUS_LINES[status] ?? '500 Internal Server Error')
    // The library writes a value unchanged; one call for all headers costs a third of one for each.
    let value = requestId
    if (contentType !== null) value += `\r\nContent-Type: ${contentType}`
    for (const name in headers) value += `\r\n${name}: ${headers[name] ?? ''}`
    for (const cookie of cookies) value += `\r\nSet-Cookie: ${cookie}`
    if (closes) value += '\r\nConnection: close'
    this.#res.writeHeader('Request-Id', value)
  }
}
