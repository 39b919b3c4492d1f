/** refuse-socket - ends a connection that has no place, with a reply if one can be read before TLS */

import type { Socket } from 'node:net'
import type { SmtpAnswer } from './smtp-answer.ts'

/** For the reply to arrive. */
const LINGER_MS = 1000

/** `answer` is the reply, or null if TLS begins with the first byte. */
export function refuseSocket(socket: Socket, answer: SmtpAnswer | null): void {
  socket.on('error', () => undefined)
  if (answer === null) {
    socket.destroy()
    return
  }
  socket.resume()
  socket.end(`${answer.code} ${answer.text}\r\n`)
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}
