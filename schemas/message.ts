/**
 * message - the Message resource as GET /v1/messages/{id} answers it, its summary, and the search for it
 *
 * Spec message.search, message.summary, message.recipient, message.read, event.catalogue
 */

import type { FromSchema } from 'json-schema-to-ts'

import {
  ADDRESS_CHARS_MAX,
  METADATA_KEY_CHARS_MAX,
  METADATA_VALUE_CHARS_MAX,
  PAGE_DEFAULT,
  PAGE_MAX,
  SUBJECT_CHARS_MAX,
  TAG_CHARS_MAX,
  WAIT_SECONDS_MAX,
} from './limits.ts'
import {
  INSTANT,
  INSTANT_OR_NULL,
  INTEGER_OR_NULL,
  PRINTABLE,
  strictObject,
  TEXT_MAP,
  TEXT_OR_NULL,
  UUID,
  UUID_OR_NULL,
} from './shape.ts'

/** Spec message.states */
export const RECIPIENT_STATUSES = [
  'accepted',
  'scheduled',
  'suppressed',
  'deferred',
  'delivered',
  'bounced',
  'cancelled',
  'failed',
] as const

/** Spec event.catalogue: events in a message's log. */
export const MESSAGE_EVENTS = ['delivered', 'bounced', 'deferred', 'spam_complaint', 'unsubscribed'] as const

export const RECIPIENT_ENTRY = {
  type: 'object',
  properties: {
    recipient: { type: 'string' },
    name: TEXT_OR_NULL,
    kind: { enum: ['to', 'cc', 'bcc'] },
    status: { enum: RECIPIENT_STATUSES },
    statusAt: INSTANT,
    attempts: { type: 'integer', minimum: 0 },
    nextAttemptAt: INSTANT_OR_NULL,
    code: INTEGER_OR_NULL,
    response: TEXT_OR_NULL,
    complainedAt: INSTANT_OR_NULL,
    unsubscribedAt: INSTANT_OR_NULL,
  },
  required: [
    'recipient',
    'name',
    'kind',
    'status',
    'statusAt',
    'attempts',
    'nextAttemptAt',
    'code',
    'response',
    'complainedAt',
    'unsubscribedAt',
  ],
  additionalProperties: false,
} as const

const SMTP_DETAILS = { code: INTEGER_OR_NULL, response: TEXT_OR_NULL } as const

const MS_OR_NULL = { type: ['integer', 'null'], minimum: 0 } as const

/** Spec message.route */
export const ATTEMPT_ROUTE = {
  ...strictObject({
    host: { type: 'string', description: 'Name of the mail server that the attempt ended at' },
    address: { ...TEXT_OR_NULL, description: 'Its IP address; null if none was connected to' },
    sourceAddress: { ...TEXT_OR_NULL, description: 'Local IP address of the connection; null without a session' },
    tlsVersion: { ...TEXT_OR_NULL, description: 'TLS version, such as TLSv1.3; null in plaintext' },
    cipher: { ...TEXT_OR_NULL, description: 'Cipher suite; null in plaintext' },
    certificateVerified: { type: 'boolean', description: 'Whether the certificate is valid for the host' },
    mtaSts: { enum: ['enforce', 'testing', null], description: 'Mode of the MTA-STS policy; null if there is none' },
    dane: {
      enum: ['verified', 'encrypted', 'failed', null],
      description:
        'Result of the check against the TLSA records of the mail server (DANE): `encrypted` if none can be used and TLS is required; null if it has none or `DNSSEC` is off',
    },
    connectionReused: { type: 'boolean', description: 'Whether an earlier message had opened the connection' },
    dnsMs: { ...MS_OR_NULL, description: 'Milliseconds of the DNS and MTA-STS lookups' },
    connectMs: { ...MS_OR_NULL, description: 'Milliseconds of the TCP connection; null if reused' },
    tlsMs: { ...MS_OR_NULL, description: 'Milliseconds of the TLS handshake; null in plaintext or if reused' },
    transactionMs: { ...MS_OR_NULL, description: 'Milliseconds from MAIL to the last reply' },
  }),
  description: 'Route of one delivery attempt',
} as const

