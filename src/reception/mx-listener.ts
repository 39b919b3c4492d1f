/**
 * mx-listener - the listener that mail servers speak to: who may connect, which recipients are taken, one mail at a time.
 *
 * It knows SMTP and no more: whom mail is for, and what becomes of it, is asked of its handlers, and 250 follows their
 * word. Of a mail the beginning is kept: reports stand there, and the rest is the message that they are about.
 *
 * Guarantees: a handler that throws is 451 and harms no other session; memory is bounded by sessions times what is kept;
 * a listener that closes lets mail in hand finish.
 *
 * Spec mx.commands, mx.rate, mx.refused, mx.size, listener.port, listener.close
 */

import { domainToASCII } from 'node:url'
import { SMTPServer, type SMTPServerAddress, type SMTPServerDataStream, type SMTPServerSession } from 'smtp-server'
import { MAIL_BYTES_MAX, MX_RECIPIENTS_MAX, MX_REFUSED_MAX } from '../../schemas/limits.ts'
import type { EdgeLog } from '../http/request.ts'
import type { SenderRate } from './sender-rate.ts'

/** What is said to a peer: 250 takes. The text begins with the enhanced code (RFC 3463). */
export interface SmtpAnswer {
  readonly code: number
  readonly text: string
}

/** An address as the envelope names it; the domain in lower case and as it stands in the DNS. */
export interface RcptAddress {
  readonly localPart: string
  readonly domain: string
}

/** A mail that was received whole. */
export interface ReceivedMail<Target> {
  /** Its first bytes. */
  readonly bytes: Buffer
  readonly targets: readonly Target[]
  /** `MAIL FROM:<>`: a notification, which nobody answers (RFC 5321 4.5.5). */
  readonly isNullSender: boolean
}

export interface MxHandlers<Target> {
  /** Whether mail to the address is taken: what it is for, or the refusal. */
  recipient(address: RcptAddress): Promise<{ readonly target: Target } | SmtpAnswer>
  /** Takes a mail; 250 once it is on disk. */
  mail(mail: ReceivedMail<Target>): Promise<SmtpAnswer>
}

export interface MxListenerOptions<Target> {
  readonly host: string
  readonly port: number
  readonly name: string
  readonly tls: { readonly key: string; readonly cert: string }
  readonly rate: SenderRate
  readonly handlers: MxHandlers<Target>
  readonly log: EdgeLog
}

/** RFC 5321 4.5.3.2: five minutes between commands. */
const IDLE_MS_MAX = 300_000
/** The whole stop has ten seconds; a sender that is cut comes again. */
const CLOSE_MS_MAX = 5000
const CLIENTS_MAX = 500
const RECEIVED_MAX = 50
const COMMAND_BYTES_MAX = 4096
/** Bytes of a mail that are kept: a report is the second of its parts, the headers it quotes begin the third. */
const KEPT_BYTES_MAX = 256 * 1024

const UNAVAILABLE: SmtpAnswer = { code: 451, text: '4.3.0 Temporary failure, try again later' }

/** One session. */
interface Session<Target> {
  /** By address in lower case; the last transaction's. */
  targets: Map<string, Target>
  refused: number
  /** A mail is being received, or is in the handler's hands. */
  isBusy: boolean
}

/** Starts the listener. Throws Error when its port is taken. */
export async function startMxListener<Target>(
  options: MxListenerOptions<Target>,
): Promise<{ close(): Promise<void>; readonly port: number }> {
  const sessions = new Map<string, Session<Target>>()
  const server = new SMTPServer({
    ...serverOptions(options),
    onConnect(session, done) {
      sessions.set(session.id, { targets: new Map(), refused: 0, isBusy: false })
      const isAllowed = options.rate.open(session.remoteAddress)
      done(isAllowed ? null : errorOf({ code: 421, text: '4.7.0 Too many connections' }))
    },
    onClose(session) {
      if (sessions.delete(session.id)) options.rate.close(session.remoteAddress)
    },
    onMailFrom(_address, session, done) {
      sessions.get(session.id)?.targets.clear()
      done(null)
    },
    onRcptTo(address, session, done) {
      guarded(options.log, () => onRecipient(options.handlers, sessionOf(sessions, session), address)).then((answer) =>
        done(answer.code === 250 ? null : errorOf(answer)),
      )
    },
    onData(stream, session, done) {
      guarded(options.log, () => onMail(options.handlers, sessionOf(sessions, session), { session, stream })).then(
        (answer) => done(answer.code === 250 ? null : errorOf(answer), answer.text),
      )
    },
  })
  // A connection that breaks is nobody's business; without a listener it would end the process.
  server.on('error', (error: Error) => options.log.debug({ reason: error.message }, 'An SMTP connection broke'))
  await listen(server, options)
  return { close: () => close(server, sessions), port: (server.server.address() as { port: number }).port }
}

