/**
 * wire - an answer is written: status, headers, body, in one write
 *
 * Spec request.id, request.head
 */

import { STATUS_CODES } from 'node:http'

import type { Reply } from './respond.ts'

/** What is used of the HTTP library's response. */
export interface Wire {
  writeStatus(status: string): Wire
  writeHeader(name: string, value: string): Wire
  /** False: what was written waits for the client. */
  write(text: string): boolean
  onWritable(call: () => boolean): Wire
  /**
   * Writes what the client takes of a body of `size` bytes. Out: whether it took all of the piece; whether the answer
   * is over.
   */
  tryEnd(piece: Uint8Array, size: number): [boolean, boolean]
  /** Bytes of the body that were taken. */
  getWriteOffset(): number
  end(body: string | Uint8Array, close: boolean): Wire
  endWithoutBody(bytes?: number, close?: boolean): Wire
  cork(write: () => void): Wire
  close(): Wire
}

/** How an answer goes out. */
export interface WriteOptions {
  readonly requestId: string
  /** True for HEAD: headers as for GET, no body. */
  readonly isHead: boolean
  /** True: the connection ends with this answer. */
  readonly closes: boolean
}

const JSON_TYPE = '\r\nContent-Type: application/json'
/** Status lines by their number. */
export const STATUS_LINES: readonly string[] = Array.from({ length: 600 }, (_, status) => {
  return `${status} ${STATUS_CODES[status] ?? 'Unknown'}`
})

/** Writes one answer in one write. In: a response that is neither aborted nor answered. */
export function writeReply(wire: Wire, reply: Reply, options: WriteOptions): void {
  const body = reply.json === undefined ? (reply.bytes ?? reply.text ?? '') : JSON.stringify(reply.json)
  wire.cork(() => {
    // The library's own status is 200.
    if (reply.status !== 200) wire.writeStatus(STATUS_LINES[reply.status] ?? '500 Internal Server Error')
    // The library writes a value as it is given: one call for all headers costs a third of one for each.
    let head = options.requestId
    if (reply.json !== undefined) head += JSON_TYPE
    else if (reply.text !== undefined || reply.bytes !== undefined)
      head += `\r\nContent-Type: ${reply.contentType ?? 'text/plain'}`
    for (const name in reply.headers) head += `\r\n${name}: ${reply.headers[name] ?? ''}`
    if (options.closes) head += '\r\nConnection: close'
    wire.writeHeader('Request-Id', head)
    // RFC 9110 8.6: no Content-Length on a 204; the library writes one as soon as it is given an argument.
    if (reply.status === 204) wire.endWithoutBody()
    else if (options.isHead && !options.closes) {
      // Given a length, the library waits for that body and gives the connection up at the next request.
      wire.writeHeader('Content-Length', String(Buffer.byteLength(body)))
      wire.endWithoutBody()
    } else if (options.isHead) wire.endWithoutBody(Buffer.byteLength(body), true)
    else wire.end(body, options.closes)
  })
}