export const ROUTE_OR_NULL = { anyOf: [ATTEMPT_ROUTE, { type: 'null' }] } as const

/** Spec event.catalogue: one event of a message with the details of its kind. */
export const MESSAGE_EVENT = {
  type: 'object',
  properties: {
    event: { enum: MESSAGE_EVENTS },
    recipient: { type: 'string' },
    occurredAt: INSTANT,
    route: {
      ...ROUTE_OR_NULL,
      description: 'Route of the attempt that caused the event; null if no mail server was tried',
    },
    details: {
      type: 'object',
      properties: {
        ...SMTP_DETAILS,
        classification: TEXT_OR_NULL,
        hard: { type: 'boolean' },
        expired: { type: 'boolean' },
        feedbackType: TEXT_OR_NULL,
        source: { enum: ['link', 'one_click'] },
      },
      additionalProperties: false,
    },
  },
  required: ['event', 'recipient', 'occurredAt', 'route', 'details'],
  additionalProperties: false,
} as const

const SUMMARY_PROPERTIES = {
  messageId: UUID,
  streamId: UUID,
  broadcastId: UUID_OR_NULL,
  source: { enum: ['api', 'smtp', 'broadcast'] },
  status: { enum: [...RECIPIENT_STATUSES, 'mixed'] },
  test: { type: 'boolean' },
  from: {
    type: 'object',
    properties: { email: { type: 'string' }, name: TEXT_OR_NULL },
    required: ['email', 'name'],
    additionalProperties: false,
  },
  subject: TEXT_OR_NULL,
  tag: TEXT_OR_NULL,
  metadata: TEXT_MAP,
  submittedAt: INSTANT,
  sendAt: INSTANT_OR_NULL,
  sizeBytes: INTEGER_OR_NULL,
  attachmentCount: { type: 'integer', minimum: 0 },
  recipients: { type: 'array', items: RECIPIENT_ENTRY },
  contentAvailable: { type: 'boolean' },
  contentExpiresAt: INSTANT,
} as const

const SUMMARY_REQUIRED = [
  'messageId',
  'streamId',
  'broadcastId',
  'source',
  'status',
  'test',
  'from',
  'subject',
  'tag',
  'metadata',
  'submittedAt',
  'sendAt',
  'sizeBytes',
  'attachmentCount',
  'recipients',
  'contentAvailable',
  'contentExpiresAt',
] as const

export const MESSAGE_SUMMARY = {
  type: 'object',
  properties: SUMMARY_PROPERTIES,
  required: SUMMARY_REQUIRED,
  additionalProperties: false,
} as const

/** Spec message.links */
const MESSAGE_LINK = {
  type: 'object',
  properties: {
    part: { enum: ['html', 'text'], description: 'The part of the message that has the link' },
    href: { type: 'string', description: 'Where the link leads' },
    text: { ...TEXT_OR_NULL, description: 'Its words; null in plain text' },
  },
  required: ['part', 'href', 'text'],
  additionalProperties: false,
} as const
const MESSAGE_IMAGE = {
  type: 'object',
  properties: {
    src: { type: 'string', description: 'Address of the image' },
    alt: { ...TEXT_OR_NULL, description: 'Its alternative text; null if it has none' },
  },
  required: ['src', 'alt'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/messages/{id}. */
export const MESSAGE = {
  type: 'object',
  properties: {
    ...SUMMARY_PROPERTIES,
    messageIdHeader: { type: 'string' },
    headers: TEXT_MAP,
    text: TEXT_OR_NULL,
    html: TEXT_OR_NULL,
    attachments: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          contentType: { type: 'string' },
          contentId: TEXT_OR_NULL,
          size: { type: 'integer', minimum: 0 },
          inline: { type: 'boolean' },
        },
        required: ['name', 'contentType', 'contentId', 'size', 'inline'],
        additionalProperties: false,
      },
    },
    links: { type: 'array', items: MESSAGE_LINK },
    images: { type: 'array', items: MESSAGE_IMAGE },
    events: { type: 'array', items: MESSAGE_EVENT },
  },
  required: [
    ...SUMMARY_REQUIRED,
    'messageIdHeader',
    'headers',
    'text',
    'html',
    'attachments',
    'links',
    'images',
    'events',
  ],
  additionalProperties: false,
} as const

