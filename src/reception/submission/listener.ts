/**
 * listener - the listeners that applications hand their mail to: encryption, login, envelope, one message at a time
 *
 * It handles only SMTP. Its handlers check keys and decide about messages.
 *
 * Guarantees: only greetings before TLS; the reply to a message follows its handler's answer, and if the outcome is
 * unknown, the connection is closed without a reply; a handler that throws is 451 and affects no other session;
 * memory, sessions and time are bounded; a listener that closes waits for the answer to a message in hand.
 *
 * Spec submission.commands, submission.login, submission.connections, submission.time, listener.port, listener.close
 */

import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { SMTPServer, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import {
  MESSAGE_BYTES_MAX,
  RECIPIENTS_MAX,
  SUBMISSION_CONNECTIONS_MAX,
  SUBMISSION_CROWDED_FROM,
  SUBMISSION_DATA_MINUTES,
  SUBMISSION_HANDSHAKE_SECONDS,
  SUBMISSION_IDLE_SECONDS,
  SUBMISSION_LOGIN_SECONDS,
  SUBMISSION_SESSION_LOGINS_MAX,
} from '../../../schemas/limits.ts'
import type { EdgeLog } from '../../http/request.ts'
import { clientNetwork } from '../../mail/ip-address.ts'
import type { CertificateWatch } from '../../process/certificate-watch.ts'
import type { HeldBytes } from '../../process/held-bytes.ts'
import { type ListenPlace, listenAt } from '../../process/listening/listen-at.ts'
import { Places } from '../places.ts'
import { putProxyFront } from '../proxy/front.ts'
import { refuseSocket } from '../refuse-socket.ts'
import type { SmtpAnswer } from '../smtp-answer.ts'
import { SubmissionConnection } from './connection.ts'
import { gatherMessage } from './data.ts'
import { readEnvelope, refuseMail, refuseRecipient } from './envelope.ts'
import type { FailedLogins } from './failed-logins.ts'
import type { Login } from './login.ts'
import {
  BAD_LINES,
  CLOSING,
  CROWDED,
  DISPLACED,
  FULL,
  LATE,
  TOO_LARGE,
  TOO_MANY_LOGINS,
  UNAVAILABLE,
} from './replies.ts'
import type { SubmittedMail } from './submit.ts'

export interface SubmissionHandlers {
  /** Whose password it is, or the refusal. */
  logIn(given: { username: string; password: string }): Promise<Login | SmtpAnswer>
  /** Checks whether a message may begin; returns the refusal if not. */
  begin(login: Login): Promise<SmtpAnswer | null>
  /** Takes a message; 250 once it is on disk. `cut` means that the outcome is unknown. */
  message(login: Login, mail: SubmittedMail): Promise<SmtpAnswer | 'cut'>
  /** A login was tried, a message answered: for the operator's figures. */
  told(what: 'login' | 'message', answer: SmtpAnswer | 'cut'): void
}

export interface SubmissionOptions extends ListenPlace {
  /** The setting that names the port. */
  readonly setting: string
  readonly name: string
  readonly certificate: Pick<CertificateWatch, 'current' | 'onRenewed'>
  /** TLS from the first byte, otherwise STARTTLS. */
  readonly isImplicitTls: boolean
  /** Networks of proxies that name their client by the PROXY protocol. */
  readonly proxies: readonly string[]
  /** DSN (RFC 3461) is offered. */
  readonly offersReports: boolean
  readonly failedLogins: FailedLogins
  readonly held: HeldBytes
  readonly handlers: SubmissionHandlers
  readonly log: EdgeLog
  /** In place of our own bounds. */
  readonly limits?: Partial<SubmissionLimits>
}

/** Bounds that a test cannot wait for. */
export interface SubmissionLimits {
  readonly connections: number
  /** Number of connections from which a new one displaces a connection without login. */
  readonly crowdedFrom: number
  readonly idleMs: number
  readonly loginMs: number
  /** Timeout of the handshake if TLS begins with the first byte. */
  readonly handshakeMs: number
  readonly dataMs: number
  /** Delay of the answer to a failed login, to slow down guessing. */
  readonly failedLoginMs: number
}

export interface SubmissionListener {
  readonly port: number
  /** Open sessions. */
  readonly connections: number
  close(): Promise<void>
}

const LIMITS: SubmissionLimits = {
  connections: SUBMISSION_CONNECTIONS_MAX,
  crowdedFrom: SUBMISSION_CROWDED_FROM,
  idleMs: SUBMISSION_IDLE_SECONDS * 1000,
  loginMs: SUBMISSION_LOGIN_SECONDS * 1000,
  handshakeMs: SUBMISSION_HANDSHAKE_SECONDS * 1000,
  dataMs: SUBMISSION_DATA_MINUTES * 60_000,
  failedLoginMs: 1000,
}
/** The whole shutdown has ten seconds; a client that is cut off tries again. */
const CLOSE_MS_MAX = 5000
const CLOSE_STEP_MS = 50
/** Time for the reply to a displaced client. */
const DISPLACED_MS_MAX = 1000
/** A login takes less than 200; RFC 5321 4.5.3.1.4 wants 512. */
const COMMAND_BYTES_MAX = 4096

/** Starts a listener. Throws Error when its port is taken. */
export async function startSubmissionListener(options: SubmissionOptions): Promise<SubmissionListener> {
  const server = new SubmissionServer(options, { ...LIMITS, ...options.limits })
  // A broken connection needs no handling, but without a listener its error would end the process.
  server.on('error', (error: Error) => options.log.debug({ reason: error.message }, 'An SMTP connection broke'))
  const { name, isImplicitTls } = options
  putProxyFront(server.server, { networks: options.proxies, name, isImplicitTls })
  options.certificate.onRenewed((renewed) => server.updateSecureContext(renewed))
  await listenAt(server.server, options)
  return {
    port: (server.server.address() as { port: number }).port,
    get connections() {
      return server.placed
    },
    close: () => close(server),
  }
}

class SubmissionServer extends SMTPServer {
  readonly #open = new Map<string, SubmissionConnection>()
  readonly #places: Places<Socket>
  /** The accepted TCP socket and the time of its acceptance, by that socket or the TLS socket above it. */
  readonly #accepted = new WeakMap<Socket, { readonly place: Socket; readonly atMs: number }>()
  readonly #limits: SubmissionLimits
  readonly #given: SubmissionOptions

  constructor(given: SubmissionOptions, limits: SubmissionLimits) {
    super(serverOptions(given, limits))
    this.#given = given
    this.#limits = limits
    this.#places = new Places({ max: limits.connections, crowdedFrom: limits.crowdedFrom })
  }

  /** Open connections, including those in their TLS handshake. */
  get placed(): number {
    return this.#places.size
  }

  // Spec submission.connections
  override _acceptSocket(...[socket, handshake]: Parameters<SMTPServer['_acceptSocket']>): (() => void) | false {
    const { isPlaced, displaced } = this.#places.enter(socket, clientNetwork(socket.remoteAddress ?? ''))
    if (displaced !== null) this.#displace(displaced)
    if (!isPlaced) {
      refuseSocket(socket, handshake ? null : CROWDED)
      return false
    }
    this.#accepted.set(socket, { place: socket, atMs: performance.now() })
    socket.once('close', () => this.#places.leave(socket))
    // The library's own limit is an idle timeout.
    if (handshake) setTimeout(() => this._pendingSockets.get(socket)?.destroy(), this.#limits.handshakeMs).unref()
    return super._acceptSocket(socket, handshake)
  }

  // Passes the address that the front has read. With TLS the library would use the address of the connection.
  override _handleProxy(...[socket, callback]: Parameters<SMTPServer['_handleProxy']>): void {
    const { remoteAddress } = socket
    super._handleProxy(socket, (error, options) =>
      callback(
        error,
        options === undefined ? options : { ...options, ...(remoteAddress !== undefined && { remoteAddress }) },
      ),
    )
  }

  #displace(place: Socket): void {
    const connection = [...this.#open.values()].find((one) => one.place === place)
    if (connection === undefined) (this._pendingSockets.get(place) ?? place).destroy()
    else {
      connection.say(DISPLACED)
      setTimeout(() => connection.cut(), DISPLACED_MS_MAX).unref()
    }
  }

  override connect(
    socket: Socket | TLSSocket,
    socketOptions?: ConstructorParameters<typeof SubmissionConnection>[2],
  ): void {
    // It was closed after it was accepted, so no later event would report its end.
    if (socket.destroyed) return
    const connection = new SubmissionConnection(this, socket, socketOptions)
    this.connections.add(connection)
    this.#open.set(connection.id, connection)
    connection.on('error', (error: Error) => this.emit('error', error))
    const { place, atMs } = this.#accepted.get(socket) ?? { place: socket, atMs: performance.now() }
    connection.place = place
    connection.start(Math.max(1, this.#limits.loginMs - (performance.now() - atMs)))
  }

  /**
   * The library begins TLS a turn of the loop after it has accepted a connection. If the connection was closed in
   * between, by a shutdown, Node.js ends the whole process with a segmentation fault.
   */
  override _upgrade(...[socket, callback]: Parameters<SMTPServer['_upgrade']>): void {
    if (socket.destroyed) callback(new Error('Closed before TLS began'))
    else
      super._upgrade(socket, (error, secure) => {
        const accepted = this.#accepted.get(socket)
        if (secure !== undefined && accepted !== undefined) this.#accepted.set(secure, accepted)
        callback(error, secure)
      })
  }

  override onClose({ id }: SMTPServerSession): void {
    const place = this.#open.get(id)?.place
    if (place !== undefined) this.#places.leave(place)
    this.#open.delete(id)
  }

  override onAuth(...[auth, session, callback]: Parameters<SMTPServer['onAuth']>): void {
    const username = auth.username ?? ''
    const password = auth.password ?? ''
    this.#guarded(() => this.#logIn(this.#of(session), { username, password })).then((answer) =>
      answer.code === 235 ? callback(null, { user: username || '-' }) : callback(makeError(answer)),
    )
  }

  override onMailFrom(...[address, session, callback]: Parameters<SMTPServer['onMailFrom']>): void {
    const { login } = this.#of(session)
    const begin = async (): Promise<SmtpAnswer | null> => {
      const refusal = refuseMail(address, this.#given.offersReports)
      if (refusal !== null) return refusal
      return login === null ? UNAVAILABLE : this.#given.handlers.begin(login)
    }
    this.#guarded(begin).then((answer) => callback(answer === null ? null : makeError(answer)))
  }

  override onRcptTo(...[address, , callback]: Parameters<SMTPServer['onRcptTo']>): void {
    const refusal = refuseRecipient(address, this.#given.offersReports)
    callback(refusal === null ? null : makeError(refusal))
  }

  override onData(...[stream, session, callback]: Parameters<SMTPServer['onData']>): void {
    const connection = this.#of(session)
    connection.isBusy = true
    this.#guarded(() => this.#take(connection, session, stream)).then((answer) => {
      connection.isBusy = false
      this.#given.handlers.told('message', answer)
      if (answer === 'cut') connection.cut()
      // A connection that is cut gets no further reply.
      const said = answer === 'cut' ? UNAVAILABLE : answer
      callback(said.code === 250 ? null : makeError(said), said.text)
    })
  }

  /** Ends the sessions that have nothing in hand. */
  endIdle(): void {
    for (const connection of this.#open.values())
      if (!connection.isBusy && !connection._handlerPending) connection.say(CLOSING)
  }

  #of({ id }: SMTPServerSession): SubmissionConnection {
    const connection = this.#open.get(id)
    if (connection === undefined) throw new Error('A request for an ended session')
    return connection
  }

  // Spec submission.login
  async #logIn(connection: SubmissionConnection, given: { username: string; password: string }): Promise<SmtpAnswer> {
    const { failedLogins, handlers } = this.#given
    const { remoteAddress } = connection
    if (failedLogins.isBlocked(remoteAddress)) {
      handlers.told('login', TOO_MANY_LOGINS)
      return TOO_MANY_LOGINS
    }
    const answer = await handlers.logIn(given)
    if (!('code' in answer)) {
      connection.loggedIn(answer)
      if (connection.place !== undefined) this.#places.hold(connection.place)
      handlers.told('login', LOGGED_IN)
      return LOGGED_IN
    }
    handlers.told('login', answer)
    if (answer.code !== 535) return answer
    failedLogins.add(remoteAddress)
    connection.failedLogins += 1
    await pause(this.#limits.failedLoginMs)
    return connection.failedLogins >= SUBMISSION_SESSION_LOGINS_MAX ? TOO_MANY_LOGINS : answer
  }

  async #take(
    connection: SubmissionConnection,
    { envelope }: SMTPServerSession,
    stream: SMTPServerDataStream,
  ): Promise<SmtpAnswer | 'cut'> {
    const { held, handlers } = this.#given
    const timer = setTimeout(() => connection.say(LATE), this.#limits.dataMs).unref()
    const gathered = await gatherMessage(stream, held)
    clearTimeout(timer)
    // The client is gone and cannot receive an answer.
    if (gathered.kind === 'gone') return 'cut'
    if (gathered.kind === 'crowded') return FULL
    if (gathered.kind === 'too_large') return TOO_LARGE
    if (gathered.kind !== 'whole') return BAD_LINES
    try {
      const read = readEnvelope(envelope, this.#given.offersReports)
      if (connection.login === null) return UNAVAILABLE
      return await handlers.message(connection.login, { bytes: gathered.bytes, ...read })
    } finally {
      gathered.release()
    }
  }

  /** A handler that throws would leave its session without an answer, for good. */
  async #guarded<Answer>(answer: () => Promise<Answer>): Promise<Answer | SmtpAnswer> {
    try {
      return await answer()
    } catch (error) {
      const reason = error instanceof Error ? error.stack : String(error)
      this.#given.log.error({ reason }, 'Accepting a message over SMTP failed')
      return UNAVAILABLE
    }
  }
}

const LOGGED_IN: SmtpAnswer = { code: 235, text: '2.7.0 Authentication successful' }

function serverOptions(
  { name, certificate, isImplicitTls, offersReports }: SubmissionOptions,
  { idleMs }: SubmissionLimits,
) {
  return {
    name,
    banner: '',
    heloResponse: '%s',
    secure: isImplicitTls,
    size: MESSAGE_BYTES_MAX,
    rejectOversized: true,
    maxRecipients: RECIPIENTS_MAX,
    maxCommandLength: COMMAND_BYTES_MAX,
    maxAllowedUnauthenticatedCommands: 10,
    socketTimeout: idleMs,
    closeTimeout: CLOSE_MS_MAX,
    disableReverseLookup: true,
    authOptional: false,
    authMethods: ['PLAIN', 'LOGIN'],
    disabledCommands: ['VRFY', 'HELP', 'WIZ', 'SHELL', 'KILL', 'XCLIENT', 'XFORWARD'],
    hideENHANCEDSTATUSCODES: false,
    hideSMTPUTF8: true,
    hideDSN: !offersReports,
    hideREQUIRETLS: true,
    logger: false,
    ...certificate.current,
    minVersion: 'TLSv1.2' as const,
  }
}

function makeError({ code, text }: SmtpAnswer): Error {
  return Object.assign(new Error(text), { responseCode: code })
}

/** Refuses new connections and sends idle ones 421 at once; a message in hand gets its answer. */
function close(server: SubmissionServer): Promise<void> {
  return new Promise((resolve) => {
    const timer = setInterval(() => server.endIdle(), CLOSE_STEP_MS).unref()
    server.close(() => {
      clearInterval(timer)
      resolve()
    })
    server.endIdle()
  })
}
