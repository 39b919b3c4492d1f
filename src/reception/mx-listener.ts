/**
 * mx-listener - the SMTP listener for other mail servers: who may connect, which recipients are accepted, one mail at
 * a time.
 *
 * It handles only SMTP. Its handlers decide about recipients and mails, and 250 follows their answer. A mail is handed
 * over as it comes, no faster than it is taken.
 *
 * Guarantees: a handler that throws is 451 and affects no other session; a mail that is incomplete or refused is never
 * answered with 250, whatever its handler returns; memory is bounded by sessions times the read-ahead of the library;
 * a listener that closes lets mail in hand finish.
 *
 * Spec mx.commands, mx.rate, mx.refused, mx.size, mx.loop, mx.slow, mx.dots, listener.port, listener.close
 */

import { domainToASCII } from 'node:url'
import type { SMTPServerAddress, SMTPServerDataStream, SMTPServerSession } from 'smtp-server'
import { MAIL_BYTES_MAX, MX_DATA_MINUTES_MAX, MX_RECIPIENTS_MAX, MX_REFUSED_MAX } from '../../schemas/limits.ts'
import type { EdgeLog } from '../http/request.ts'
import type { CertificateWatch } from '../process/certificate-watch.ts'
import { type ListenPlace, listenAt } from '../process/listening/listen-at.ts'
import { MxServer } from './mx-server.ts'
import { putProxyFront } from './proxy/front.ts'
import type { SenderRate } from './sender-rate.ts'
import type { SmtpAnswer } from './smtp-answer.ts'

/** An address of the envelope; the domain in lower case, in the form of the DNS. */
export interface RcptAddress {
  readonly localPart: string
  readonly domain: string
}

/** The connected peer. */
export interface MxPeer {
  readonly ip: string
  readonly helo: string
  readonly isTls: boolean
}

/** A transaction as far as it has come. */
export interface MxTransaction<Target> {
  /**
   * MAIL FROM, with its domain in the form of the DNS; null for `<>`, a notification, which must not be answered (RFC
   * 5321 4.5.5).
   */
  readonly sender: string | null
  /** The targets of its recipients. */
  readonly targets: readonly Target[]
}

/** A mail that is coming. */
export interface IncomingMail<Target> extends MxTransaction<Target> {
  readonly peer: MxPeer
  /** Size declared by the sender; null if none was declared. */
  readonly declaredBytes: number | null
  /** Its bytes as they come. The stream fails if the mail is cut off, and then it must not be kept. */
  readonly pieces: AsyncIterable<Buffer>
}

export interface MxHandlers<Target> {
  /**
   * Checks whether mail to the address is accepted. Returns its target or the refusal. `transaction` does not yet have
   * this recipient.
   */
  recipient(address: RcptAddress, transaction: MxTransaction<Target>): Promise<{ readonly target: Target } | SmtpAnswer>
  /** Takes a mail; 250 once it is on disk. */
  mail(mail: IncomingMail<Target>): Promise<SmtpAnswer>
}

export interface MxListenerOptions<Target> extends ListenPlace {
  readonly name: string
  /** Networks of proxies that name their client by the PROXY protocol. */
  readonly proxies: readonly string[]
  readonly certificate: Pick<CertificateWatch, 'current' | 'onRenewed'>
  readonly rate: SenderRate
  readonly handlers: MxHandlers<Target>
  readonly log: EdgeLog
}

/** RFC 5321 4.5.3.2: five minutes between commands. */
const IDLE_MS_MAX = 300_000
const MINUTE_MS = 60_000
/** The whole shutdown has ten seconds; a sender that is cut off tries again. */
const CLOSE_MS_MAX = 5000
const RECEIVED_MAX = 50
const COMMAND_BYTES_MAX = 4096
/** A peer that exceeds the limit by this factor is disconnected. */
const EXCESS_FACTOR = 2
/** A local part of ours is at most a uuid, a plus sign and the longest mailbox hash. */
const LOCAL_PART = /^[\x21-\x7e]{1,292}$/
const SENDER_PART = /^[\x21-\x7e]+$/

const UNAVAILABLE: SmtpAnswer = { code: 451, text: '4.3.0 Temporary failure, try again later' }
const TOO_SLOW: SmtpAnswer = { code: 421, text: '4.4.2 Too slow, or too much' }
const CLOSING: SmtpAnswer = { code: 421, text: '4.3.2 Service shutting down' }
const TOO_BIG: SmtpAnswer = { code: 552, text: '5.3.4 Message too big' }
const LOOPS: SmtpAnswer = { code: 554, text: '5.4.6 Too many hops: mail loops' }
const BAD_ADDRESS: SmtpAnswer = { code: 501, text: '5.1.3 Bad recipient address' }
const BAD_SENDER: SmtpAnswer = { code: 501, text: '5.1.7 Bad sender address' }
const NON_ASCII_SENDER: SmtpAnswer = { code: 553, text: '5.6.7 SMTPUTF8 is not offered' }

/** One session. */
interface Session<Target> {
  /** By address in lower case; the last transaction's. */
  targets: Map<string, Target>
  sender: string | null
  refused: number
}

