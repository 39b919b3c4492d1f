/**
 * list-fields - the fields by which a reader's mail program lets it leave a list: List-Unsubscribe (RFC 2369),
 * List-Unsubscribe-Post (RFC 8058) and List-Id (RFC 2919)
 *
 * Guarantees: ASCII; only the link or the domain can make a line long; client text is always in a quoted string or an
 * encoded word, so that no field can be injected.
 *
 * Spec unsubscribe.fields
 */

import { domainToASCII } from 'node:url'
import { encodeWord } from 'nodemailer/lib/mime-funcs'

/** A field of the service, ready for the header. */
export interface ListField {
  readonly name: string
  readonly value: string
}

/** Input of the fields. */
export interface ListFieldsInput {
  /** The link for this recipient only; null if the message has its own field. */
  readonly unsubscribeUrl: string | null
  readonly streamName: string
  readonly streamId: string
  /** Domain of the sender's address. */
  readonly fromDomain: string
}

/** Fields of the service that occur once; if they are written, a client's own fields of these names are left out. */
const OWN_FIELDS: ReadonlySet<string> = new Set(['list-unsubscribe', 'list-unsubscribe-post', 'list-id', 'feedback-id'])
/** Those that a message may bring itself. */
const UNSUBSCRIBE_FIELDS: ReadonlySet<string> = new Set(['list-unsubscribe', 'list-unsubscribe-post'])
const ONE_CLICK = 'List-Unsubscribe=One-Click'
const ID_DIGITS = 8
/** Octets of one encoded word (RFC 2047 2: 75 at most). */
const WORD_OCTETS_MAX = 52
const LINE_OCTETS_MAX = 76
const BARE_PHRASE = /^[\w-]+(?: [\w-]+){0,20}$/
const PRINTABLE = /^[\x20-\x7e]*$/
const CONTROLS = /[\u0000-\u001f\u007f-\u009f]/g
const LONE_SURROGATES = /\p{Surrogate}/gu

/** The fields. One-click is offered only over https, which RFC 8058 3.1 demands. */
export function formatListFields(input: ListFieldsInput): ListField[] {
  const { unsubscribeUrl } = input
  const fields = unsubscribeUrl === null ? [] : [{ name: 'List-Unsubscribe', value: `<${unsubscribeUrl}>` }]
  if (unsubscribeUrl?.startsWith('https://')) fields.push({ name: 'List-Unsubscribe-Post', value: ONE_CLICK })
  fields.push({ name: 'List-ID', value: formatListId(input) })
  return fields
}

/** Whether a field is one of the service's on a broadcast stream. Takes its name, in any case. */
export function isListField(name: string): boolean {
  return OWN_FIELDS.has(name.toLowerCase())
}

/** A client's own fields without those that are the service's. */
export function withoutListFields(
  headers: Readonly<Record<string, string>>,
  ownsList = false,
): Readonly<Record<string, string>> {
  const isOurs = (name: string) => isListField(name) && !(ownsList && UNSUBSCRIBE_FIELDS.has(name.toLowerCase()))
  const names = Object.keys(headers)
  if (!names.some(isOurs)) return headers
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isOurs(name)))
}

/** A phrase, and an id below a domain of the sender (RFC 2919 3). The phrase alone is encoded, the brackets never. */
function formatListId({ streamName, streamId, fromDomain }: ListFieldsInput): string {
  const domain = domainToASCII(fromDomain) || fromDomain
  const id = `<${streamId.slice(-ID_DIGITS)}.list.${domain.toLowerCase()}>`
  const phrase = formatPhrase(streamName)
  const lastLine = phrase.slice(phrase.lastIndexOf('\n') + 1)
  const isLong = `List-ID: ${lastLine} ${id}`.length > LINE_OCTETS_MAX
  return phrase === '' ? id : `${phrase}${isLong ? '\r\n ' : ' '}${id}`
}

function formatPhrase(name: string): string {
  const text = name.replace(LONE_SURROGATES, '\ufffd').replace(CONTROLS, ' ').trim()
  if (text === '' || BARE_PHRASE.test(text)) return text
  // Text that looks like an encoded word would be read as one.
  if (PRINTABLE.test(text) && !text.includes('=?')) return `"${text.replace(/["\\]/g, '\\$&')}"`
  return encodeWord(text, 'Q', WORD_OCTETS_MAX).replaceAll('?= =?', '?=\r\n =?')
}
