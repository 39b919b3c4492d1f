/**
 * write-response - an answer of the edge becomes status, headers and body, in one write
 *
 * Spec request.id, request.head
 */

import type { ResponseSocket } from './engine/engine.ts'
import type { Reply } from './respond.ts'

/** How an answer goes out. */
export interface WriteOptions {
  readonly requestId: string
  /** True for HEAD: headers as for GET, no body. */
  readonly isHead: boolean
  /** If true, the connection ends with this answer. */
  readonly closes: boolean
}

/** Writes one answer in one write. The response is neither aborted nor answered. */
export function writeReply(wire: ResponseSocket, reply: Reply, { requestId, isHead, closes }: WriteOptions): void {
  const { status, json, text, bytes, headers, cookies } = reply
  const hasContent = json !== undefined || text !== undefined || bytes !== undefined
  const ownType = hasContent ? (reply.contentType ?? 'text/plain') : null
  const contentType = json === undefined ? ownType : 'application/json'
  const body = json === undefined ? (bytes ?? text ?? '') : JSON.stringify(json)
  // RFC 9110 8.6 forbids Content-Length on a 204.
  wire.answer({ status, requestId, contentType, headers, cookies }, status === 204 ? null : body, { isHead, closes })
}
