/**
 * bounce - a bounce or a complaint as Postmark describes it: its type, and the number by which its clients name it
 *
 * The number is derived from the time of the event and from message and recipient, so it needs no storage: the time
 * selects the events of that moment, and the other bits one of them.
 */

import { createHash } from 'node:crypto'

/** A type of Postmark's table. */
export interface BounceType {
  readonly Type: string
  readonly TypeCode: number
  readonly Name: string
  readonly Description: string
}

/** The fields of our event from which a bounce is built. */
export interface BounceEvent {
  readonly event: string
  readonly messageId: string
  readonly recipient: string
  readonly occurredAt: string
  readonly details: {
    readonly response?: string | null
    readonly classification?: string | null
    readonly hard?: boolean
    readonly feedbackType?: string | null
    readonly source?: string
  }
}

function type(Type: string, TypeCode: number, Name: string, Description: string): BounceType {
  return { Type, TypeCode, Name, Description }
}

const HARD = type('HardBounce', 1, 'Hard bounce', 'The server was unable to deliver your message')
const TRANSIENT = type('Transient', 2, 'Message delayed', 'The message could not be delivered in time')
const UNSUBSCRIBE = type('Unsubscribe', 16, 'Unsubscribe request', 'The recipient unsubscribed')
const DNS = type('DnsError', 256, 'DNS error', 'The domain of the recipient could not be resolved')
const SPAM = type('SpamNotification', 512, 'Spam notification', 'The message was rejected because of its content')
const UNKNOWN = type('Unknown', 2048, 'Unknown', 'The reply of the server could not be classified')
const SOFT = type('SoftBounce', 4096, 'Soft bounce', 'The mailbox cannot take the message at present')
const VIRUS = type('VirusNotification', 8192, 'Virus notification', 'The message was rejected as a virus')
const COMPLAINT = type('SpamComplaint', 100_001, 'Spam complaint', 'The recipient marked the message as spam')
const MANUAL = type('ManuallyDeactivated', 100_002, 'Manually deactivated', 'The address is on the suppression list')
const BLOCKED = type('Blocked', 100_006, 'ISP block', 'The server rejected the message because of its sender')
const DMARC = type('DMARCPolicy', 100_009, 'DMARC policy', 'The message was rejected by a DMARC policy')

/** Every type that our bounces can have. */
export const BOUNCE_TYPES: readonly BounceType[] = [
  HARD,
  TRANSIENT,
  UNSUBSCRIBE,
  DNS,
  SPAM,
  UNKNOWN,
  SOFT,
  VIRUS,
  COMPLAINT,
  MANUAL,
  BLOCKED,
  DMARC,
]

/** Types by our classes; a class that is not listed is a soft bounce. */
const OF_CLASS: Readonly<Record<string, BounceType>> = {
  Suppressed: MANUAL,
  DNSFailure: DNS,
  BadDomain: DNS,
  SpamContent: SPAM,
  ContentRelated: SPAM,
  ProhibitedAttachment: SPAM,
  SpamBlock: BLOCKED,
  PolicyRelated: BLOCKED,
  InvalidSender: BLOCKED,
  AuthenticationFailed: DMARC,
  VirusRelated: VIRUS,
  MessageExpired: TRANSIENT,
  BadConnection: TRANSIENT,
  NoAnswerFromHost: TRANSIENT,
  TransientFailure: TRANSIENT,
  RoutingErrors: TRANSIENT,
  Uncategorized: UNKNOWN,
}

/** The type of a bounce, a complaint or an unsubscribe. */
export function classifyBounce({ event, details }: Pick<BounceEvent, 'event' | 'details'>): BounceType {
  if (event === 'spam_complaint') return COMPLAINT
  if (event === 'unsubscribed') return UNSUBSCRIBE
  const { classification, hard } = details
  // A recipient that was suppressed at acceptance did not bounce with this message.
  if (hard === true && classification !== 'Suppressed') return HARD
  return OF_CLASS[classification ?? ''] ?? SOFT
}

/** The words of the receiving server, or of the report. */
export function bounceDetails({ details }: Pick<BounceEvent, 'details'>): string {
  return details.response ?? details.feedbackType ?? details.source ?? ''
}

/** Numbers begin here, so that they stay below 2^53 until 2037. */
const EPOCH_MS = Date.UTC(2020, 0, 1)
const HASH_VALUES = 2 ** 14

/** The number of a bounce. */
export function bounceNumber({ occurredAt, messageId, recipient }: Omit<BounceEvent, 'event' | 'details'>): number {
  const digest = createHash('sha256').update(`${messageId} ${recipient.toLowerCase()}`).digest()
  return (Date.parse(occurredAt) - EPOCH_MS) * HASH_VALUES + (digest.readUInt16BE(0) % HASH_VALUES)
}

/** The time of a bounce's number, in ms. */
export function msOfBounce(number: number): number {
  return EPOCH_MS + Math.floor(number / HASH_VALUES)
}

/** The number by which clients know a server or a webhook: theirs are not UUIDs. */
export function numberOfId(id: string): number {
  return Number.parseInt(id.slice(-7), 16)
}

const DEFAULT_STREAM = 'outbound'

/** The name by which Postmark's clients know a stream. */
export function streamNameOf({ isDefault, name }: { readonly isDefault: boolean; readonly name: string }): string {
  return isDefault ? DEFAULT_STREAM : name
}
