/**
 * nodemailer - a transport that sends through the API: `import { sendwrightTransport } from 'sendwright/nodemailer'`
 *
 * nodemailer reads files, streams and addresses; the transport maps its message to the body of a send. A part that the
 * API does not have is refused, so that no message leaves without it.
 *
 * Spec client.nodemailer
 */
import {
  type Address,
  type Attachment,
  type Email,
  type SendOptions,
  Sendwright,
  SendwrightError,
  type SendwrightOptions,
} from './sendwright.ts'

/**
 * Further fields of a message in addition to those of nodemailer, as in
 * `sendMail({ ..., sendwright: { tag: 'reset' } })`.
 */
export interface SendwrightFields extends Pick<Email, 'tag' | 'metadata' | 'streamId' | 'sendAt'> {
  readonly idempotencyKey?: string
}

/** The result of `sendMail`. */
export interface SentInfo {
  /** Message-ID of the sent mail. */
  messageId: string
  /** Id of the message in the API. */
  id: string
  envelope: { from: string; to: string[] }
  accepted: string[]
  rejected: string[]
  pending: string[]
  response: string
}

/** A message as nodemailer gives it to a transport. */
interface Mail {
  /** As the caller wrote it: `normalize` adds an envelope and a Message-ID to each. */
  readonly data: { readonly envelope?: unknown; readonly messageId?: unknown }
  normalize(callback: (error: Error | null, data: unknown) => void): void
}

export interface SendwrightTransport {
  readonly name: string
  readonly version: string
  send(mail: Mail, callback: (error: Error | null, info: SentInfo) => void): void
}

interface Mailbox {
  readonly name?: string
  readonly address?: string
  /** A group of mailboxes. */
  readonly group?: readonly Mailbox[]
}

interface File {
  readonly filename?: string | false
  readonly content?: string
  readonly encoding?: string
  readonly contentType?: string
  readonly cid?: string
}

interface Data {
  readonly from?: Mailbox
  readonly to?: readonly Mailbox[] | null
  readonly cc?: readonly Mailbox[] | null
  readonly bcc?: readonly Mailbox[] | null
  readonly replyTo?: readonly Mailbox[] | null
  readonly subject?: string
  readonly text?: string
  readonly html?: string
  readonly attachments?: readonly File[]
  readonly normalizedHeaders?: Readonly<Record<string, string>>
  readonly priority?: string
  readonly sendwright?: SendwrightFields
  readonly [field: string]: unknown
}

const NOT_OFFERED = ['raw', 'alternatives', 'amp', 'watchHtml', 'icalEvent', 'sender', 'dkim'] as const
const PRIORITIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  high: { 'X-Priority': '1 (Highest)', 'X-MSMail-Priority': 'High', Importance: 'High' },
  low: { 'X-Priority': '5 (Lowest)', 'X-MSMail-Priority': 'Low', Importance: 'Low' },
}

/**
 * A transport for `nodemailer.createTransport`. Takes the options of the client.
 * @throws SendwrightError if an option is wrong
 */
export function sendwrightTransport(options: SendwrightOptions): SendwrightTransport {
  const client = new Sendwright(options)
  return {
    name: 'Sendwright',
    version: '1',
    send(mail, callback) {
      const fault = envelopeFault(mail)
      if (fault !== null) return callback(fault, undefined as unknown as SentInfo)
      mail.normalize((error, data) => {
        if (error !== null) return callback(error, undefined as unknown as SentInfo)
        sendOne(client, data as Data).then(
          (info) => callback(null, info),
          (cause: Error) => callback(cause, undefined as unknown as SentInfo),
        )
      })
    },
  }
}

/** A message with its own envelope would go to other recipients than those it names. */
function envelopeFault({ data }: Mail): SendwrightError | null {
  const field = (['envelope', 'messageId'] as const).find((name) => data[name] !== undefined && data[name] !== null)
  return field === undefined ? null : notTaken(field)
}

function notTaken(field: string): SendwrightError {
  return new SendwrightError(`The API does not take \`${field}\`: send it over SMTP`)
}

async function sendOne(client: Sendwright, data: Data): Promise<SentInfo> {
  const { idempotencyKey } = data.sendwright ?? {}
  const email = convertEmail(data)
  const options: SendOptions = idempotencyKey === undefined ? {} : { idempotencyKey }
  const { messageId: id, status } = await client.send(email, options)
  const from = addressIn(email.from)
  const to = [email.to, email.cc ?? [], email.bcc ?? []].flatMap((some) => some.map(addressIn))
  const messageId = `<${id}${from.slice(from.lastIndexOf('@'))}>`
  return { messageId, id, envelope: { from, to }, accepted: to, rejected: [], pending: [], response: `${status} ${id}` }
}

function convertEmail(data: Data): Email {
  const missing = NOT_OFFERED.find((field) => data[field] !== undefined && data[field] !== null)
  if (missing !== undefined) throw notTaken(missing)
  const { sendwright: { idempotencyKey: _key, ...fields } = {}, from, subject = '', text, html } = data
  const [sender] = convertAddresses(from === undefined ? [] : [from])
  if (sender === undefined) throw new SendwrightError('The message has no `from`')
  const headers = convertHeaders(data)
  return {
    from: sender,
    to: convertAddresses(data.to),
    cc: convertAddresses(data.cc),
    bcc: convertAddresses(data.bcc),
    subject,
    ...(text !== undefined && { text }),
    ...(html !== undefined && { html }),
    ...(Object.keys(headers).length > 0 && { headers }),
    attachments: (data.attachments ?? []).map(convertAttachment),
    ...fields,
  }
}

/** Mailboxes of a field; those of a group are listed one by one. */
function convertAddresses(field: readonly Mailbox[] | null | undefined): Address[] {
  return (field ?? []).flatMap(({ name, address, group }): Address[] => {
    if (group !== undefined) return convertAddresses(group)
    if (address === undefined) return []
    return [name === undefined || name === '' ? address : { email: address, name }]
  })
}

function addressIn(address: Address): string {
  return typeof address === 'string' ? address : address.email
}

function convertHeaders({ normalizedHeaders = {}, replyTo, priority = '' }: Data): Record<string, string> {
  const reply = convertAddresses(replyTo).map((one) =>
    typeof one === 'string' ? one : `"${(one.name ?? '').replace(/["\\]/g, '\\$&')}" <${one.email}>`,
  )
  return {
    ...normalizedHeaders,
    ...PRIORITIES[priority.toLowerCase()],
    ...(reply.length > 0 && { 'Reply-To': reply.join(', ') }),
  }
}

/** nodemailer gives bytes in base64, and text as it is. */
function convertAttachment({ filename, content = '', encoding, contentType, cid }: File): Attachment {
  return {
    name: filename || 'attachment',
    content: encoding === 'base64' ? content.replace(/\s+/g, '') : encodeBase64(new TextEncoder().encode(content)),
    ...(contentType !== undefined && { contentType: contentType.split(';')[0]?.trim().toLowerCase() as string }),
    ...(cid !== undefined && { contentId: cid }),
  }
}

function encodeBase64(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return btoa(text)
}
