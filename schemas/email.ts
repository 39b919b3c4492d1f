/**
 * email - the bodies and the answers of POST /v1/email and POST /v1/email/batch
 *
 * Lengths are counted in Unicode code points. `recipientsMax` is our own keyword, the number of entries of to, cc and
 * bcc together.
 *
 * Spec batch.all, send.address, send.recipients.max, send.subject, send.body, send.headers, send.attachments, send.tag,
 * send.metadata
 */

import type { FromSchema } from 'json-schema-to-ts'

import { makeErrorBranch } from './error.ts'
import {
  ADDRESS_NAME_CHARS_MAX,
  ATTACHMENT_NAME_CHARS_MAX,
  ATTACHMENTS_MAX,
  BATCH_MESSAGES_MAX,
  CONTENT_ID_CHARS_MAX,
  HEADER_VALUE_CHARS_MAX,
  HEADERS_MAX,
  METADATA_KEY_CHARS_MAX,
  METADATA_MAX,
  METADATA_VALUE_CHARS_MAX,
  RECIPIENTS_MAX,
  SUBJECT_CHARS_MAX,
  TAG_CHARS_MAX,
} from './limits.ts'
import { REFUSALS, type RefusalCode } from './refusals.ts'
import { INSTANT, PRINTABLE, UUID } from './shape.ts'

/** Spec send.address: an address alone, or with a name. */
export const ADDRESS = {
  if: { type: 'string' },
  // biome-ignore lint/suspicious/noThenProperty: `then` is the JSON Schema keyword.
  then: { type: 'string', format: 'address' },
  else: {
    type: 'object',
    properties: {
      email: { type: 'string', format: 'address' },
      name: { type: ['string', 'null'], minLength: 1, maxLength: ADDRESS_NAME_CHARS_MAX, default: null },
    },
    required: ['email'],
    additionalProperties: false,
  },
} as const

/** Spec send.attachments */
export const ATTACHMENT = {
  type: 'object',
  properties: {
    name: {
      type: 'string',
      minLength: 1,
      maxLength: ATTACHMENT_NAME_CHARS_MAX,
      pattern: '^[^/\\\\\\u0000-\\u001f\\u007f-\\u009f]*$',
      description: 'a file name without control characters, slash or backslash',
    },
    content: { type: 'string', format: 'base64' },
    contentType: {
      type: 'string',
      maxLength: 255,
      pattern: '^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$',
      description: 'a media type in lower case, type/subtype',
    },
    contentId: {
      type: ['string', 'null'],
      minLength: 1,
      maxLength: CONTENT_ID_CHARS_MAX,
      pattern: '^[^\\s<>\\u0000-\\u001f\\u007f-\\u009f]*$',
      description: 'a content id without white space, angle brackets or control characters',
      default: null,
    },
  },
  required: ['name', 'content'],
  additionalProperties: false,
} as const

/** Body of POST /v1/email. */
export const EMAIL_BODY = {
  type: 'object',
  properties: {
    from: ADDRESS,
    streamId: UUID,
    to: { type: 'array', minItems: 1, maxItems: RECIPIENTS_MAX, items: ADDRESS },
    cc: { type: 'array', maxItems: RECIPIENTS_MAX, items: ADDRESS },
    bcc: { type: 'array', maxItems: RECIPIENTS_MAX, items: ADDRESS },
    subject: { type: 'string', minLength: 1, maxLength: SUBJECT_CHARS_MAX },
    text: { type: 'string', minLength: 1 },
    html: { type: 'string', minLength: 1 },
    headers: {
      type: 'object',
      maxProperties: HEADERS_MAX,
      propertyNames: { type: 'string', format: 'header-name' },
      additionalProperties: { ...PRINTABLE, minLength: 1, maxLength: HEADER_VALUE_CHARS_MAX },
      default: {},
    },
    attachments: { type: 'array', maxItems: ATTACHMENTS_MAX, items: ATTACHMENT },
    sendAt: {
      ...INSTANT,
      description: 'When the message is sent, with an offset: at most 27 days ahead, 6 on a test server',
    },
    tag: { ...PRINTABLE, type: ['string', 'null'], minLength: 1, maxLength: TAG_CHARS_MAX, default: null },
    metadata: {
      type: 'object',
      maxProperties: METADATA_MAX,
      propertyNames: { ...PRINTABLE, minLength: 1, maxLength: METADATA_KEY_CHARS_MAX },
      additionalProperties: { ...PRINTABLE, maxLength: METADATA_VALUE_CHARS_MAX },
      default: {},
    },
  },
  required: ['from', 'to', 'subject'],
  anyOf: [{ required: ['text'] }, { required: ['html'] }],
  recipientsMax: RECIPIENTS_MAX,
  additionalProperties: false,
} as const