/** Starts the listener. Throws Error when its port is taken. */
export async function startMxListener<Target>(
  options: MxListenerOptions<Target>,
): Promise<{ close(): Promise<void>; readonly port: number }> {
  const sessions = new Map<string, Session<Target>>()
  const server = new MxServer({
    ...serverOptions(options),
    onConnect(session, done) {
      sessions.set(session.id, { targets: new Map(), sender: null, refused: 0 })
      const isAllowed = options.rate.open(session.remoteAddress)
      done(isAllowed ? null : makeError({ code: 421, text: '4.7.0 Too many connections' }))
    },
    onClose(session) {
      if (sessions.delete(session.id)) options.rate.close(session.remoteAddress)
    },
    onMailFrom({ address }, session, done) {
      const sender = address === '' ? null : parseSender(address)
      const known = sessions.get(session.id)
      known?.targets.clear()
      if (known !== undefined && !isAnswer(sender)) known.sender = sender
      done(isAnswer(sender) ? makeError(sender) : null)
    },
    onRcptTo(address, session, done) {
      guarded(options.log, () => onRecipient(options.handlers, sessionOf(sessions, session), address)).then((answer) =>
        done(answer.code === 250 ? null : makeError(answer)),
      )
    },
    onData(stream, session, done) {
      const cut = () => server.say(session.id, TOO_SLOW)
      server.mailBegins(session.id)
      guarded(options.log, () => onMail(options, sessionOf(sessions, session), { session, stream, cut })).then(
        (answer) => {
          server.mailDone(session.id)
          done(answer.code === 250 ? null : makeError(answer), answer.text)
        },
      )
    },
  })
  // A broken connection needs no handling, but without a listener its error would end the process.
  server.on('error', (error: Error) => options.log.debug({ reason: error.message }, 'An SMTP connection broke'))
  putProxyFront(server.server, { networks: options.proxies, name: options.name, isImplicitTls: false })
  options.certificate.onRenewed((renewed) => server.updateSecureContext(renewed))
  await listenAt(server.server, { ...options, setting: 'MX_PORT' })
  return { close: () => close(server), port: (server.server.address() as { port: number }).port }
}

function serverOptions<Target>({ name, certificate }: MxListenerOptions<Target>) {
  return {
    name,
    banner: '',
    heloResponse: '%s',
    size: MAIL_BYTES_MAX,
    rejectOversized: true,
    maxRecipients: MX_RECIPIENTS_MAX,
    maxCommandLength: COMMAND_BYTES_MAX,
    socketTimeout: IDLE_MS_MAX,
    closeTimeout: CLOSE_MS_MAX,
    disableReverseLookup: true,
    authOptional: true,
    disabledCommands: ['AUTH', 'VRFY', 'HELP', 'WIZ', 'SHELL', 'KILL'],
    // The library would put its own codes before ours.
    hideENHANCEDSTATUSCODES: true,
    hideSMTPUTF8: true,
    logger: false,
    ...certificate.current,
    minVersion: 'TLSv1.2' as const,
  }
}

function sessionOf<Target>(sessions: ReadonlyMap<string, Session<Target>>, { id }: SMTPServerSession): Session<Target> {
  const session = sessions.get(id)
  if (session === undefined) throw new Error('A request for an ended session')
  return session
}

/** A handler that throws would leave its session without an answer, for good. */
async function guarded(log: EdgeLog, answer: () => Promise<SmtpAnswer>): Promise<SmtpAnswer> {
  try {
    return await answer()
  } catch (error) {
    log.error({ reason: error instanceof Error ? error.stack : String(error) }, 'Receiving a mail failed')
    return UNAVAILABLE
  }
}

async function onRecipient<Target>(
  handlers: MxHandlers<Target>,
  session: Session<Target>,
  { address }: SMTPServerAddress,
): Promise<SmtpAnswer> {
  const envelope = parseEnvelopeAddress(address)
  const name = address.toLowerCase()
  const others = Array.from(session.targets).flatMap(([other, target]) => (other === name ? [] : [target]))
  const transaction = { sender: session.sender, targets: others }
  const found = envelope === null ? BAD_ADDRESS : await handlers.recipient(envelope, transaction)
  if ('target' in found) {
    session.targets.set(name, found.target)
    return { code: 250, text: '2.1.5 Ok' }
  }
  if (found.code >= 500) session.refused += 1
  // Spec mx.refused
  return session.refused >= MX_REFUSED_MAX ? { code: 421, text: '4.7.0 Too many unknown recipients' } : found
}

/** Reads an address of the envelope, encoding its domain again, which the library decodes; null if it is not ASCII. */
export function parseEnvelopeAddress(address: string): RcptAddress | null {
  const at = address.lastIndexOf('@')
  const localPart = at < 0 ? address : address.slice(0, at)
  const domain = at < 0 ? '' : domainToASCII(address.slice(at + 1))
  // `postmaster` alone needs no domain (RFC 5321 4.5.1); address literals are never ours.
  if (at < 0 && localPart.toLowerCase() !== 'postmaster') return null
  if (at >= 0 && (domain === '' || !/^[a-z0-9.-]+$/i.test(domain))) return null
  return LOCAL_PART.test(localPart) ? { localPart, domain: domain.toLowerCase() } : null
}

