/**
 * webhook-receiver - a receiver of events in a separate process, over TLS, that answers at once, after a millisecond,
 * or never
 *
 * `/fast…` at once, `/slow…` after 1 ms, `/hang…` never. On `report` over IPC it returns its counts since the last
 * report.
 */

import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'

/** The posts to paths with one prefix. */
export interface Report {
  readonly posts: number
  readonly deliveries: number
  readonly firstAtMs: number
  readonly lastAtMs: number
  /** From each event to its arrival, ms. */
  readonly latenciesMs: readonly number[]
  readonly connections: number
  /** First attempts that came after one of a later event, webhook by webhook: ids rise with the events. */
  readonly outOfOrder: number
}

interface Seen {
  posts: number
  readonly ids: Set<string>
  readonly firstAtMs: number
  lastAtMs: number
  readonly ms: number[]
  outOfOrder: number
}

const SLOW_MS = 1
const [, , keyFile = '', certFile = ''] = process.argv
const seen = new Map<string, Seen>()
/** The last delivery of each path. */
const last = new Map<string, string>()
let connections = 0

const server = createServer({ key: readFileSync(keyFile), cert: readFileSync(certFile) }, (request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const path = request.url ?? ''
    note(path, Buffer.concat(chunks).toString())
    if (path.startsWith('/fast')) response.end()
    else if (path.startsWith('/slow')) setTimeout(() => response.end(), SLOW_MS)
  })
})
server.keepAliveTimeout = 60_000
server.on('connection', () => {
  connections += 1
})
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
process.on('message', (kind: string) => {
  const of = seen.get(kind)
  seen.delete(kind)
  const report: Report = {
    posts: of?.posts ?? 0,
    deliveries: of?.ids.size ?? 0,
    firstAtMs: of?.firstAtMs ?? 0,
    lastAtMs: of?.lastAtMs ?? 0,
    latenciesMs: of?.ms ?? [],
    connections,
    outOfOrder: of?.outOfOrder ?? 0,
  }
  process.send?.(report)
})

function note(path: string, body: string): void {
  const atMs = Date.now()
  const kind = path.slice(1, 5)
  const of: Seen = seen.get(kind) ?? {
    posts: 0,
    ids: new Set(),
    firstAtMs: atMs,
    lastAtMs: atMs,
    ms: [],
    outOfOrder: 0,
  }
  seen.set(kind, of)
  const { id, attempt, occurredAt } = JSON.parse(body) as { id: string; attempt: number; occurredAt: string }
  if (attempt === 1) {
    if (id < (last.get(path) ?? '')) of.outOfOrder += 1
    last.set(path, id)
  }
  of.posts += 1
  of.ids.add(id)
  of.lastAtMs = atMs
  of.ms.push(atMs - Date.parse(occurredAt))
}