/** Answer of POST /v1/email. */
export const EMAIL_ANSWER = {
  type: 'object',
  properties: {
    messageId: UUID,
    status: { const: 'accepted' },
    submittedAt: INSTANT,
    test: { type: 'boolean' },
  },
  required: ['messageId', 'status', 'submittedAt', 'test'],
  additionalProperties: false,
} as const

const BATCH_LIST = { type: 'array', minItems: 1, maxItems: BATCH_MESSAGES_MAX } as const

/** Body of POST /v1/email/batch. A partial batch is checked message by message, so that one bad message fails alone. */
export const BATCH_BODY = {
  type: 'object',
  if: { properties: { partial: { const: true } }, required: ['partial'] },
  // biome-ignore lint/suspicious/noThenProperty: `then` is the JSON Schema keyword.
  then: {
    type: 'object',
    properties: {
      messages: { ...BATCH_LIST, items: { description: 'A message as in POST /v1/email, checked on its own' } },
      partial: { const: true },
    },
    required: ['messages', 'partial'],
    additionalProperties: false,
  },
  else: {
    type: 'object',
    properties: { messages: { ...BATCH_LIST, items: EMAIL_BODY }, partial: { const: false } },
    required: ['messages'],
    additionalProperties: false,
  },
} as const

/** Codes that one message of a partial batch may be refused with. Spec batch.partial */
const MESSAGE_REFUSAL_CODES: readonly RefusalCode[] = [
  'invalid_request',
  'stream_not_found',
  'stream_kind_not_allowed',
  'domain_not_verified',
  'message_too_large',
  'stream_archived',
  'stream_paused',
  'rate_limited',
  'cap_reached',
  'scheduled_limit',
]

/** A message of a partial batch that was refused. Spec batch.partial */
export const MESSAGE_REFUSAL = {
  anyOf: REFUSALS.filter(({ code }) => MESSAGE_REFUSAL_CODES.includes(code)).map(makeErrorBranch),
}

/**
 * Answer of POST /v1/email/batch, with one entry for each message, in the order of the request; only a partial batch
 * can have refusals.
 */
export const BATCH_ANSWER = {
  type: 'object',
  properties: { messages: { ...BATCH_LIST, items: { anyOf: [EMAIL_ANSWER, MESSAGE_REFUSAL] } } },
  required: ['messages'],
  additionalProperties: false,
} as const

/** The body as validated, defaults filled in. (`anyOf` only means that one of two optional fields exists.) */
export type EmailBody = FromSchema<
  Omit<typeof EMAIL_BODY, 'anyOf' | 'recipientsMax'>,
  { parseIfThenElseKeywords: true }
>

/** The body as validated; the messages of a partial batch are still unchecked. */
export type BatchBody =
  | { readonly partial?: false; readonly messages: readonly EmailBody[] }
  | { readonly partial: true; readonly messages: readonly unknown[] }

export type EmailAnswer = FromSchema<typeof EMAIL_ANSWER>

/** Spec send.headers: names in lower case that a message may not set. */
export const REFUSED_HEADER_NAMES: readonly string[] = [
  'from',
  'sender',
  'to',
  'cc',
  'bcc',
  'subject',
  'date',
  'message-id',
  'mime-version',
  'return-path',
  'received',
  'delivered-to',
  'dkim-signature',
  'domainkey-signature',
  'authentication-results',
  'received-spf',
]

/** Spec send.headers: beginnings of names, in lower case, that a message may not set. */
export const REFUSED_HEADER_PREFIXES: readonly string[] = ['content-', 'resent-', 'arc-', 'x-sendwright-']
