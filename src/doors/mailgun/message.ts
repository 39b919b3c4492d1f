/**
 * message - a form of POST /v3/{domain}/messages becomes the body of POST /v1/email
 */

import type { Issue } from '../../../schemas/error.ts'
import { setField } from '../common/fields.ts'
import { type Mailbox, parseMailboxes } from '../common/mailbox.ts'
import type { FormFields } from './form.ts'

/** A mapped message, or the fields that have no counterpart. */
export type MappedForm =
  | {
      readonly body: Record<string, unknown>
      /** Variables of the recipients, in JSON; null: it is one message. */
      readonly variables: string | null
    }
  | { readonly issues: readonly Issue[] }

/** PHP's clients number the files of a list: `attachment[0]`. */
const FILES = /^(attachment|inline)(?:\[\d{0,4}\])?$/
const VARIABLES = 'recipient-variables'
/** Names of the metadata that holds all tags of a message. */
export const TAGS = 'mailgun-tags'
const NO = ['no', 'false', '']
const NOT_OFFERED: ReadonlyMap<string, string> = new Map([
  ['template', 'Templates are not offered: render the message in the application'],
  ['amp-html', 'AMP is not offered'],
])
/** RFC 5322 3.3, with a zone, because without one the moment depends on the reader's zone. */
const MAIL_DATE =
  /^(?:[A-Za-z]{3}, )?(\d{1,2}) [A-Za-z]{3} \d{4} \d{2}:\d{2}(?::\d{2})? (?:GMT|UTC?|Z|([+-])(\d{2})(\d{2}))$/
/** Mailboxes of one field, one more than any route accepts, so that its check refuses them. */
const MAILBOXES_MAX = 1_001

/** Translates a field of ours to the name in Mailgun's form. */
export function mailgunField(path: string): string {
  if (path === 'sendAt') return 'o:deliverytime'
  if (path === 'tag' || path === `metadata.${TAGS}`) return 'o:tag'
  if (path === 'metadata') return 'v:'
  const [, kind, name] = /^(headers|metadata)\.(.*)$/.exec(path) ?? []
  if (kind !== undefined) return `${kind === 'headers' ? 'h' : 'v'}:${name}`
  return path.replace(/^attachments\b.*$/, 'attachment').replace(/^(from|to|cc|bcc)\..*$/, '$1')
}

/** Maps a form. Takes the mode of the key's server. Only a form with files is waited for. */
export function mapForm(form: FormFields, mode: 'live' | 'test'): MappedForm | Promise<MappedForm> {
  const issues: Issue[] = []
  const files: [string, File][] = []
  const mapped = mapFields(form, { mode, files, issues })
  if (files.length === 0 || issues.length > 0) return issues.length > 0 ? { issues } : mapped
  return Promise.all(files.map(([name, file]) => convertAttachment(name, file))).then((attachments) => {
    mapped.body.attachments = attachments
    return mapped
  })
}

interface Mapping {
  readonly mode: 'live' | 'test'
  readonly files: [string, File][]
  readonly issues: Issue[]
}

/** The fields read so far. */
interface Fields {
  readonly headers: Record<string, string>
  readonly metadata: Record<string, string>
  readonly body: Record<string, unknown>
  readonly tags: string[]
  readonly more: Record<string, unknown>
  readonly people: Map<string, Mailbox[]>
}

function mapFields(form: FormFields, mapping: Mapping) {
  const [headers, metadata, more] = [{}, {}, {}] as [Fields['headers'], Fields['metadata'], Fields['more']]
  const body: Record<string, unknown> = { headers, metadata }
  const fields: Fields = { headers, metadata, body, tags: [], more, people: new Map() }
  for (const [name, value] of form) takeField(fields, mapping, { name, value })
  for (const [name, mailboxes] of fields.people) body[name] = mailboxes.map(convertAddress)
  if (fields.tags.length > 0) {
    body.tag = fields.tags[0]
    setOnce(metadata, { name: `v:${TAGS}`, key: TAGS, value: fields.tags.join(','), issues: mapping.issues })
  }
  dropSender(headers, body.from)
  return { body, variables: (more[VARIABLES] ?? null) as string | null }
}

function takeField(
  { headers, metadata, body, tags, more, people }: Fields,
  { mode, files, issues }: Mapping,
  { name, value }: { readonly name: string; readonly value: string | File },
): void {
  if (typeof value !== 'string') {
    addFile(files, { name, value, issues })
    return
  }
  // Names that the code has: the engine would have to look for the new string of each request as the name of a field.
  if (name === 'from') setOnce(body, { name: 'from', value: parseOneMailbox(value), issues })
  else if (name === 'to') addPeople(people, 'to', value)
  else if (name === 'cc') addPeople(people, 'cc', value)
  else if (name === 'bcc') addPeople(people, 'bcc', value)
  else if (name === 'subject') setOnce(body, { name: 'subject', value, issues })
  else if (name === 'text') setText(body, { name: 'text', value, issues })
  else if (name === 'html') setText(body, { name: 'html', value, issues })
  else if (name === 'o:tag') tags.push(value)
  else if (name === VARIABLES) setOnce(more, { name: VARIABLES, value, issues })
  else if (name.startsWith('v:')) setOnce(metadata, { name, key: name.slice(2), value, issues })
  else if (name.startsWith('h:')) setHeader(headers, { name, value, issues })
  else if (FILES.test(name)) issues.push({ path: name, message: 'Must be a file' })
  else takeOption(body, { name, value, mode, issues })
}