/** Body of PATCH /v1/messages/{id}. Spec message.reschedule */
export const MESSAGE_PATCH = {
  type: 'object',
  properties: {
    sendAt: {
      ...INSTANT,
      description: 'When to send the message: at most 27 days after it was accepted, 6 on a test server',
    },
  },
  required: ['sendAt'],
  additionalProperties: false,
} as const

/** A filter by metadata, with exactly one entry. */
export const METADATA_ENTRY = {
  type: 'object',
  minProperties: 1,
  maxProperties: 1,
  propertyNames: { ...PRINTABLE, minLength: 1, maxLength: METADATA_KEY_CHARS_MAX },
  additionalProperties: { ...PRINTABLE, maxLength: METADATA_VALUE_CHARS_MAX },
} as const

/** Longest name of a receiving site, which is a domain, and of a class. */
const SITE_CHARS_MAX = 255
const CLASS_CHARS_MAX = 100

/** The filters of messages; every given one must match. */
export const MESSAGE_FILTERS = {
  streamId: UUID,
  broadcastId: UUID,
  recipient: { type: 'string', format: 'address' },
  recipientContains: {
    ...PRINTABLE,
    minLength: 1,
    maxLength: ADDRESS_CHARS_MAX,
    description: 'Text in the address or the name of a recipient, in any case',
    examples: ['@gmail.com'],
  },
  from: { type: 'string', format: 'address' },
  tag: { ...PRINTABLE, minLength: 1, maxLength: TAG_CHARS_MAX },
  metadata: METADATA_ENTRY,
  subject: {
    ...PRINTABLE,
    minLength: 1,
    maxLength: SUBJECT_CHARS_MAX,
    description: 'Words that the subject contains, in any order, while the content of the message is stored',
  },
  status: { enum: [...RECIPIENT_STATUSES, 'mixed'] },
  event: { enum: MESSAGE_EVENTS, description: 'A recipient has had this event' },
  site: {
    ...PRINTABLE,
    minLength: 1,
    maxLength: SITE_CHARS_MAX,
    description: 'Receiving site of a recipient, as statistics name it: `google` or a domain',
    examples: ['google'],
  },
  classification: {
    ...PRINTABLE,
    minLength: 1,
    maxLength: CLASS_CHARS_MAX,
    description: 'Class of the bounce of a recipient',
    examples: ['SpamBlock'],
  },
  source: { enum: ['api', 'smtp', 'broadcast'] },
  submittedFrom: INSTANT,
  submittedTo: INSTANT,
} as const

/** Body of POST /v1/messages/search. */
export const MESSAGE_SEARCH = {
  type: 'object',
  properties: {
    ...MESSAGE_FILTERS,
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: UUID,
    waitSeconds: {
      type: 'integer',
      minimum: 0,
      maximum: WAIT_SECONDS_MAX,
      description: 'Seconds to wait until something matches; the page is empty if nothing does. Not with `after`',
    },
  },
  additionalProperties: false,
} as const

/** Answer of POST /v1/messages/search. */
export const MESSAGE_LIST = {
  type: 'object',
  properties: { messages: { type: 'array', maxItems: PAGE_MAX, items: MESSAGE_SUMMARY }, next: UUID_OR_NULL },
  required: ['messages', 'next'],
  additionalProperties: false,
} as const

export type MessageSearch = FromSchema<typeof MESSAGE_SEARCH>

export type RecipientEntry = FromSchema<typeof RECIPIENT_ENTRY>

export type MessageEvent = FromSchema<typeof MESSAGE_EVENT>

export type MessageSummary = FromSchema<typeof MESSAGE_SUMMARY>

export type Message = FromSchema<typeof MESSAGE>
