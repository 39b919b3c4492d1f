/**
 * converse - an SMTP session (RFC 5321) over a connected socket: greeting, EHLO, STARTTLS, AUTH, messages.
 *
 * States: opening -> open -> (sending -> open)* -> gone. Guarantees: every call settles, within the time limits,
 * whatever the server does; nothing is thrown; the phase of a failure is ours, not guessed from an error text. The
 * dialogue is nodemailer's; the timers of the transaction are ours, because its own only know inactivity.
 */

import { isAscii } from 'node:buffer'
import type { Socket } from 'node:net'
import { type ConnectionOptions, TLSSocket } from 'node:tls'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { FenceState } from '../../../cluster/fence.ts'
import type { AttemptRoute } from '../../mail/attempt-route.ts'
import type { Phase } from '../../mail/outcome.ts'
import { makeFeed } from './data-feed.ts'

/** Bytes of one reply; a peer that sends more is not an SMTP server. */
const REPLY_BYTES_MAX = 65_536
const CLOSED = 'connection closed by the server'

/** RFC 5321 4.5.3.2, shortened if no server needs the full time; all in milliseconds. */
export interface SmtpTimeouts {
  readonly connectMs: number
  /** All connection attempts of one delivery attempt together. */
  readonly connectAllMs: number
  readonly greetingMs: number
  /** Greeting, EHLO and STARTTLS together. */
  readonly openMs: number
  /** MAIL, RCPT and DATA together. */
  readonly envelopeMs: number
  /** Without a byte going on. */
  readonly dataMs: number
  readonly dotMs: number
  readonly closeMs: number
}

export const SMTP_TIMEOUTS: SmtpTimeouts = {
  connectMs: 30_000,
  connectAllMs: 60_000,
  greetingMs: 60_000,
  openMs: 120_000,
  envelopeMs: 300_000,
  dataMs: 180_000,
  dotMs: 600_000,
  closeMs: 5_000,
}

export interface OpenInput {
  readonly socket: Socket
  readonly host: string
  readonly ehloName: string
  /**
   * `implicit`: TLS from the first byte; `required`: STARTTLS or nothing; `opportunistic`: where offered; `none`:
   * never.
   */
  readonly tls: 'implicit' | 'required' | 'opportunistic' | 'none'
  readonly tlsOptions: ConnectionOptions
  /** Checks the server after the handshake; a text refuses it. */
  readonly checkPeer?: (socket: TLSSocket) => string | null
  readonly auth: { readonly user: string; readonly pass: string } | null
  readonly timeouts: SmtpTimeouts
  /** How long the connection took. */
  readonly connectMs: number
}

/**
 * Why a session or a transaction failed. `reply`: the server refused, and `text` is its reply as received. For the
 * others `text` is ours. `handshake`: TLS failed, the same server may still take the mail without. `too-large`: the
 * announced SIZE is below the message's. `abort`: the caller's signal was aborted. `fence`: see `feed.ts`.
 */
export interface SessionFailure {
  readonly kind: 'reply' | 'lost' | 'timeout' | 'handshake' | 'too-large' | 'abort' | 'fence'
  readonly phase: Phase
  readonly text: string
}

export type Opened =
  | { readonly ok: true; readonly session: Session }
  | { readonly ok: false; readonly failure: SessionFailure }
export type Sent =
  | { readonly ok: true; readonly reply: string }
  | { readonly ok: false; readonly failure: SessionFailure }

export interface SendInput {
  readonly mailFrom: string
  readonly recipient: string
  readonly message: Buffer
  /** Asked before MAIL: false = the claim is lost, nothing is begun. */
  mayBegin(): boolean
  /** Asked before the final dot; while it is held the transaction waits. */
  mayFinish(): FenceState
  /** The server wants the message: from now on it may take it. */
  onData?(): void
}

/** Both ends of a session, its encryption, and how long it took to open. */
export type SessionFacts = Pick<
  AttemptRoute,
  'address' | 'sourceAddress' | 'tlsVersion' | 'cipher' | 'isVerified' | 'connectMs' | 'tlsMs'
>

export interface Session {
  /** One message to one recipient. After a refusal the session is open again; `reset` it before the next message. */
  send(input: SendInput, signal: AbortSignal): Promise<Sent>
  /** RSET; false when the session is gone. */
  reset(): Promise<boolean>
  isOpen(): boolean
  facts(): SessionFacts
  /** Calls back once when the connection is gone; at once when it is already. */
  onClose(gone: () => void): void
  /** Says QUIT and does not wait for the answer. */
  quit(): void
  destroy(): void
}

