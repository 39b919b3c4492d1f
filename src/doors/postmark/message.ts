/**
 * message - a message in Postmark's fields becomes the body of POST /v1/email
 *
 * Values of a type that is not known are handed on as they are, so that our own check refuses them by name.
 */

import type { Issue } from '../../../schemas/error.ts'
import { ATTACHMENTS_MAX, HEADERS_MAX } from '../../../schemas/limits.ts'
import { readFields, setField } from '../common/fields.ts'
import { formatMailbox, type Mailbox, parseMailboxes } from '../common/mailbox.ts'

/** A mapped message with the name of its stream, or the fields that have no counterpart. */
export type MappedEmail =
  | { readonly body: Record<string, unknown>; readonly stream: unknown }
  | { readonly issues: readonly Issue[] }

/** Ignored, since the default of many integrations sets them. */
const IGNORED = ['TrackOpens', 'TrackLinks'] as const
const LISTS = ['To', 'Cc', 'Bcc'] as const
const TEXTS = [
  ['Subject', 'subject'],
  ['HtmlBody', 'html'],
  ['TextBody', 'text'],
  ['Tag', 'tag'],
] as const
const KNOWN = new Set<string>([
  ...IGNORED,
  ...LISTS,
  ...TEXTS.map(([name]) => name),
  'From',
  'ReplyTo',
  'Headers',
  'Metadata',
  'Attachments',
  'MessageStream',
])
const TEMPLATES = 'Templates are not offered by this service: render the message in the application'
const NOT_OFFERED: ReadonlyMap<string, string> = new Map(
  ['TemplateId', 'TemplateAlias', 'TemplateModel', 'InlineCss'].map((name) => [name, TEMPLATES]),
)
const HEADER_FIELDS = new Set(['Name', 'Value'])
const ATTACHMENT_FIELDS = new Set(['Name', 'Content', 'ContentType', 'ContentID'])
/** Mailboxes of one text; our own check refuses fewer. */
const MAILBOXES_MAX = 1_000

/** Postmark's names of our fields. */
const NAMES: readonly (readonly [RegExp, string])[] = [
  [/^streamId$/, 'MessageStream'],
  [/^from\b.*$/, 'From'],
  [/^to\b.*$/, 'To'],
  [/^cc\b.*$/, 'Cc'],
  [/^bcc\b.*$/, 'Bcc'],
  [/^subject$/, 'Subject'],
  [/^html$/, 'HtmlBody'],
  [/^text$/, 'TextBody'],
  [/^tag$/, 'Tag'],
  [/^headers\.Reply-To$/, 'ReplyTo'],
  [/^headers\b/, 'Headers'],
  [/^metadata\b/, 'Metadata'],
  [/^attachments\.(\d+)\.name$/, 'Attachments.$1.Name'],
  [/^attachments\.(\d+)\.content$/, 'Attachments.$1.Content'],
  [/^attachments\.(\d+)\.contentType$/, 'Attachments.$1.ContentType'],
  [/^attachments\.(\d+)\.contentId$/, 'Attachments.$1.ContentID'],
  [/^attachments\b/, 'Attachments'],
]

/** Translates a field of ours to Postmark's name. */
export function postmarkField(path: string): string {
  const field = path.replace(/^messages\.\d+\./, '')
  const row = NAMES.find(([pattern]) => pattern.test(field))
  return row === undefined ? field : field.replace(row[0], row[1])
}