function serverOptions<Target>({ name, tls }: MxListenerOptions<Target>) {
  return {
    name,
    banner: '',
    heloResponse: '%s',
    size: MAIL_BYTES_MAX,
    rejectOversized: true,
    maxRecipients: MX_RECIPIENTS_MAX,
    maxClients: CLIENTS_MAX,
    maxCommandLength: COMMAND_BYTES_MAX,
    socketTimeout: IDLE_MS_MAX,
    closeTimeout: CLOSE_MS_MAX,
    disableReverseLookup: true,
    authOptional: true,
    disabledCommands: ['AUTH', 'VRFY', 'HELP', 'WIZ', 'SHELL', 'KILL'],
    // The library would put codes of its own before ours.
    hideENHANCEDSTATUSCODES: true,
    hideSMTPUTF8: true,
    logger: false,
    key: tls.key,
    cert: tls.cert,
    minVersion: 'TLSv1.2' as const,
  }
}

function sessionOf<Target>(sessions: ReadonlyMap<string, Session<Target>>, { id }: SMTPServerSession): Session<Target> {
  const session = sessions.get(id)
  if (session === undefined) throw new Error('A session that has ended was asked for')
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
  const found = envelope === null ? BAD_ADDRESS : await handlers.recipient(envelope)
  if ('target' in found) {
    session.targets.set(address.toLowerCase(), found.target)
    return { code: 250, text: '2.1.5 Ok' }
  }
  if (found.code >= 500) session.refused += 1
  // Spec mx.refused
  return session.refused >= MX_REFUSED_MAX ? { code: 421, text: '4.7.0 Too many unknown recipients' } : found
}

const BAD_ADDRESS: SmtpAnswer = { code: 501, text: '5.1.3 Bad recipient address' }

/** Reads an envelope's address: the library decodes its domain, which is put back; null for what is none of ASCII. */
export function parseEnvelopeAddress(address: string): RcptAddress | null {
  const at = address.lastIndexOf('@')
  const localPart = at < 0 ? address : address.slice(0, at)
  const domain = at < 0 ? '' : domainToASCII(address.slice(at + 1))
  // `postmaster` alone needs no domain (RFC 5321 4.5.1); an address literal is none of ours.
  if (at < 0 && localPart.toLowerCase() !== 'postmaster') return null
  if (at >= 0 && (domain === '' || !/^[a-z0-9.-]+$/i.test(domain))) return null
  return /^[\x21-\x7e]{1,64}$/.test(localPart) ? { localPart, domain: domain.toLowerCase() } : null
}

async function onMail<Target>(
  handlers: MxHandlers<Target>,
  session: Session<Target>,
  received: { session: SMTPServerSession; stream: SMTPServerDataStream },
): Promise<SmtpAnswer> {
  session.isBusy = true
  try {
    const bytes = await keepStart(received.stream).catch(() => null)
    // The peer went away before the end: nobody hears the answer.
    if (bytes === null) return UNAVAILABLE
    const named = received.session.envelope.rcptTo.map(({ address }) => session.targets.get(address.toLowerCase()))
    const targets = named.filter((target) => target !== undefined)
    if (received.stream.sizeExceeded) return { code: 552, text: '5.3.4 Message too big' }
    // Spec mx.loop
    if (countReceived(bytes) > RECEIVED_MAX) return { code: 554, text: '5.4.6 Too many hops: mail loops' }
    const { mailFrom } = received.session.envelope
    return await handlers.mail({ bytes, targets, isNullSender: mailFrom === false || mailFrom.address === '' })
  } finally {
    session.isBusy = false
  }
}

/** The first bytes of a mail; the rest is read and forgotten. Rejects when the peer goes away before its end. */
async function keepStart(stream: SMTPServerDataStream): Promise<Buffer> {
  const chunks: Buffer[] = []
  let kept = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    if (kept >= KEPT_BYTES_MAX) continue
    const part = chunk.subarray(0, KEPT_BYTES_MAX - kept)
    chunks.push(part)
    kept += part.length
  }
  return Buffer.concat(chunks)
}

/** How many servers a mail has passed: `Received` fields of its header (RFC 5321 6.3). */
function countReceived(bytes: Buffer): number {
  const end = bytes.indexOf('\r\n\r\n')
  const header = bytes.toString('latin1', 0, end < 0 ? bytes.length : end)
  return header.match(/^received[ \t]*:/gim)?.length ?? 0
}

function errorOf({ code, text }: SmtpAnswer): Error {
  return Object.assign(new Error(text), { responseCode: code })
}

function listen<Target>(server: SMTPServer, { host, port }: MxListenerOptions<Target>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => reject(new Error(`MX_PORT: cannot listen on ${host}:${port}: ${error.message}`))
    server.server.once('error', onError)
    server.listen(port, host, () => {
      server.server.off('error', onError)
      resolve()
    })
  })
}

/** No new connections; idle ones are told at once, a mail in hand gets its answer. */
function close<Target>(server: SMTPServer, sessions: ReadonlyMap<string, Session<Target>>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    const tell = () => {
      for (const connection of server.connections)
        if (sessions.get(connection.session.id)?.isBusy !== true) connection.send(421, '4.3.2 Service shutting down')
      if (server.connections.size === 0) clearInterval(timer)
    }
    const timer = setInterval(tell, 50).unref()
    tell()
  })
}
