/**
 * thread-job - what the main thread and a mail thread say to each other.
 *
 * Everything here crosses a thread boundary: plain data only. Attachment bytes travel as `Uint8Array` in buffers of their
 * own, which are handed over, not copied.
 */

import type { ComposeInput } from '../mail/compose.ts'
import { makeDeferred, type Outcome } from '../mail/outcome.ts'
import type { SmtpTimeouts } from './converse.ts'
import type { SigningKey } from './sign.ts'

/** One attempt: the message, and whether it is simulated or transmitted. `attempt` counts from 1. */
export type MailJob = SimulateJob | TransmitJob

export interface SimulateJob {
  readonly message: ComposeInput
  readonly simulate: { readonly address: string; readonly attempt: number }
}

export interface TransmitJob {
  readonly message: ComposeInput
  readonly transmit: {
    readonly recipient: string
    readonly mailFrom: string
    /** What signs the message, in the order of the signatures. */
    readonly keys: readonly SigningKey[]
    /** Recipients of the message in all: where there are several, what was built is kept for a while. */
    readonly copies: number
  }
}

export interface MailOutcome extends Outcome {
  /** Bytes of the message as built; null when it could not be built. */
  readonly sizeBytes: number | null
}

/** UTF-16 units of text and html that a thread is not worth the way for. */
const SMALL_CHARS_MAX = 64 * 1024

/** Whether a job is simulated, and small enough for the main thread. */
export function isSmallSimulation(job: MailJob): job is SimulateJob {
  return 'simulate' in job && job.message.attachments.length === 0 && bodyChars(job.message) <= SMALL_CHARS_MAX
}

/** UTF-16 units of text and html together. */
export function bodyChars({ text, html }: ComposeInput): number {
  return (text?.length ?? 0) + (html?.length ?? 0)
}

/** The outcome of an attempt that was not made, or was cut off. In: why, in a few words of our own. */
export function makeUnperformed(text: string): MailOutcome {
  return { ...makeDeferred('abort', 'TransientFailure', `4.3.2 ${text}`), sizeBytes: null }
}

export interface SmtpSettings {
  readonly ehloName: string
  /** `smtp://user:pass@host:port` or `smtps://…`; null = to the MX. */
  readonly relayUrl: string | null
  /** Connections to the relay, all threads together. */
  readonly relayConnections: number
  /** PEM; null = the system's authorities. */
  readonly relayCa: string | null
  readonly deliveryPort: number
  readonly dnsServers: readonly string[]
  readonly privateNetworksAllowed: readonly string[]
  /** Attempts at once, all threads together; more wait in their thread. */
  readonly connectionsMax: number
  readonly timeouts: SmtpTimeouts
}

/** What a thread is started with; the numbers of `smtp` are already this thread's share. */
export interface ThreadData {
  readonly smtp: SmtpSettings
  readonly fence: BigInt64Array
}

export type ToThread =
  | { readonly kind: 'jobs'; readonly jobs: readonly { readonly id: number; readonly job: MailJob }[] }
  | { readonly kind: 'cancel'; readonly id: number }

export type FromThread = readonly { readonly id: number; readonly outcome: MailOutcome }[]
