/**
 * bare-http - the least that both bare contestants need: uWebSockets.js, the product's own check of the body, an answer
 *
 * No key, no limits, no headers beyond what HTTP needs.
 */

import {
  App,
  type HttpResponse,
  type us_listen_socket,
  us_listen_socket_close,
  us_socket_local_port,
} from 'uWebSockets.js'
import { EMAIL_BODY, type EmailBody } from '../../schemas/email.ts'
import { compileBody } from '../../src/http/shape/validate.ts'

/** Stores one valid message, given as sent and as parsed. Returns the id for the answer, once it is durable. */
export type Keep = (bytes: Buffer, body: EmailBody) => Promise<string>

export interface BareListener {
  readonly port: number
  close(): void
}

/** Listens on a free port of the loopback. */
export function listenBare(keep: Keep): BareListener {
  const check = compileBody<EmailBody>(EMAIL_BODY)
  const app = App()
  app.post('/v1/email', (res) => {
    const state = { isAborted: false }
    res.onAborted(() => {
      state.isAborted = true
    })
    const chunks: Buffer[] = []
    res.onData((chunk, isLast) => {
      chunks.push(Buffer.from(chunk.slice(0)))
      if (isLast) void receive(res, state, Buffer.concat(chunks))
    })
  })

  async function receive(res: HttpResponse, state: { isAborted: boolean }, bytes: Buffer): Promise<void> {
    const text = bytes.toString('utf8')
    const checked = check(JSON.parse(text), text.includes('\\u'))
    const [status, answer] = checked.ok
      ? (['200 OK', { messageId: await keep(bytes, checked.value), status: 'accepted' }] as const)
      : (['400 Bad Request', { issues: checked.issues }] as const)
    if (state.isAborted) return
    res.cork(() => {
      res.writeStatus(status).writeHeader('Content-Type', 'application/json').end(JSON.stringify(answer))
    })
  }

  let socket: us_listen_socket | null = null
  app.listen('127.0.0.1', 0, (listening) => {
    if (listening !== false) socket = listening
  })
  if (socket === null) throw new Error('No free port')
  const listening: us_listen_socket = socket
  return {
    port: us_socket_local_port(listening as Parameters<typeof us_socket_local_port>[0]),
    close() {
      us_listen_socket_close(listening)
      app.close()
    },
  }
}
