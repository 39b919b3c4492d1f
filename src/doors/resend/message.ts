/**
 * message - a message in Resend's fields becomes the body of POST /v1/email
 *
 * Values of a type that is not known are handed on as they are, so that our own check refuses them by name.
 */

import type { Issue } from '../../../schemas/error.ts'
import { ATTACHMENTS_MAX, METADATA_MAX, RECIPIENTS_MAX } from '../../../schemas/limits.ts'
import { readFields, setField } from '../common/fields.ts'
import { formatMailbox, type Mailbox, parseMailbox } from '../common/mailbox.ts'

/** A mapped message, or the fields that have no counterpart. */
export type MappedMessage = { readonly body: Record<string, unknown> } | { readonly issues: readonly Issue[] }

type Fields = Readonly<Record<string, unknown>>

/** Fields that are the same in both. */
const SAME = ['subject', 'html', 'text', 'headers'] as const
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([
  ['template', 'Templates are not offered: render the message in the application'],
  ['topic_id', 'Topics are not offered: send to the recipients of each topic on a separate stream'],
])
const KNOWN = new Set([...SAME, 'from', 'to', 'cc', 'bcc', 'reply_to', 'attachments', 'tags', 'scheduled_at'])
const ATTACHMENT_FIELDS = new Set(['filename', 'content', 'content_type', 'content_id', 'path'])
const TAG_FIELDS = new Set(['name', 'value'])

/** Resend's names of our fields that have another name there. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^sendAt$/, 'scheduled_at'],
  [/^headers\.Reply-To$/, 'reply_to'],
  [/^metadata\b.*$/, 'tags'],
  [/^from\..*$/, 'from'],
  [/^(to|cc|bcc)\.(\d+)\..*$/, '$1.$2'],
  [/^(attachments\.\d+)\.name$/, '$1.filename'],
  [/^(attachments\.\d+)\.contentType$/, '$1.content_type'],
  [/^(attachments\.\d+)\.contentId$/, '$1.content_id'],
]

const SPAN = /^in (\d{1,6}|an?) (second|sec|minute|min|hour|hr|day|week)s?$/i
const SPAN_MS: Readonly<Record<string, number>> = {
  second: 1000,
  sec: 1000,
  minute: 60_000,
  min: 60_000,
  hour: 3_600_000,
  hr: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
}

/** Translates a field of ours to Resend's name. */
export function resendField(path: string): string {
  const [, batch = '', field = path] = /^messages\.(\d+\.)(.*)$/.exec(path) ?? []
  const row = NAMES.find(([pattern]) => pattern.test(field))
  return batch + (row === undefined ? field : field.replace(row[0], row[1]))
}

/** Maps one message. Takes the body of POST /emails and the store's time in ms. */
export function mapMessage(value: unknown, nowMs: number): MappedMessage {
  const { fields, issues } = readFields(value, KNOWN, NOT_OFFERED)
  const body: Record<string, unknown> = {}
  for (const name of SAME) if (fields[name] !== undefined) body[name] = fields[name]
  // With Resend, an empty text disables the text generated from the HTML.
  for (const name of ['text', 'html']) if (body[name] === '') delete body[name]
  if (fields.from !== undefined) body.from = convertMailbox(fields.from)
  for (const name of ['to', 'cc', 'bcc']) if (fields[name] !== undefined) body[name] = convertMailboxes(fields[name])
  if (fields.reply_to !== undefined) setReplyTo(body, fields.reply_to, issues)
  if (fields.tags !== undefined) body.metadata = convertTags(fields.tags, issues)
  if (fields.attachments !== undefined) body.attachments = convertAttachments(fields.attachments, issues)
  if (fields.scheduled_at !== undefined) body.sendAt = convertInstant(fields.scheduled_at, nowMs)
  return issues.length > 0 ? { issues } : { body }
}

/** The time of `scheduled_at`: ISO 8601, or `in 1 min`. Any other value stays unchanged. */
export function convertInstant(value: unknown, nowMs: number): unknown {
  if (typeof value !== 'string') return value
  const [, count, unit = ''] = SPAN.exec(value.trim()) ?? []
  if (count === undefined) return value
  const spanMs = (/^a/i.test(count) ? 1 : Number(count)) * (SPAN_MS[unit.toLowerCase()] ?? 0)
  return new Date(nowMs + spanMs).toISOString()
}

