/** engines - every HTTP engine that loads on this machine, and raw answers taken apart, for tests that compare them */

import type { Engine } from '../../../src/http/engine/engine.ts'
import { loadEngine } from '../../../src/http/engine/load.ts'

const first = await loadEngine('auto')

/** Both of them, or `node` alone on a machine without the native module of uWebSockets.js. */
export const ENGINES: readonly Engine[] = first.name === 'node' ? [first] : [first, await loadEngine('node')]

/** One answer. */
export interface RawAnswer {
  readonly status: number
  /** By name in lower case, sorted. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Parses the first answer of a connection; null if there is none. Chunks are joined. */
export function readAnswer(text: string): RawAnswer | null {
  const start = text.startsWith('HTTP/1.1 100 ') ? text.indexOf('\r\n\r\n') + 4 : 0
  const end = text.indexOf('\r\n\r\n', start)
  if (end === -1) return null
  const [line = '', ...lines] = text.slice(start, end).split('\r\n')
  const pairs = lines.map((one): [string, string] => {
    const at = one.indexOf(':')
    return [one.slice(0, at).toLowerCase(), one.slice(at + 1).trim()]
  })
  const headers = Object.fromEntries(pairs.sort(([one], [other]) => (one < other ? -1 : 1)))
  const rest = text.slice(end + 4)
  const body = headers['transfer-encoding'] === 'chunked' ? joinChunks(rest) : rest
  return { status: Number(line.split(' ')[1]), headers, body }
}

/** Whether the first answer of a connection is complete. In: whether it answers HEAD. */
export function isWhole(text: string, isHead = false): boolean {
  const answer = readAnswer(text)
  if (answer === null) return false
  const { status, headers } = answer
  if (isHead || status === 204) return true
  if (headers['transfer-encoding'] === 'chunked') return text.endsWith('0\r\n\r\n')
  // Without a length the answer ends with its connection.
  return answer.body.length >= Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
}

function joinChunks(text: string): string {
  let body = ''
  let at = 0
  while (at < text.length) {
    const end = text.indexOf('\r\n', at)
    const size = end === -1 ? 0 : Number.parseInt(text.slice(at, end), 16)
    if (size === 0) return body
    body += text.slice(end + 2, end + 2 + size)
    at = end + 4 + size
  }
  return body
}