/** MAIL FROM with its domain in the form of the DNS, or the refusal. An address literal stays as it is. */
function parseSender(address: string): string | SmtpAnswer {
  const at = address.lastIndexOf('@')
  if (at < 0) return BAD_SENDER
  const [localPart, domain] = [address.slice(0, at), address.slice(at + 1)]
  // RFC 6531 3.2: a client must not use SMTPUTF8 unless it was offered.
  if (!SENDER_PART.test(localPart)) return NON_ASCII_SENDER
  const ascii = SENDER_PART.test(domain) ? domain : domainToASCII(domain)
  return ascii === '' ? BAD_SENDER : `${localPart}@${ascii}`
}

function isAnswer(value: string | SmtpAnswer | null): value is SmtpAnswer {
  return typeof value === 'object' && value !== null
}

interface Coming {
  readonly session: SMTPServerSession
  readonly stream: SMTPServerDataStream
  /** Ends the connection. */
  readonly cut: () => void
}

async function onMail<Target>(
  { handlers }: MxListenerOptions<Target>,
  session: Session<Target>,
  { session: told, stream, cut }: Coming,
): Promise<SmtpAnswer> {
  const timer = setTimeout(cut, MX_DATA_MINUTES_MAX * MINUTE_MS)
  const mail = new MailStream(stream, cut)
  try {
    const { envelope, remoteAddress, hostNameAppearsAs, secure } = told
    const named = envelope.rcptTo.map(({ address }) => session.targets.get(address.toLowerCase()))
    const { mailFrom } = envelope
    const size = mailFrom === false ? 0 : Number((mailFrom.args as { SIZE?: string } | undefined)?.SIZE)
    const answer = await handlers.mail({
      sender: session.sender,
      targets: named.filter((target) => target !== undefined),
      peer: { ip: remoteAddress, helo: hostNameAppearsAs || '', isTls: secure },
      declaredBytes: Number.isSafeInteger(size) && size > 0 ? size : null,
      pieces: mail.pieces(),
    })
    return mail.fault ?? answer
  } catch (error) {
    // The reader of a mail that is cut off gets an error.
    if (mail.fault === null) throw error
    return mail.fault
  } finally {
    clearTimeout(timer)
    // The rest that a handler did not read is discarded, because the answer follows the end of the mail.
    stream.resume()
  }
}

/** A mail in transit, and the reason if it must be refused. */
class MailStream {
  /** If set, this is the answer, whatever the handler returns. */
  fault: SmtpAnswer | null = null
  readonly #stream: SMTPServerDataStream
  readonly #cut: () => void
  readonly #hops = new HopCount()

  constructor(stream: SMTPServerDataStream, cut: () => void) {
    this.#stream = stream
    this.#cut = cut
  }

  async *pieces(): AsyncGenerator<Buffer> {
    const stream = this.#stream
    try {
      for await (const piece of stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
        if (stream.byteLength > MAIL_BYTES_MAX * EXCESS_FACTOR) this.#cut()
        this.#hops.push(piece)
        // Spec mx.loop
        if (this.#hops.count > RECEIVED_MAX) this.fault = LOOPS
        if (stream.sizeExceeded) this.fault = TOO_BIG
        if (this.fault === null) yield piece
      }
    } catch {
      // The peer disconnected before the end, so it cannot receive the answer.
      this.fault ??= UNAVAILABLE
    }
    if (this.fault !== null) throw new Error(`The mail was not taken: ${this.fault.text}`)
  }
}

/** How many servers a mail has passed: `Received` fields of its header (RFC 5321 6.3). Piece by piece. */
class HopCount {
  count = 0
  #isOver = false
  /** The beginning of the line that is coming. */
  #line = ''

  push(piece: Buffer): void {
    for (let at = 0; at < piece.length && !this.#isOver; ) {
      const end = piece.indexOf(LF, at)
      const until = end < 0 ? piece.length : end
      if (this.#line.length < LINE_START) this.#line += piece.toString('latin1', at, Math.min(until, at + LINE_START))
      at = until + 1
      if (end < 0) continue
      if (/^received[ \t]*:/i.test(this.#line)) this.count += 1
      if (this.#line === '' || this.#line === '\r') this.#isOver = true
      this.#line = ''
    }
  }
}

const LF = 0x0a
/** Characters of a line that show which field it begins. */
const LINE_START = 80

function makeError({ code, text }: SmtpAnswer): Error {
  return Object.assign(new Error(text), { responseCode: code })
}

/** Refuses new connections and sends idle ones 421 at once; a mail in hand gets its answer. */
function close(server: MxServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    const tell = () => {
      server.sayToIdle(CLOSING)
      if (server.connections.size === 0) clearInterval(timer)
    }
    const timer = setInterval(tell, 50).unref()
    tell()
  })
}