function addFile(files: [string, File][], { name, value, issues }: Given<File>): void {
  const [, kind] = FILES.exec(name) ?? []
  if (kind !== undefined) files.push([kind, value])
  else issues.push({ path: name, message: 'Must be a text, not a file' })
}

/** A Sender equal to From is left out, as RFC 5322 3.6.2 demands, because our own route refuses the field. */
function dropSender(headers: Record<string, string>, from: unknown): void {
  const name = Object.keys(headers).find((one) => one.toLowerCase() === 'sender')
  if (name === undefined) return
  const addressIn = (value: unknown) => (typeof value === 'string' ? value : (value as { email: string }).email)
  const [sender] = parseMailboxes(headers[name] ?? '')
  if (from !== undefined && sender?.email.toLowerCase() === addressIn(from).toLowerCase()) delete headers[name]
}

interface Given<Value = unknown> {
  readonly name: string
  readonly value: Value
  readonly issues: Issue[]
}

function setOnce(fields: Record<string, unknown>, { name, key = name, value, issues }: Given & { key?: string }): void {
  if (Object.hasOwn(fields, key)) issues.push({ path: name, message: 'Given more than once' })
  else setField(fields, key, value)
}

/** Clients send an empty text beside an HTML body. */
function setText(body: Record<string, unknown>, given: Given<string>): void {
  if (given.value !== '') setOnce(body, given)
}

function takeOption(
  body: Record<string, unknown>,
  { name, value, mode, issues }: Given<string> & { readonly mode: 'live' | 'test' },
): void {
  // The default of many integrations sets them. Ignored, and documented as ignored.
  if (name === 'o:tracking' || name.startsWith('o:tracking-') || name === 'o:dkim') return
  if (name === 'o:testmode') {
    if (mode === 'live' && !NO.includes(value))
      issues.push({ path: name, message: 'Not offered on a live server: use the key of a test server' })
    return
  }
  if (name === 'o:deliverytime') {
    setOnce(body, { name, key: 'sendAt', value: convertInstant(value), issues })
    return
  }
  issues.push({ path: name, message: NOT_OFFERED.get(name) ?? 'Unknown field' })
}

function addPeople(people: Map<string, Mailbox[]>, name: string, value: string): void {
  const list = people.get(name) ?? []
  if (list.length < MAILBOXES_MAX) list.push(...parseMailboxes(value))
  people.set(name, list)
}

/** Names of headers are the same in upper and lower case. */
function setHeader(headers: Record<string, string>, { name, value, issues }: Given<string>): void {
  const key = name.slice(2)
  const known = Object.keys(headers).find((one) => one.toLowerCase() === key.toLowerCase())
  setOnce(headers, { name, key: known ?? key, value, issues })
}

/** The moment of an RFC 5322 date; null for any other text. */
export function mailDateMs(value: string): number | null {
  const [, day, sign, hours, minutes] = MAIL_DATE.exec(value) ?? []
  const timeMs = Date.parse(value)
  if (day === undefined || Number.isNaN(timeMs)) return null
  const zoneMs = sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000
  // A day that the month does not have becomes another one.
  return new Date(timeMs + zoneMs).getUTCDate() === Number(day) ? timeMs : null
}

/** A date in the form of our own routes; any other text stays unchanged. */
function convertInstant(value: string): string {
  const ms = mailDateMs(value)
  return ms === null ? value : new Date(ms).toISOString()
}

async function convertAttachment(name: string, value: File): Promise<object> {
  const [type = ''] = value.type
    .toLowerCase()
    .split(';', 1)
    .map((one) => one.trim())
  const isKnown = type !== '' && type !== 'application/octet-stream'
  return {
    name: value.name,
    content: Buffer.from(await value.arrayBuffer()).toString('base64'),
    // Clients that know no type send application/octet-stream; the type then follows from the name.
    ...(isKnown && { contentType: type }),
    ...(name === 'inline' && { contentId: value.name }),
  }
}

function parseOneMailbox(text: string): unknown {
  const [first, ...others] = parseMailboxes(text)
  return first === undefined || others.length > 0 ? text : convertAddress(first)
}

function convertAddress({ email, name }: Mailbox): unknown {
  return name === null ? email : { email, name }
}