/** The fields of the connection that its types hide and that this file reads; the version is pinned. */
interface Internals {
  readonly upgrading?: boolean
  _upgradeConnection(done: (...result: unknown[]) => void): void
  readonly _socket: Socket
  readonly _currentDataStream: { readonly readableLength: number; readonly writableLength: number } | false
}
type SmtpError = Error & { code?: string; response?: string | false; command?: string | false; originalCode?: string }

/**
 * Opens a session up to the point at which a message can be sent. Never rejects; on failure the socket is destroyed.
 */
export function openSession(input: OpenInput, signal: AbortSignal): Promise<Opened> {
  const connection = makeConnection(input)
  const internals = connection as unknown as Internals
  const tlsMs = watchHandshake(internals, input.checkPeer)
  return new Promise((resolve) => {
    const settle = once((failure: SessionFailure | null) => {
      signal.removeEventListener('abort', onAbort)
      if (failure === null) return resolve({ ok: true, session: makeSession(connection, input, tlsMs()) })
      connection.close()
      input.socket.destroy()
      resolve({ ok: false, failure })
    })
    const onAbort = () => settle({ kind: 'abort', phase: 'abort', text: 'attempt was cut off' })
    const onFailure = (error: SmtpError) => {
      const failure = readError(error, 'conn')
      const isTls = internals.upgrading === true || error.code === 'ETLS'
      settle(isTls ? { ...failure, kind: 'handshake' } : failure)
    }
    // Stays for the life of the connection, because an error without a listener would end the process.
    connection.on('error', onFailure)
    connection.once('end', () => setImmediate(() => settle({ kind: 'lost', phase: 'conn', text: CLOSED })))
    signal.addEventListener('abort', onAbort, { once: true })
    connection.connect((error) => {
      if (error) return onFailure(error as SmtpError)
      if (input.auth === null) return settle(null)
      connection.login({ ...input.auth }, (refused) => (refused ? onFailure(refused as SmtpError) : settle(null)))
    })
    if (signal.aborted) onAbort()
  })
}

function makeConnection(input: OpenInput): SMTPConnection {
  return new SMTPConnection({
    connection: input.socket,
    host: input.host,
    name: input.ehloName,
    secure: input.tls === 'implicit',
    ignoreTLS: input.tls === 'none',
    opportunisticTLS: input.tls === 'opportunistic',
    requireTLS: input.tls === 'required',
    tls: input.tlsOptions,
    connectionTimeout: input.timeouts.openMs,
    greetingTimeout: input.timeouts.greetingMs,
    socketTimeout: input.timeouts.dotMs,
    socketCloseTimeout: input.timeouts.closeMs,
    maxResponseSize: REPLY_BYTES_MAX,
    logger: false,
    debug: false,
    transactionLog: false,
  })
}

/**
 * Times the TLS handshake and checks its peer; the library has no event for either. Returns its milliseconds, null
 * before its end.
 */
function watchHandshake(internals: Internals, checkPeer: OpenInput['checkPeer']): () => number | null {
  let ms: number | null = null
  const upgrade = internals._upgradeConnection.bind(internals)
  internals._upgradeConnection = (done) => {
    const beganMs = performance.now()
    upgrade((...result) => {
      ms = performance.now() - beganMs
      const refused = result[0] || !checkPeer ? null : checkPeer(internals._socket as TLSSocket)
      if (refused === null) done(...result)
      else done(new Error(refused))
    })
  }
  return () => ms
}

function makeSession(
  connection: SMTPConnection,
  { socket, timeouts, connectMs }: OpenInput,
  tlsMs: number | null,
): Session {
  const { remoteAddress: address = null, localAddress: sourceAddress = null } = socket
  const destroy = () => {
    connection.close()
    socket.destroy()
  }
  return {
    send: (input, signal) => sendMessage(connection, { ...input, timeouts, destroy }, signal),
    reset: () => resetSession(connection, timeouts.closeMs),
    isOpen: () => !connection.destroyed && !socket.destroyed,
    facts: () => ({
      ...readTls((connection as unknown as Internals)._socket),
      address,
      sourceAddress,
      connectMs,
      tlsMs,
    }),
    onClose: (gone) => {
      if (socket.closed) gone()
      else socket.once('close', gone)
    },
    quit: () => {
      connection.quit()
      setTimeout(destroy, timeouts.closeMs).unref()
    },
    destroy,
  }
}

function readTls(socket: Socket): Pick<SessionFacts, 'tlsVersion' | 'cipher' | 'isVerified'> {
  if (!(socket instanceof TLSSocket)) return { tlsVersion: null, cipher: null, isVerified: false }
  return { tlsVersion: socket.getProtocol(), cipher: socket.getCipher()?.name ?? null, isVerified: socket.authorized }
}

