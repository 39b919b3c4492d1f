/**
 * smtp-form - turns a message received over SMTP into the message that is decided on and stored
 *
 * Pure. The envelope names the recipients: those in To or Cc are visible, the others are blind copies. The parsed
 * fields are for the log; the bytes are sent unchanged.
 *
 * Spec submission.envelope, submission.log, submission.fingerprint
 */

import {
  CONTENT_ID_CHARS_MAX,
  HEADER_NAME_CHARS_MAX,
  HEADER_VALUE_CHARS_MAX,
  HEADERS_MAX,
} from '../../schemas/limits.ts'
import { parseAddress } from '../mail/address.ts'
import type { MailAddress } from '../mail/mime/address-list.ts'
import type { ReceivedAttachment } from '../mail/mime/body.ts'
import { cutValue } from '../mail/mime/header-text.ts'
import type { ReportsWanted } from '../state/message/bounce-mail.ts'
import type { HeadAttachment } from '../state/message/head.ts'
import { canonicalJson, computeFingerprint, type Recipient, type SendMessage } from './email-form.ts'
import type { SendOrder } from './send-command.ts'
import type { SubmittedBody } from './submitted-body.ts'
import type { SubmittedHeader } from './submitted-header.ts'

/** The input: the message, and the data of its session. */
export interface Submission {
  readonly header: SubmittedHeader
  readonly body: SubmittedBody
  /** Each once, of the grammar, as the envelope names them. */
  readonly recipients: readonly string[]
  /** The stream in the user name, in lower case; null if none. */
  readonly streamId: string | null
  /** Reports that the envelope asks for; null: none. */
  readonly reports: EnvelopeReports | null
}

/** Parameters of the envelope about reports (RFC 3461 4). */
export interface EnvelopeReports extends ReportsWanted {
  /** MAIL FROM in lower case. */
  readonly mailFrom: string
}

/** Stands for SMTP in fingerprints, as a path does for requests. */
const WAY = 'smtp'
/** Fields that the log shows elsewhere, or that describe the encoding. */
const SHOWN_ELSEWHERE = /^(?:from|to|cc|bcc|subject|date|message-id|mime-version|content-.*)$/

/** Brings a message into the one form. Spec send.normal */
export function normaliseSubmission({ header, body, recipients, streamId, reports }: Submission): SendMessage {
  const { from, control, edited, messageId } = header
  const { mail } = body
  return {
    streamId: control.streamId ?? streamId,
    from,
    recipients: readRecipients(recipients, mail),
    subject: mail.subject ?? '',
    text: mail.text,
    html: mail.html,
    headers: readHeaders(mail),
    attachments: [],
    raw: {
      ...{ bytes: edited, messageId, attachments: mail.attachments.map(readAttachment) },
      reports: reports === null ? null : wantedReports(reports, from.address, mail),
    },
    tag: control.tag,
    metadata: control.metadata,
    sendAtMs: control.sendAtMs,
  }
}

/**
 * The stored data of an Idempotency-Key; null if none was given. Date, Message-ID and boundaries do not count, because
 * a client creates them again for a retry.
 */
export function makeIdempotency({ header, body }: Submission, message: SendMessage): SendOrder['idempotency'] {
  const key = header.control.idempotencyKey
  if (key === null) return null
  const { streamId, from, recipients, subject, text, html, tag, metadata, sendAtMs } = message
  const { digests, wholeDigest } = body
  // The order in the envelope does not matter.
  const sorted = recipients.map(canonicalJson).sort()
  const content = { streamId, from, recipients: sorted, subject, text, html, tag, metadata, digests, wholeDigest }
  const shared = sendAtMs === null ? content : { ...content, sendAtMs }
  return { key, fingerprint: computeFingerprint(WAY, shared) }
}

/**
 * The reports that are sent: to the sender, if MAIL FROM names it, and none about automatic mail, reports and lists
 * (RFC 3834 2). Spec submission.reports
 */
function wantedReports(
  { mailFrom, envid, notify }: EnvelopeReports,
  from: string,
  { headers }: SubmittedBody['mail'],
): ReportsWanted | null {
  if (mailFrom !== from.toLowerCase() || notify.every((bits) => bits === 0)) return null
  const isAutomatic = headers.some(({ name, value }) => AUTOMATIC.get(name.toLowerCase())?.test(value))
  return isAutomatic ? null : { envid, notify }
}

/** Fields of automatic mail, reports and lists, and their values. */
const AUTOMATIC: ReadonlyMap<string, RegExp> = new Map([
  ['auto-submitted', /^(?!no\b)/i],
  ['precedence', /^(?:bulk|list|junk)\b/i],
  ['list-id', /^/],
  ['content-type', /^multipart\/report\b/i],
])

function readRecipients(
  recipients: readonly string[],
  { to, cc }: Pick<SubmittedBody['mail'], 'to' | 'cc'>,
): Recipient[] {
  const shown = new Map<string, Pick<Recipient, 'kind' | 'name'>>()
  const show = (kind: 'to' | 'cc', list: readonly MailAddress[]) => {
    for (const { address, name } of list) {
      const parsed = parseAddress(address)
      const same = parsed.ok ? parsed.address.toLowerCase() : null
      if (same !== null && !shown.has(same)) shown.set(same, { kind, name })
    }
  }
  show('to', to)
  show('cc', cc)
  return recipients.map((address) => ({ address, ...(shown.get(address.toLowerCase()) ?? BLIND) }))
}

const BLIND = { kind: 'bcc', name: null } as const

/** The first fields of the client's own, each name once. */
function readHeaders({ headers }: SubmittedBody['mail']): Record<string, string> {
  const own = new Map<string, string>()
  const seen = new Set<string>()
  for (const { name, value } of headers) {
    const same = name.toLowerCase()
    if (own.size === HEADERS_MAX) break
    if (seen.has(same) || SHOWN_ELSEWHERE.test(same) || name.length > HEADER_NAME_CHARS_MAX) continue
    seen.add(same)
    own.set(name, cutValue(value, HEADER_VALUE_CHARS_MAX).text)
  }
  return Object.fromEntries(own)
}

function readAttachment({ name, contentType, contentId, size, inline }: ReceivedAttachment): HeadAttachment {
  // An id that is cut would be another one.
  const id = contentId === null || contentId.length > CONTENT_ID_CHARS_MAX ? null : contentId
  return { name: name ?? '', contentType, contentId: id, size, inline }
}
