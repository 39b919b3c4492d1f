/**
 * node-wire - an answer written with `node:http`
 *
 * Guarantees: the answer of `tryEnd` is over only after its last byte has left the process; a connection that ends
 * with an answer to half a body stays open until that body has been read, half a minute at most.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AnswerHead, AnswerHow, ResponseSocket } from './engine.ts'

/** The rest of a refused body is read for this time, because a reset would overtake the answer. */
const LINGER_MS_MAX = 30_000

export class NodeWire implements ResponseSocket {
  readonly #req: IncomingMessage
  readonly #res: ServerResponse
  /** The head of an answer in pieces, until the first piece. */
  #head: AnswerHead | null = null
  #offset = 0

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#req = req
    this.#res = res
  }

  peer(): string {
    return this.#req.socket.remoteAddress ?? ''
  }

  answer(head: AnswerHead, body: string | Uint8Array | null, { isHead, closes, length }: AnswerHow): void {
    const res = this.#res
    const fields = fieldsOf(head)
    if (body !== null) fields.push('Content-Length', String(length ?? Buffer.byteLength(body)))
    if (closes) fields.push('Connection', 'close')
    res.writeHead(head.status, fields)
    const content = isHead || body === null ? '' : body
    const isLast = closes || head.headers?.Connection === 'close' || !res.shouldKeepAlive
    if (this.#req.complete || !isLast) res.end(content)
    else this.#linger(content)
  }

  begin(head: AnswerHead): void {
    this.#head = head
  }

  write(text: string): boolean {
    this.#start(null)
    const res = this.#res
    const isTaken = res.write(text)
    // Otherwise the library would buffer the bytes until the end of this turn, and count them as waiting for the
    // client.
    res.socket?.uncork()
    return isTaken || res.socket?.writableLength === 0
  }

  end(text: string): void {
    this.#start(null)
    this.#res.end(text)
  }

  tryEnd(piece: Uint8Array, size: number): [boolean, boolean] {
    this.#start(size)
    const res = this.#res
    const isTaken = piece.length === 0 ? !res.writableNeedDrain : res.write(piece)
    this.#offset += piece.length
    if (!isTaken) return [false, false]
    const isWhole = this.#offset >= size
    if (isWhole) res.end()
    return [true, isWhole]
  }

  getWriteOffset(): number {
    return this.#offset
  }

  onWritable(call: () => void): void {
    this.#res.on('drain', call)
  }

  cork(write: () => void): void {
    // The library itself gathers all writes within one turn.
    write()
  }

  close(): void {
    this.#req.socket.destroy()
  }

  #start(size: number | null): void {
    if (this.#head === null) return
    const fields = fieldsOf(this.#head)
    if (size !== null) fields.push('Content-Length', String(size))
    this.#res.writeHead(this.#head.status, fields)
    this.#head = null
  }

  /** The end of an answer closes its connection. */
  #linger(content: string | Uint8Array): void {
    const end = (): void => {
      clearTimeout(timer)
      this.#res.end()
    }
    const timer = setTimeout(end, LINGER_MS_MAX).unref()
    this.#req.once('end', end).once('close', end)
    if (content.length > 0) this.#res.write(content)
    else this.#res.flushHeaders()
  }
}

function fieldsOf({ requestId, contentType, headers, cookies = [] }: AnswerHead): string[] {
  const fields = ['Request-Id', requestId]
  if (contentType !== null) fields.push('Content-Type', contentType)
  for (const name in headers) fields.push(name, headers[name] ?? '')
  for (const cookie of cookies) fields.push('Set-Cookie', cookie)
  return fields
}
