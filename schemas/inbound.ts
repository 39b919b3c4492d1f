/**
 * inbound - a received message: its header, the issue of its parsing, the authentication of its sender, and its search
 *
 * Spec inbound.parse, inbound.authentication, inbound.summary, inbound.search, inbound.read
 */

import type { FromSchema } from 'json-schema-to-ts'
import { MAILBOX_HASH_CHARS_MAX, PAGE_DEFAULT, PAGE_MAX } from './limits.ts'
import { INSTANT, INSTANT_OR_NULL, strictObject, TEXT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const
const TEXT = { type: 'string' } as const
const FLAG = { type: 'boolean' } as const

/** Issues after which only the top-level fields of a mail are kept. */
export const HARD_ISSUES = [
  'no_headers',
  'header_block_too_large',
  'too_many_headers',
  'too_many_parts',
  'nesting_too_deep',
  'missing_boundary',
  'decoded_too_large',
  'parse_timeout',
  'parser_error',
] as const

/** Issues of parts that were changed or dropped. A message names only the first one. */
export const SOFT_ISSUES = [
  'truncated_multipart',
  'too_many_attachments',
  'unknown_transfer_encoding',
  'undecodable_container',
  'filename_sanitised',
  'control_chars_stripped',
  'multiple_from',
  'duplicate_header',
  'malformed_header_dropped',
  'address_list_truncated',
  'header_value_truncated',
] as const

export type HardIssue = (typeof HARD_ISSUES)[number]
export type SoftIssue = (typeof SOFT_ISSUES)[number]
export type ParseIssue = HardIssue | SoftIssue

export const PARSE_ISSUE_OR_NULL = { enum: [...HARD_ISSUES, ...SOFT_ISSUES, null] } as const

export const SPF_VERDICTS = [
  'pass',
  'fail',
  'softfail',
  'neutral',
  'none',
  'temperror',
  'permerror',
  'unchecked',
] as const
/** Verdicts of DKIM and of DMARC. */
export const DKIM_VERDICTS = ['pass', 'fail', 'none', 'temperror', 'permerror', 'unchecked'] as const
export const ARC_VERDICTS = ['none', 'pass', 'fail', 'unchecked'] as const
export const DMARC_POLICIES = ['none', 'quarantine', 'reject'] as const

export type SpfVerdict = (typeof SPF_VERDICTS)[number]
export type DkimVerdict = (typeof DKIM_VERDICTS)[number]
export type ArcVerdict = (typeof ARC_VERDICTS)[number]
export type DmarcPolicy = (typeof DMARC_POLICIES)[number]

export const AUTHENTICATION = strictObject({
  spf: { enum: SPF_VERDICTS },
  spfHelo: { enum: SPF_VERDICTS },
  dkim: { enum: DKIM_VERDICTS },
  dmarc: { enum: DKIM_VERDICTS },
  dmarcPolicy: { enum: [...DMARC_POLICIES, null] },
  arc: { enum: ARC_VERDICTS },
  checkedAt: INSTANT_OR_NULL,
})

const PERSON = strictObject({ address: TEXT, name: TEXT_OR_NULL })
const PEOPLE = { type: 'array', items: PERSON } as const

/** Fields of both forms of the event and of the summary. */
export const RECEIVED_REFERENCE = {
  inboundMessageId: UUID,
  streamId: UUID,
  receivedAt: INSTANT,
  envelopeRecipient: TEXT,
  mailboxHash: TEXT_OR_NULL,
  sizeBytes: COUNT,
  attachmentCount: COUNT,
  hasText: FLAG,
  hasHtml: FLAG,
  authentication: AUTHENTICATION,
  parseIssue: PARSE_ISSUE_OR_NULL,
} as const

/** Spec inbound.attachment: without its bytes. */
const RECEIVED_FILE = strictObject({
  position: COUNT,
  name: TEXT_OR_NULL,
  contentType: TEXT,
  contentId: TEXT_OR_NULL,
  size: COUNT,
  inline: FLAG,
})

const FROM = { ...PERSON, type: ['object', 'null'] } as const

/** Fields that expire with the content. */
export const RECEIVED_CONTENT = {
  envelope: { ...strictObject({ sender: TEXT_OR_NULL }), type: ['object', 'null'] },
  from: FROM,
  replyTo: PEOPLE,
  to: PEOPLE,
  toCount: COUNT,
  cc: PEOPLE,
  ccCount: COUNT,
  subject: TEXT_OR_NULL,
  date: INSTANT_OR_NULL,
  messageIdHeader: TEXT_OR_NULL,
  inReplyTo: TEXT_OR_NULL,
  references: { type: 'array', items: TEXT },
  headers: { type: 'array', items: strictObject({ name: TEXT, value: TEXT }) },
  text: TEXT_OR_NULL,
  html: TEXT_OR_NULL,
  attachments: { type: 'array', items: RECEIVED_FILE },
  contentOmitted: { enum: ['too_large', 'expired', null] },
} as const

const SUMMARY_PROPERTIES = {
  ...RECEIVED_REFERENCE,
  contentAvailable: FLAG,
  contentExpiresAt: INSTANT,
  from: FROM,
  subject: TEXT_OR_NULL,
  date: INSTANT_OR_NULL,
} as const

export const RECEIVED_SUMMARY = strictObject(SUMMARY_PROPERTIES)

/** Answer of GET /v1/inbound/{id}. */
export const RECEIVED_MESSAGE = strictObject({ ...SUMMARY_PROPERTIES, ...RECEIVED_CONTENT })

/** Body of POST /v1/inbound/search; every given filter must match. */
export const RECEIVED_SEARCH = {
  type: 'object',
  properties: {
    streamId: UUID,
    from: { type: 'string', format: 'mailbox' },
    recipient: { type: 'string', format: 'mailbox' },
    mailboxHash: { type: 'string', maxLength: MAILBOX_HASH_CHARS_MAX },
    receivedFrom: INSTANT,
    receivedTo: INSTANT,
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: UUID,
  },
  additionalProperties: false,
} as const

/** Answer of POST /v1/inbound/search. */
export const RECEIVED_LIST = strictObject({
  messages: { type: 'array', maxItems: PAGE_MAX, items: RECEIVED_SUMMARY },
  next: UUID_OR_NULL,
})

export type ReceivedSearch = FromSchema<typeof RECEIVED_SEARCH>

/** A mailbox of a received mail. */
interface Person {
  readonly address: string
  readonly name: string | null
}

/** Type of `AUTHENTICATION`. */
export interface AuthenticationShown {
  readonly spf: SpfVerdict
  readonly spfHelo: SpfVerdict
  readonly dkim: DkimVerdict
  readonly dmarc: DkimVerdict
  readonly dmarcPolicy: DmarcPolicy | null
  readonly arc: ArcVerdict
  readonly checkedAt: string | null
}

/** Type of `RECEIVED_SUMMARY`. */
export interface ReceivedSummary {
  readonly inboundMessageId: string
  readonly streamId: string
  readonly receivedAt: string
  readonly envelopeRecipient: string
  readonly mailboxHash: string | null
  readonly sizeBytes: number
  readonly attachmentCount: number
  readonly hasText: boolean
  readonly hasHtml: boolean
  readonly authentication: AuthenticationShown
  readonly parseIssue: ParseIssue | null
  readonly contentAvailable: boolean
  readonly contentExpiresAt: string
  readonly from: Person | null
  readonly subject: string | null
  readonly date: string | null
}

/** Type of `RECEIVED_MESSAGE`. */
export interface ReceivedMessage extends ReceivedSummary {
  readonly envelope: { readonly sender: string | null } | null
  readonly replyTo: readonly Person[]
  readonly to: readonly Person[]
  readonly toCount: number
  readonly cc: readonly Person[]
  readonly ccCount: number
  readonly messageIdHeader: string | null
  readonly inReplyTo: string | null
  readonly references: readonly string[]
  readonly headers: readonly { readonly name: string; readonly value: string }[]
  readonly text: string | null
  readonly html: string | null
  readonly attachments: readonly {
    readonly position: number
    readonly name: string | null
    readonly contentType: string
    readonly contentId: string | null
    readonly size: number
    readonly inline: boolean
  }[]
  readonly contentOmitted: 'too_large' | 'expired' | null
}