function resetSession(connection: SMTPConnection, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const finish = (isOpen: boolean) => {
      clearTimeout(timer)
      connection.removeListener('end', onEnd)
      resolve(isOpen)
    }
    const onEnd = () => finish(false)
    const timer = setTimeout(onEnd, timeoutMs)
    connection.once('end', onEnd)
    connection.reset((error) => finish(!error))
  })
}

type Transaction = SendInput & { readonly timeouts: SmtpTimeouts; readonly destroy: () => void }

function sendMessage(connection: SMTPConnection, input: Transaction, signal: AbortSignal): Promise<Sent> {
  const { timeouts } = input
  if (!input.mayBegin())
    return Promise.resolve({ ok: false, failure: { kind: 'fence', phase: 'fence', text: 'claim lost before MAIL' } })
  const internals = connection as unknown as Internals
  return new Promise((resolve) => {
    let phase: Phase = 'mail'
    let timer: NodeJS.Timeout | undefined
    const settle = once((sent: Sent) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      connection.removeListener('error', onError)
      connection.removeListener('end', onGone)
      resolve(sent)
    })
    const fail = (failure: SessionFailure) => settle({ ok: false, failure })
    const cut = (failure: SessionFailure) => {
      fail(failure)
      input.destroy()
    }
    const arm = (timeoutMs: number) => {
      clearTimeout(timer)
      timer = setTimeout(() => cut({ kind: 'timeout', phase, text: `timeout at ${phase}` }), timeoutMs)
    }
    const onAbort = () => cut({ kind: 'abort', phase: 'abort', text: 'attempt was cut off' })
    const onError = (error: SmtpError) => fail(readError(error, phase))
    // The callback of send has more detail, and it runs in the same turn or never.
    const onGone = () => setImmediate(() => fail({ kind: 'lost', phase, text: CLOSED }))

    const feed = makeFeed({
      message: input.message,
      pendingBytes: () => countPending(internals),
      mayFinish: input.mayFinish,
      onStart: () => {
        phase = 'data'
        input.onData?.()
      },
      onProgress: () => arm(timeouts.dataMs),
      onEnd: () => {
        phase = 'dot'
        arm(timeouts.dotMs)
      },
      onFenced: () => cut({ kind: 'fence', phase: 'fence', text: 'held back before the final dot' }),
    })
    connection.once('error', onError)
    connection.once('end', onGone)
    signal.addEventListener('abort', onAbort, { once: true })
    arm(timeouts.envelopeMs)
    // Composed mail is ASCII. A message received whole may have other bytes, and is also sent to servers that do not
    // offer 8BITMIME.
    const use8BitMime = !isAscii(input.message)
    const envelope = { from: input.mailFrom, to: [input.recipient], size: input.message.length, use8BitMime }
    connection.send(envelope, feed, (error, info) => {
      if (error) feed.destroy()
      if (error) fail(readError(error as SmtpError, phase))
      else settle({ ok: true, reply: info!.response })
    })
    if (signal.aborted) onAbort()
  })
}

/** Bytes of the message between the feed and the kernel. */
function countPending(internals: Internals): number {
  const stuffing = internals._currentDataStream
  const inside = stuffing ? stuffing.readableLength + stuffing.writableLength : 0
  return inside + internals._socket.writableLength
}

function readError(error: SmtpError, phase: Phase): SessionFailure {
  if (error.response) return { kind: 'reply', phase: findPhase(error, phase), text: error.response }
  const code = error.originalCode ?? error.code ?? 'EUNKNOWN'
  if (error.code === 'EMESSAGE' && error.command === 'MAIL FROM')
    return { kind: 'too-large', phase: 'mail', text: code }
  if (error.code === 'ETIMEDOUT') return { kind: 'timeout', phase, text: `timeout at ${phase}` }
  return { kind: 'lost', phase, text: `connection failed with ${code}` }
}

/** The phase of a reply is that of the command that it answers. */
function findPhase(error: SmtpError, phase: Phase): Phase {
  if (error.command === 'MAIL FROM') return 'mail'
  if (error.command === 'RCPT TO') return 'rcpt'
  if (error.command === 'DATA') return error.code === 'EENVELOPE' ? 'data' : 'dot'
  return phase
}

function once<T>(run: (value: T) => void): (value: T) => void {
  let isDone = false
  return (value) => {
    if (isDone) return
    isDone = true
    run(value)
  }
}
