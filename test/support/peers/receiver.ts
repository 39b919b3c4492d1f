/**
 * receiver - a webhook client on real TLS that verifies signatures as a customer would, with npm `stripe`, and handles
 * each request as a test orders.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import type { Socket } from 'node:net'
import Stripe from 'stripe'
import { freePort } from '../machine/port.ts'
import { makeSelfSigned } from './self-signed.ts'

const TOLERANCE_SECONDS = 300

/** A request as it came. */
export interface Received {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  // biome-ignore lint/suspicious/noExplicitAny: a test reads what it expects.
  readonly json: any
  readonly atMs: number
}

/** The handling of a request by a receiver. */
export type Reaction = (request: Received, response: ServerResponse, socket: Socket) => void

export interface Receiver {
  readonly url: string
  readonly port: number
  readonly ca: string
  /** In order of arrival. */
  readonly received: Received[]
  /** Connections so far. */
  connections(): number
  /** Connections that are open. */
  open(): number
  /** Its handling from now on; null: answers 200 at once. */
  react(reaction: Reaction | null): void
  close(): Promise<void>
}

/** Starts a receiver on the loopback; null where openssl is not installed. */
export async function startReceiver(): Promise<Receiver | null> {
  const pair = makeSelfSigned()
  if (pair === null) return null
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let reaction: Reaction | null = null
  let connections = 0
  const server: Server = createServer(pair, (request, response) => {
    const hear = (one: Received): void => {
      received.push(one)
      if (reaction === null) response.end('ok')
      else reaction(one, response, request.socket)
    }
    // A request that is cut before its end was never received.
    void take(request).then(hear, (error) => {
      if (request.complete) throw error
    })
  })
  server.on('connection', (socket: Socket) => {
    connections += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => undefined)
  })
  server.on('tlsClientError', () => undefined)
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    url: `https://localhost:${port}`,
    port,
    ca: pair.cert,
    received,
    connections: () => connections,
    open: () => sockets.size,
    react: (next) => {
      reaction = next
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Whether a request is signed with the secret, by the words of npm `stripe`. */
export function isSigned({ headers, body }: Received, secret: string): boolean {
  const { signature } = new Stripe('sk_test_of_nobody').webhooks
  try {
    return signature?.verifyHeader(body, headers['service-signature'] ?? '', secret, TOLERANCE_SECONDS) === true
  } catch {
    return false
  }
}

async function take(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const body = Buffer.concat(chunks).toString()
  const headers = request.headers as Record<string, string>
  return { path: request.url ?? '', headers, body, json: JSON.parse(body), atMs: Date.now() }
}