function convertMailbox(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const { email, name } = parseMailbox(value)
  return name === null ? email : { email, name }
}

function convertMailboxes(value: unknown): unknown {
  if (!Array.isArray(value)) return [convertMailbox(value)]
  // A list that is too long is passed on unchanged, because our own check refuses it.
  return value.length > RECIPIENTS_MAX ? value : value.map(convertMailbox)
}

function setReplyTo(body: Record<string, unknown>, value: unknown, issues: Issue[]): void {
  const list = Array.isArray(value) ? value : [value]
  if (list.length === 0) return
  if (list.length > RECIPIENTS_MAX) {
    issues.push({ path: 'reply_to', message: `Must have at most ${RECIPIENTS_MAX} addresses` })
    return
  }
  const mailboxes = list.map((one) => (typeof one === 'string' ? parseMailbox(one) : null))
  const headers = body.headers ?? {}
  // Headers of another type are passed on unchanged, because our own check refuses them.
  if (typeof headers !== 'object' || Array.isArray(headers)) return
  if (mailboxes.some((one) => one === null || !one.email.includes('@'))) {
    issues.push({ path: 'reply_to', message: 'Must be an e-mail address, or a list of addresses' })
    return
  }
  for (const name in headers) {
    if (name.toLowerCase() !== 'reply-to') continue
    issues.push({ path: 'reply_to', message: 'Given in headers as well' })
    return
  }
  body.headers = { ...headers, 'Reply-To': (mailboxes as Mailbox[]).map(formatMailbox).join(', ') }
}

function convertTags(value: unknown, issues: Issue[]): unknown {
  if (!Array.isArray(value)) return value
  const metadata: Record<string, unknown> = {}
  if (value.length > METADATA_MAX) issues.push({ path: 'tags', message: `Must have at most ${METADATA_MAX} items` })
  else
    for (const [place, tag] of value.entries()) {
      const path = `tags.${place}`
      const { name, value: text } = (tag ?? {}) as Fields
      if (typeof name !== 'string' || typeof text !== 'string')
        issues.push({ path, message: 'Must have name and value' })
      else if (Object.hasOwn(metadata, name)) issues.push({ path, message: 'Name is given more than once' })
      else {
        for (const issue of readFields(tag, TAG_FIELDS).issues) issues.push({ ...issue, path: `${path}.${issue.path}` })
        setField(metadata, name, text)
      }
    }
  return metadata
}

function convertAttachments(value: unknown, issues: Issue[]): unknown {
  if (!Array.isArray(value) || value.length > ATTACHMENTS_MAX) return value
  return value.map((one, place) => {
    const path = `attachments.${place}`
    if (typeof one !== 'object' || one === null) return one
    const { fields, issues: found } = readFields(one, ATTACHMENT_FIELDS)
    for (const issue of found) issues.push({ ...issue, path: `${path}.${issue.path}` })
    if (fields.path !== undefined)
      issues.push({ path: `${path}.path`, message: 'URLs are not fetched: give the bytes as content' })
    const { filename, content, content_type: type, content_id: id } = fields
    return {
      ...(filename !== undefined && { name: filename }),
      ...(content !== undefined && { content: convertBytes(content) }),
      ...(type !== undefined && { contentType: typeof type === 'string' ? parseMediaType(type) : type }),
      ...(id !== undefined && { contentId: typeof id === 'string' ? id.replace(/^<(.*)>$/, '$1') : id }),
    }
  })
}

/** Base64, or a Buffer as JSON writes it. */
function convertBytes(content: unknown): unknown {
  if (typeof content === 'string') return content.replace(/\s+/g, '')
  const { type, data } = content as Fields
  const isBuffer = type === 'Buffer' && Array.isArray(data) && data.every(isByte)
  return isBuffer ? Buffer.from(data).toString('base64') : content
}

function isByte(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255
}

/** Parameters, such as a charset, are not part of our media types. */
function parseMediaType(type: string): string {
  const end = type.indexOf(';')
  return (end < 0 ? type : type.slice(0, end)).trim().toLowerCase()
}