/** Maps one message. Takes the body of POST /email. */
export function mapEmail(value: unknown): MappedEmail {
  const { fields, issues } = readFields(value, KNOWN, NOT_OFFERED)
  const body: Record<string, unknown> = {}
  // Clients send empty texts for fields that are not meant.
  for (const [name, own] of TEXTS) if (isGiven(fields[name])) body[own] = fields[name]
  if (isGiven(fields.From)) body.from = convertSender(fields.From)
  for (const name of LISTS) if (isGiven(fields[name])) body[name.toLowerCase()] = convertRecipients(fields[name])
  if (fields.Metadata !== undefined) body.metadata = fields.Metadata
  if (fields.Headers !== undefined) body.headers = convertHeaders(fields.Headers, issues)
  if (isGiven(fields.ReplyTo)) setReplyTo(body, fields.ReplyTo, issues)
  if (fields.Attachments !== undefined) body.attachments = convertAttachments(fields.Attachments, issues)
  // Postmark takes a message without To if it has Cc or Bcc. Ours names its first recipients in To.
  return issues.length > 0 ? { issues } : { body, stream: isGiven(fields.MessageStream) ? fields.MessageStream : null }
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== ''
}

function convertSender(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const [first, ...others] = parseMailboxes(value)
  return first === undefined || others.length > 0 ? value : convertAddress(first)
}

function convertRecipients(value: unknown): unknown {
  return typeof value === 'string' ? parseMailboxes(value).slice(0, MAILBOXES_MAX).map(convertAddress) : value
}

function convertAddress({ email, name }: Mailbox): unknown {
  return name === null ? email : { email, name }
}

function convertHeaders(value: unknown, issues: Issue[]): unknown {
  if (!Array.isArray(value)) return value
  const headers: Record<string, unknown> = {}
  if (value.length > HEADERS_MAX) issues.push({ path: 'Headers', message: `Must have at most ${HEADERS_MAX} items` })
  else
    for (const [place, header] of value.entries()) {
      const path = `Headers.${place}`
      const { fields, issues: found } = readFields(header, HEADER_FIELDS)
      for (const issue of found) issues.push({ ...issue, path: `${path}.${issue.path}` })
      const { Name, Value } = fields
      if (typeof Name !== 'string' || typeof Value !== 'string')
        issues.push({ path, message: 'Must have Name and Value' })
      else if (Object.hasOwn(headers, Name)) issues.push({ path, message: 'Name is given more than once' })
      else setField(headers, Name, Value)
    }
  return headers
}

function setReplyTo(body: Record<string, unknown>, value: unknown, issues: Issue[]): void {
  const headers = body.headers ?? {}
  // Headers of another type are passed on unchanged, because our own check refuses them.
  if (typeof headers !== 'object' || Array.isArray(headers)) return
  const mailboxes = typeof value === 'string' ? parseMailboxes(value).slice(0, MAILBOXES_MAX) : []
  if (mailboxes.length === 0 || mailboxes.some(({ email }) => !email.includes('@'))) {
    issues.push({ path: 'ReplyTo', message: 'Must be e-mail addresses with commas between them' })
    return
  }
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'reply-to')) {
    issues.push({ path: 'ReplyTo', message: 'Given in Headers as well' })
    return
  }
  body.headers = { ...headers, 'Reply-To': mailboxes.map(formatMailbox).join(', ') }
}

function convertAttachments(value: unknown, issues: Issue[]): unknown {
  if (!Array.isArray(value) || value.length > ATTACHMENTS_MAX) return value
  return value.map((one, place) => {
    if (typeof one !== 'object' || one === null) return one
    const { fields, issues: found } = readFields(one, ATTACHMENT_FIELDS)
    for (const issue of found) issues.push({ ...issue, path: `Attachments.${place}.${issue.path}` })
    const { Name, Content, ContentType: type, ContentID: id } = fields
    return {
      ...(Name !== undefined && { name: Name }),
      ...(Content !== undefined && { content: typeof Content === 'string' ? Content.replace(/\s+/g, '') : Content }),
      ...(isGiven(type) && { contentType: typeof type === 'string' ? parseMediaType(type) : type }),
      ...(isGiven(id) && { contentId: typeof id === 'string' ? id.replace(/^cid:/i, '') : id }),
    }
  })
}

/** Parameters, such as a charset, are not part of our media types. */
function parseMediaType(type: string): string {
  const end = type.indexOf(';')
  return (end < 0 ? type : type.slice(0, end)).trim().toLowerCase()
}
