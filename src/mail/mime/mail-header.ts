/**
 * mail-header - the top fields of a received mail as the contract shows them.
 *
 * Of a field that should occur once the first is used; several To, Cc and Reply-To fields are joined. Encoded words
 * are decoded everywhere except in the address fields of `headers`, in which a decoded comma would become a separator.
 *
 * Spec inbound.parse.header, inbound.parse.addresses, inbound.parse.value
 */

import type { SoftIssue } from '../../../schemas/inbound.ts'
import { type AddressList, type MailAddress, readAddressList } from './address-list.ts'
import type { HeaderBlock, HeaderField } from './header-block.ts'
import { cutValue, decodeWords, stripValue, unfold, VALUE_CHARS_MAX } from './header-text.ts'
import { parseMailDate } from './mail-date.ts'

/** Values of the fields. */
export interface MailHeader {
  readonly from: MailAddress | null
  readonly replyTo: readonly MailAddress[]
  readonly to: readonly MailAddress[]
  readonly toCount: number
  readonly cc: readonly MailAddress[]
  readonly ccCount: number
  readonly subject: string | null
  /** ISO string in UTC. */
  readonly date: string | null
  /** With its angle brackets. */
  readonly messageIdHeader: string | null
  readonly inReplyTo: string | null
  readonly references: readonly string[]
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  /** Addresses of To, Cc, Bcc, Reply-To and Sender, each once, as they are spelled. */
  readonly named: readonly string[]
  /** False if the raw mail has more than `named`. */
  readonly isNamedWhole: boolean
}

const ONCE = [
  'sender',
  'reply-to',
  'to',
  'cc',
  'bcc',
  'subject',
  'date',
  'message-id',
  'in-reply-to',
  'references',
] as const
const NAMED = ['to', 'cc', 'bcc', 'reply-to', 'sender'] as const
const ADDRESS_FIELDS: ReadonlySet<string> = new Set([
  ...['from', 'sender', 'reply-to', 'to', 'cc', 'bcc', 'return-path', 'delivered-to', 'x-original-to', 'errors-to'],
  ...['resent-from', 'resent-sender', 'resent-to', 'resent-cc', 'resent-bcc', 'resent-reply-to'],
  ...['disposition-notification-to', 'return-receipt-to', 'x-envelope-from', 'x-envelope-to', 'mail-followup-to'],
])
const ID = /<[^<>]*>/g

/** Reads the fields of a block. Adds what is changed or dropped to `soft`. */
export function readMailHeader(block: HeaderBlock, soft: Set<SoftIssue>): MailHeader {
  const values = new Map<string, string[]>()
  const headers = block.fields.map((field) => readField(field, { values, soft }))
  if (block.isMalformed) soft.add('malformed_header_dropped')
  if (ONCE.some((name) => (values.get(name)?.length ?? 0) > 1)) soft.add('duplicate_header')
  const list = (name: string): AddressList => readAddressList(values.get(name) ?? [])
  const lists = Object.fromEntries(NAMED.map((name) => [name, list(name)])) as Record<
    (typeof NAMED)[number],
    AddressList
  >
  const from = list('from')
  if ((values.get('from')?.length ?? 0) > 1 || from.count > 1) soft.add('multiple_from')
  for (const one of [from, ...Object.values(lists)]) {
    if (one.hadControls) soft.add('control_chars_stripped')
    if (one.isCut) soft.add('header_value_truncated')
  }
  for (const { addresses, count } of [lists.to, lists.cc, lists['reply-to']])
    if (count > addresses.length) soft.add('address_list_truncated')
  const first = (name: string): string | null => values.get(name)?.[0] ?? null
  return {
    // Of several From fields the first is used.
    from: readAddressList((values.get('from') ?? []).slice(0, 1)).addresses[0] ?? null,
    replyTo: lists['reply-to'].addresses,
    to: lists.to.addresses,
    toCount: lists.to.count,
    cc: lists.cc.addresses,
    ccCount: lists.cc.count,
    subject: shownValue(first('subject')),
    date: parseMailDate(first('date') ?? ''),
    messageIdHeader: readId(first('message-id')),
    inReplyTo: readId(first('in-reply-to')),
    references: readIds(first('references')),
    headers,
    named: [
      ...new Set([from, ...Object.values(lists)].flatMap(({ addresses }) => addresses.map(({ address }) => address))),
    ],
    isNamedWhole:
      block.issue === null &&
      [from, ...Object.values(lists)].every(({ addresses, count }) => count === addresses.length),
  }
}

/** One element of `headers`; its value, in one line, goes to `values` under the name in lower case. */
function readField(
  field: HeaderField,
  { values, soft }: { values: Map<string, string[]>; soft: Set<SoftIssue> },
): { name: string; value: string } {
  const key = field.name.toLowerCase()
  const line = unfold(field.value)
  const known = values.get(key)
  if (known === undefined) values.set(key, [line])
  else known.push(line)
  const stripped = stripValue(ADDRESS_FIELDS.has(key) ? line : decodeWords(line))
  const cut = cutValue(stripped.text)
  if (stripped.isChanged) soft.add('control_chars_stripped')
  if (cut.isChanged) soft.add('header_value_truncated')
  return { name: cutValue(field.name).text, value: cut.text }
}

function shownValue(line: string | null): string | null {
  return line === null ? null : cutValue(stripValue(decodeWords(line)).text).text
}

/** The first id of a field, otherwise its whole value. A cut id would be another one: it is dropped. */
function readId(line: string | null): string | null {
  if (line === null) return null
  const cut = cutValue(stripValue(line).text)
  const id = cut.text.match(ID)?.[0]
  if (id !== undefined) return id
  return cut.isChanged || cut.text === '' ? null : cut.text
}

/** Writers that forget the angle brackets separate ids by blanks or commas (RFC 5322 3.6.4). */
function readIds(line: string | null): string[] {
  if (line === null) return []
  const cut = cutValue(stripValue(line).text)
  const ids = cut.text.match(ID)
  if (ids !== null) return [...ids]
  const words = cut.text.split(/[\s,]+/).filter((word) => word !== '')
  return cut.isChanged && words.length > 0 && cut.text.length >= VALUE_CHARS_MAX ? words.slice(0, -1) : words
}
