/**
 * formats - the named formats of the schemas: their checks, and the messages for clients
 *
 * Every check is linear in the length of the text, and none keeps state.
 *
 * Spec address.grammar, inbound.search, domain.add, send.headers, send.attachments, id.uuid, time.instant
 */

import { parse } from 'tldts'

import { REFUSED_HEADER_NAMES, REFUSED_HEADER_PREFIXES } from '../../../schemas/email.ts'
import {
  DOMAIN_CHARS_MAX,
  HEADER_NAME_CHARS_MAX,
  MAILBOX_HASH_CHARS_MAX,
  WEBHOOK_URL_CHARS_MAX,
} from '../../../schemas/limits.ts'
import { HTTPS_URI } from '../../../schemas/webhook.ts'
import { isAddress, isDomain } from '../../mail/address.ts'
import { isInstant } from '../../views/instant.ts'

const URI = new RegExp(HTTPS_URI, 'u')
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const HEADER_NAME = /^[\x21-\x39\x3b-\x7e]+$/
/** A local part with a mailbox hash of the longest, and a domain. */
const MAILBOX_CHARS_MAX = 36 + 1 + MAILBOX_HASH_CHARS_MAX + 1 + DOMAIN_CHARS_MAX
const MAILBOX_GAP = /[\x00-\x20\x7f]/
const NOT_BASE64 = /[^A-Za-z0-9+/]/
const REFUSED_NAMES = new Set(REFUSED_HEADER_NAMES)

/** A format: the test, and the sentence for a text that fails it. */
export interface Format {
  readonly test: (text: string) => boolean
  readonly message: string
}

/** The formats that a schema may name. */
export const FORMATS: Readonly<Record<string, Format>> = {
  address: { test: isAddress, message: 'Must be an e-mail address' },
  mailbox: { test: isMailbox, message: 'Must be an e-mail address' },
  'sending-domain': { test: isSendingDomain, message: 'Must be a host name below a public suffix' },
  'header-name': { test: isHeaderName, message: 'Must be a header name that a message may set' },
  base64: { test: isBase64, message: 'Must be base64 with padding and without white space' },
  'webhook-url': {
    test: isWebhookUrl,
    message: 'Must be an https URI without fragment, its host in ASCII',
  },
  uuid: { test: isUuid, message: 'Must be a uuid' },
  'date-time': { test: isInstant, message: 'Must be an ISO 8601 date-time with an offset, of a day that exists' },
}

/** Whether the text is a uuid, in either case. Spec id.uuid */
function isUuid(text: string): boolean {
  return text.length === 36 && UUID.test(text)
}

/** Whether the text may be the address of mail that came in: others write what our own grammar has no place for. */
function isMailbox(text: string): boolean {
  const at = text.lastIndexOf('@')
  return at > 0 && at < text.length - 1 && text.length <= MAILBOX_CHARS_MAX && !MAILBOX_GAP.test(text)
}

/**
 * Whether a domain has the form of a sending domain, which is a host name that is not itself a public suffix. Spec
 * domain.add
 */
function isSendingDomain(text: string): boolean {
  if (!isDomain(text)) return false
  const domain = text.toLowerCase()
  const { publicSuffix, isIcann, isPrivate } = parse(domain, { allowPrivateDomains: true, validateHostname: false })
  return !((isIcann === true || isPrivate === true) && publicSuffix === domain)
}

/** Whether a message may set a header field with that name. Spec send.headers */
function isHeaderName(text: string): boolean {
  if (text.length > HEADER_NAME_CHARS_MAX || !HEADER_NAME.test(text)) return false
  const name = text.toLowerCase()
  return !REFUSED_NAMES.has(name) && !REFUSED_HEADER_PREFIXES.some((prefix) => name.startsWith(prefix))
}

/** Whether the text is base64. RFC 4648 4: padded, no white space; looks at each character once. */
function isBase64(text: string): boolean {
  if (text.length % 4 !== 0) return false
  const padding = text.search(NOT_BASE64)
  if (padding === -1) return true
  const rest = text.slice(padding, padding + 3)
  return padding + rest.length === text.length && (rest === '=' || rest === '==')
}

/** Whether events may be posted there, by the URL's form alone. Spec webhook.url */
function isWebhookUrl(text: string): boolean {
  if (text.length > WEBHOOK_URL_CHARS_MAX || !URI.test(text) || !URL.canParse(text)) return false
  return new URL(text).href.length <= WEBHOOK_URL_CHARS_MAX
}
