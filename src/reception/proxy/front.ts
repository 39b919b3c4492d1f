/**
 * front - takes the connections of an SMTP listener that come from a proxy, reads the PROXY header before the library
 * sees the socket, and gives the socket the address of its client
 *
 * Places, rates, SPF and logs read `remoteAddress`, so they count clients and not the proxy. From a listed network the
 * header is required before the greeting and before TLS. Other connections are unchanged, and a header from them is a
 * bad command.
 */

import type { Server, Socket } from 'node:net'
import { isWithin } from '../../mail/ip-address.ts'
import { announcedBytes, PROXY_HEAD_BYTES, type ProxyClient, readProxyHeader } from './header.ts'

const HEADER_MS_MAX = 5_000
/** Proxies send their header at once, so more waiting connections than this are an attack or a misconfiguration. */
const WAITING_MAX = 1_000
const CHECK_LINES_MAX = 10
const CHECK_LINE_BYTES_MAX = 512

export interface ProxyFront {
  /** Networks of proxies, as CIDRs. If empty, no header is read. */
  readonly networks: readonly string[]
  /** The name in the greeting of a health check. */
  readonly name: string
  /** Whether TLS begins with the first byte; a health check is then closed after its header. */
  readonly isImplicitTls: boolean
}

/** Puts the front before the listeners of the server's connections. Call it once, before the server listens. */
export function putProxyFront(server: Server, front: ProxyFront): void {
  if (front.networks.length === 0) return
  const accept = server.listeners('connection')
  server.removeAllListeners('connection')
  let waiting = 0
  server.on('connection', (socket: Socket) => {
    if (!isWithin(socket.remoteAddress ?? '', front.networks)) {
      for (const one of accept) one.call(server, socket)
      return
    }
    if (waiting >= WAITING_MAX) {
      socket.on('error', () => undefined).destroy()
      return
    }
    waiting += 1
    readClient(socket, (client) => {
      waiting -= 1
      if (client === null) socket.destroy()
      else if (client === 'local') answerCheck(socket, front)
      else {
        Object.defineProperty(socket, 'remoteAddress', { value: client.address })
        Object.defineProperty(socket, 'remotePort', { value: client.port })
        for (const one of accept) one.call(server, socket)
      }
    })
  })
}

/** Reads the header, and leaves the bytes after it in the socket. Calls back once; null: it is not one, or late. */
function readClient(socket: Socket, done: (client: ProxyClient | null) => void): void {
  let head: Buffer | null = null
  const end = (client: ProxyClient | null): void => {
    clearTimeout(timer)
    socket.off('readable', read).off('end', gone).off('close', gone)
    // A peer that resets a refused connection must not end the process.
    if (client === null) socket.on('error', () => undefined)
    socket.off('error', gone)
    done(client)
  }
  const gone = (): void => end(null)
  const read = (): void => {
    head ??= socket.read(PROXY_HEAD_BYTES) as Buffer | null
    if (head === null) return
    const bytes = announcedBytes(head)
    if (bytes === null) {
      end(null)
      return
    }
    const rest = bytes === 0 ? Buffer.alloc(0) : (socket.read(bytes) as Buffer | null)
    if (rest !== null) end(rest.length < bytes ? null : readProxyHeader(head, rest))
  }
  const timer = setTimeout(gone, HEADER_MS_MAX).unref()
  socket.on('readable', read).on('end', gone).on('close', gone).on('error', gone)
}

/** Answers the health check of a proxy, which takes no place and counts nowhere. */
function answerCheck(socket: Socket, { name, isImplicitTls }: ProxyFront): void {
  socket.on('error', () => undefined)
  socket.setTimeout(HEADER_MS_MAX, () => socket.destroy())
  // A health check that does not end is cut, whichever bytes it sends.
  const timer = setTimeout(() => socket.destroy(), 2 * HEADER_MS_MAX).unref()
  socket.on('close', () => clearTimeout(timer))
  if (isImplicitTls) {
    socket.end()
    socket.resume()
    return
  }
  let text = ''
  let lines = 0
  socket.write(`220 ${name} ESMTP\r\n`)
  socket.on('data', (piece: Buffer) => {
    text += piece.toString('latin1')
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const verb = text.slice(0, 4).toUpperCase()
      text = text.slice(end + 1)
      lines += 1
      if (verb === 'QUIT' || lines > CHECK_LINES_MAX) return void socket.end('221 2.0.0 Bye\r\n')
      const isKnown = ['EHLO', 'HELO', 'NOOP', 'RSET'].includes(verb)
      socket.write(isKnown ? `250 ${name}\r\n` : '502 5.5.1 Only health checks are answered here\r\n')
    }
    if (text.length > CHECK_LINE_BYTES_MAX) socket.destroy()
  })
}
