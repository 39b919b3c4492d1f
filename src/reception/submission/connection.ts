/**
 * connection - one session of SMTP submission: the library's dialogue with our replies, and the cases that the library
 * does not handle
 *
 * Spec submission.replies, submission.time, submission.envelope, submission.commands
 */

import { isAscii } from 'node:buffer'
import type { Socket } from 'node:net'
import { SMTPConnection } from 'smtp-server/lib/smtp-connection.js'
import type { SmtpAnswer } from '../smtp-answer.ts'
import type { Login } from './login.ts'
import { BAD_RECIPIENT, BAD_SENDER, correctReply, LATE } from './replies.ts'

/** A session. States: connected -> encrypted -> logged in -> (message in hand -> logged in)* -> closed. */
export class SubmissionConnection extends SMTPConnection {
  login: Login | null = null
  failedLogins = 0
  /** A message is being received, or is in the handler's hands. */
  isBusy = false
  /** The accepted socket, which holds the place, also under TLS. */
  place: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #isGathering = false

  /** Starts the session and its login timeout, because a client that sends byte by byte is never idle. */
  start(loginMsMax: number): void {
    this.#timer = setTimeout(() => this.say(LATE), loginMsMax).unref()
    this.init()
  }

  loggedIn(login: Login): void {
    this.login = login
    clearTimeout(this.#timer)
  }

  say({ code, text }: SmtpAnswer): void {
    this.send(code, text)
  }

  /** Ends the connection without another word. */
  cut(): void {
    this._socket.destroy()
  }

  override send(code: number, data?: string | string[] | null, context?: string | false): void {
    // Some clients use whatever is offered before TLS, and the key would be sent in the clear.
    const offered = Array.isArray(data) && !this.secure ? data.filter((line) => !line.startsWith('AUTH ')) : data
    const { text, context: own } = correctReply(code, { text: offered, context })
    this.#gatherReplies()
    super.send(code, text, own)
  }

  /**
   * Replies to pipelined commands are sent together (RFC 2920 3.2), because a TLS record costs more than its reply.
   */
  #gatherReplies(): void {
    // In the clear TLS may begin behind a reply, in the same turn.
    if (!this.secure || this.#isGathering) return
    const socket = this._socket
    this.#isGathering = true
    socket.cork()
    process.nextTick(() => {
      this.#isGathering = false
      socket.uncork()
    })
  }

  override _onClose(): void {
    clearTimeout(this.#timer)
    super._onClose()
  }

  /** The library decodes domains of addresses, so the original form is only visible here. */
  override handler_MAIL(command: Buffer, callback: () => void): void {
    if (isAscii(command)) super.handler_MAIL(command, callback)
    else {
      this.say(BAD_SENDER)
      callback()
    }
  }

  /** Starting TLS over a closed socket would end the process. */
  override handler_STARTTLS(command: Buffer, callback: () => void): void {
    if (this._socket.destroyed) callback()
    else super.handler_STARTTLS(command, callback)
  }

  override handler_RCPT(command: Buffer, callback: () => void): void {
    if (isAscii(command)) super.handler_RCPT(command, callback)
    else {
      this.say(BAD_RECIPIENT)
      callback()
    }
  }
}
