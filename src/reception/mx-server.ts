/**
 * mx-server - the connections of the MX listener: places, time limits, and displacement when all places are taken
 *
 * Spec mx.places, mx.idle
 */

import type { Socket } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { MX_CROWDED_FROM, MX_PLACES_MAX } from '../../schemas/limits.ts'
import { clientNetwork } from '../mail/ip-address.ts'
import { MxConnection } from './mx-connection.ts'
import { Places } from './places.ts'
import { refuseSocket } from './refuse-socket.ts'
import type { SmtpAnswer } from './smtp-answer.ts'

const LOOK_MS = 10_000
/** Time for the reply to a displaced client. */
const DISPLACED_MS_MAX = 1000

const CROWDED: SmtpAnswer = { code: 421, text: '4.7.0 Too many connections, try again later' }
const OVER: SmtpAnswer = { code: 421, text: '4.4.2 Session took too long, try again' }

export class MxServer extends SMTPServer {
  readonly #places = new Places<Socket>({ max: MX_PLACES_MAX, crowdedFrom: MX_CROWDED_FROM })
  readonly #open = new Map<string, MxConnection>()
  readonly #look: NodeJS.Timeout

  constructor(options: SMTPServerOptions) {
    super(options)
    this.#look = setInterval(() => this.endOver(performance.now()), LOOK_MS).unref()
  }

  override _acceptSocket(...[socket, handshake]: Parameters<SMTPServer['_acceptSocket']>): (() => void) | false {
    // One provider gives a customer a whole /56.
    const { isPlaced, displaced } = this.#places.enter(socket, clientNetwork(socket.remoteAddress ?? '', 56))
    if (displaced !== null) this.#displace(displaced)
    if (!isPlaced) {
      refuseSocket(socket, CROWDED)
      return false
    }
    socket.once('close', () => this.#places.leave(socket))
    return super._acceptSocket(socket, handshake)
  }

  // The address that the front has read; under TLS the library would ask the connection itself.
  override _handleProxy(...[socket, callback]: Parameters<SMTPServer['_handleProxy']>): void {
    const { remoteAddress } = socket
    super._handleProxy(socket, (error, options) =>
      callback(
        error,
        options === undefined ? options : { ...options, ...(remoteAddress !== undefined && { remoteAddress }) },
      ),
    )
  }

  override connect(socket: Socket, options?: ConstructorParameters<typeof MxConnection>[2]): void {
    // It was closed after it was accepted, so no later event would report its end.
    if (socket.destroyed) return
    const connection = new MxConnection(this, socket, options)
    this.connections.add(connection)
    this.#open.set(connection.id, connection)
    connection.on('error', (error: Error) => this.emit('error', error))
    connection.onGone = () => {
      this.#open.delete(connection.id)
      this.#places.leave(socket)
    }
    connection.init()
  }

  /** A session has a mail in hand and cannot be displaced. */
  mailBegins(sessionId: string): void {
    const connection = this.#open.get(sessionId)
    if (connection === undefined) return
    connection.isBusy = true
    this.#places.hold(connection.place)
  }

  /** A mail was answered. */
  mailDone(sessionId: string): void {
    const connection = this.#open.get(sessionId)
    if (connection === undefined) return
    connection.mailDone()
    this.#places.release(connection.place)
  }

  /** Sends a reply to a session, and ends the session if the reply is 421. */
  say(sessionId: string, { code, text }: SmtpAnswer): void {
    this.#open.get(sessionId)?.send(code, text)
  }

  /** Sends a reply to all sessions without a mail in hand. */
  sayToIdle({ code, text }: SmtpAnswer): void {
    for (const connection of this.#open.values()) if (!connection.isBusy) connection.send(code, text)
  }

  /** Ends the sessions that have had their time. `nowMs` is a monotonic clock in milliseconds. */
  endOver(nowMs: number): void {
    for (const connection of this.#open.values()) if (connection.isOver(nowMs)) connection.send(OVER.code, OVER.text)
  }

  override close(callback: () => void): void {
    clearInterval(this.#look)
    super.close(callback)
  }

  #displace(place: Socket): void {
    const connection = [...this.#open.values()].find((one) => one.place === place)
    connection?.send(CROWDED.code, CROWDED.text)
    setTimeout(() => place.destroy(), connection === undefined ? 0 : DISPLACED_MS_MAX).unref()
  }
}
