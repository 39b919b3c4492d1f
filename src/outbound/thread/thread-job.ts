/**
 * thread-job - the messages between the main thread and a mail thread.
 *
 * Everything here crosses a thread boundary: plain data only. Attachment bytes travel as `Uint8Array` in buffers of
 * their own, which are transferred, not copied.
 */

import type { FenceCells, Pass } from '../../../cluster/fence.ts'
import type { AttemptRoute } from '../../mail/attempt-route.ts'
import type { MailInput } from '../../mail/compose/raw.ts'
import { makeReturned, type Outcome } from '../../mail/outcome.ts'
import type { Contact } from '../../mail/site-pace.ts'
import type { SmtpTimeouts } from './converse.ts'
import type { RelayTarget } from './relay-target.ts'
import type { SigningKey } from './sign.ts'
import type { Way } from './transmit.ts'

/**
 * The outcome if the password of a relay would be sent unencrypted; it is also logged for the operator.
 */
export const CLEAR_PASSWORD = '4.7.11 the password of the relay does not go out unencrypted'

/** Reason of a signal that cuts an attempt only if its final dot has not been sent. */
export const TOO_LATE = 'too late'

/** One attempt: the message, and whether it is simulated or transmitted; or a message that is only composed. */
export type MailJob = SimulateJob | TransmitJob | ComposeJob

export interface SimulateJob {
  readonly message: MailInput
  /** `attempt` counts from 1. */
  readonly simulate: { readonly address: string; readonly attempt: number }
}

/** The bytes of a message as it goes out. */
export interface ComposeJob {
  readonly message: MailInput
  readonly compose: { readonly keys: readonly SigningKey[] }
}

export interface TransmitJob {
  readonly message: MailInput
  readonly transmit: {
    /** As RCPT takes it. */
    readonly recipient: string
    readonly mailFrom: string
    /** The keys that sign the message, in the order of the signatures. */
    readonly keys: readonly SigningKey[]
    /** Recipients of the message in all; if there are several, the built message is kept for a while. */
    readonly copies: number
    /** Null = through a relay. */
    readonly way: Way | null
    /** The relay of a source; absent = that of RELAY_URL, if it is through a relay at all. */
    readonly relay?: RelayWay
    /** Processes that share the relay's connections, this one with them. */
    readonly sharers: number
    /** The pass for the fence. */
    readonly pass: Pass
  }
}

/** The way through the relay of a source. */
export interface RelayWay {
  /** Name of the source. */
  readonly source: string
  readonly target: RelayTarget
  /** Connections of all processes together. */
  readonly connections: number
  /** Name in EHLO; null: that of the settings. */
  readonly ehlo: string | null
}

export interface MailOutcome extends Outcome {
  /** Bytes of the message as built; null when it could not be built. */
  readonly sizeBytes: number | null
  /** The message as it goes out, of a `ComposeJob`. */
  readonly bytes?: Uint8Array
  /** The state of the site after a transmission. */
  readonly contact?: Contact
  /** The server that it ended at. */
  readonly route?: AttemptRoute | null
  /** With `returned`: milliseconds until the site has a connection to spare; null = it does not know. */
  readonly afterMs?: number | null
  /** Another attempt at the site failed to connect, and this one shares its outcome. */
  readonly isShared?: boolean
  /** With `returned`: a ceiling of its source was used up while it waited. */
  readonly isCeiling?: boolean
}

/** UTF-16 units of text and html, or bytes of a message that came whole, that a thread is not worth the way for. */
const SMALL_CHARS_MAX = 64 * 1024

/** Composes and transmits in a mail thread. */
export type RunMail = (job: MailJob, signal: AbortSignal) => Promise<MailOutcome>

/** Simulates without waiting; undefined if it would have to wait. */
export type RunAtOnce = (job: SimulateJob) => MailOutcome | undefined

/** Whether a job is simulated, and small enough for the main thread. */
export function isSmallSimulation(job: MailJob): job is SimulateJob {
  return 'simulate' in job && !hasAttachments(job.message) && bodyChars(job.message) <= SMALL_CHARS_MAX
}

/** UTF-16 units of text and html together; bytes of a message that came whole. */
export function bodyChars(message: MailInput): number {
  if ('raw' in message) return message.raw.length
  const { text, html } = message
  return (text?.length ?? 0) + (html?.length ?? 0)
}

function hasAttachments(message: MailInput): boolean {
  return !('raw' in message) && message.attachments.length > 0
}

/** The outcome of an attempt that was not made, or was aborted. Takes a short reason. */
export function makeUnperformed(text: string): MailOutcome {
  return { ...makeReturned('abort', text), sizeBytes: null }
}

export interface SmtpSettings {
  readonly ehloName: string
  /** `smtp://user:pass@host:port` or `smtps://…`; null = to the MX. */
  readonly relayUrl: string | null
  /** Connections to the relay, all threads together. */
  readonly relayConnections: number
  /** Authority of receiving servers and the relay (PEM); null = the system's. */
  readonly ca: string | null
  readonly deliveryPort: number
  /** Whether IPv6 addresses are connected to. */
  readonly usesIpv6: boolean
  readonly dnsServers: readonly string[]
  /** Whether these validate with DNSSEC. */
  readonly isDnsTrusted: boolean
  readonly privateNetworksAllowed: readonly string[]
  /** Open connections, all threads together. */
  readonly connectionsMax: number
  readonly timeouts: SmtpTimeouts
}

/** Start data of a thread; the numbers of `smtp` are already this thread's share. */
export interface ThreadData {
  readonly smtp: SmtpSettings
  readonly fence: FenceCells
}

export type ToThread =
  | { readonly kind: 'jobs'; readonly jobs: readonly { readonly id: number; readonly job: MailJob }[] }
  /** With `sparesDot`, not if the final dot has been sent. */
  | { readonly kind: 'cancel'; readonly id: number; readonly sparesDot: boolean }
  /** Takes no more jobs and cuts every attempt whose message the server has not asked for. */
  | { readonly kind: 'drain' }

export interface FromThread {
  readonly done: readonly { readonly id: number; readonly outcome: MailOutcome }[]
  /** Connections to receiving servers and the relay that are open in the thread. */
  readonly connections: number
}
