/**
 * email-form - turns a valid body of POST /v1/email into the message that is decided on and stored
 *
 * Pure. One recipient per address however often it is written; control characters never reach a header.
 *
 * Spec send.normal, send.recipients.once, request.idempotency
 */

import { createHash } from 'node:crypto'

import type { EmailBody } from '../../schemas/email.ts'
import { parseAddress } from '../mail/address.ts'
import type { ReportsWanted } from '../state/message/bounce-mail.ts'
import type { HeadAttachment } from '../state/message/head.ts'

const CONTROL = /[\u0001-\u001f\u007f-\u009f]/g

/** The sender. */
export interface FromAddress {
  readonly address: string
  /** In lower case. */
  readonly domain: string
  readonly name: string | null
}

/** One recipient; of several entries with one address the first of to, cc, bcc. */
export interface Recipient {
  /** Local part as written, domain in lower case. */
  readonly address: string
  readonly name: string | null
  readonly kind: 'to' | 'cc' | 'bcc'
}

export interface Attachment {
  readonly name: string
  readonly contentType: string | null
  readonly contentId: string | null
  /** Base64 as received. */
  readonly content: string
  /** Bytes once decoded. */
  readonly size: number
}

/** A message that came whole. Its other fields are for the log. */
export interface RawMessage {
  readonly bytes: Buffer
  /** Its own Message-ID with angle brackets; or null. */
  readonly messageId: string | null
  readonly attachments: readonly HeadAttachment[]
  /** Reports that its client wants; null: none. */
  readonly reports: ReportsWanted | null
}

/** A normalized message, independent of the form of the body. */
export interface SendMessage {
  /** In lower case; null if the body names none. */
  readonly streamId: string | null
  readonly from: FromAddress
  readonly recipients: readonly Recipient[]
  readonly subject: string
  readonly text: string | null
  readonly html: string | null
  readonly headers: Readonly<Record<string, string>>
  /** Empty if it came whole. */
  readonly attachments: readonly Attachment[]
  /** Null if it is composed from the other fields. */
  readonly raw: RawMessage | null
  readonly tag: string | null
  readonly metadata: Readonly<Record<string, string>>
  /** When it is sent, ms; null: at once. */
  readonly sendAtMs: number | null
}

type AddressField = EmailBody['from']

/** Brings a validated body into its one form. Spec send.normal */
export function normaliseEmail(body: EmailBody): SendMessage {
  const from = readAddress(body.from)
  return {
    streamId: body.streamId?.toLowerCase() ?? null,
    from: { address: from.address, domain: from.domain, name: from.name },
    recipients: readRecipients(body),
    subject: withoutControl(body.subject),
    text: body.text ?? null,
    html: body.html ?? null,
    headers: body.headers,
    attachments: (body.attachments ?? []).map(readAttachment),
    raw: null,
    tag: body.tag,
    metadata: body.metadata,
    sendAtMs: body.sendAt === undefined ? null : Date.parse(body.sendAt),
  }
}

/** JSON with the names of every object in order, so that two spellings of one value are one text. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const fields = value as Readonly<Record<string, unknown>>
  const names = Object.keys(fields).sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalJson(fields[name])}`).join(',')}}`
}

/**
 * The fingerprint that two requests under one Idempotency-Key must share: SHA-256, in hex, of route and body with its
 * defaults.
 */
export function computeFingerprint(route: string, body: unknown): string {
  return createHash('sha256').update(route).update('\n').update(canonicalJson(body)).digest('hex')
}

// Spec send.recipients.once
function readRecipients(body: EmailBody): Recipient[] {
  const seen = new Set<string>()
  const recipients: Recipient[] = []
  for (const kind of ['to', 'cc', 'bcc'] as const) {
    for (const field of body[kind] ?? []) {
      const { address, name } = readAddress(field)
      const same = address.toLowerCase()
      if (seen.has(same)) continue
      seen.add(same)
      recipients.push({ address, name, kind })
    }
  }
  return recipients
}

/** An address as a body has it, alone or with a name. Throws TypeError if it was not validated. */
export function readAddress(field: AddressField): FromAddress {
  const isText = typeof field === 'string'
  const parsed = parseAddress(isText ? field : field.email)
  if (!parsed.ok) throw new TypeError('Address was not validated')
  const name = isText ? null : field.name
  return { address: parsed.address, domain: parsed.domain, name: name === null ? null : withoutControl(name) }
}

/** An attachment as a body has it. */
export function readAttachment(field: NonNullable<EmailBody['attachments']>[number]): Attachment {
  return {
    name: field.name,
    contentType: field.contentType ?? null,
    contentId: field.contentId,
    content: field.content,
    size: decodedBytes(field.content),
  }
}

/** Bytes that a base64 text decodes to. RFC 4648 4 */
function decodedBytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}

// Spec send.control
/** A text in the form allowed in a header. */
export function withoutControl(text: string): string {
  return text.replace(CONTROL, ' ')
}
