/**
 * broadcast - the bodies and the resource of broadcasts: one message to many recipients, released at a pace
 *
 * Spec broadcast.body, broadcast.substitutions, broadcast.read
 */

import type { FromSchema } from 'json-schema-to-ts'
import { ADDRESS, EMAIL_BODY } from './email.ts'
import {
  BROADCAST_MESSAGES_MAX,
  PAGE_DEFAULT,
  PAGE_MAX,
  SUBSTITUTION_CHARS_MAX,
  SUBSTITUTION_NAME_CHARS_MAX,
  SUBSTITUTIONS_MAX,
} from './limits.ts'
import { INSTANT, INSTANT_OR_NULL, PRINTABLE, TEXT_MAP, TEXT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

export const BROADCAST_STATUSES = ['accepted', 'processing', 'completed', 'cancelled'] as const
export type BroadcastStatus = (typeof BROADCAST_STATUSES)[number]

const { subject, text, html, headers, attachments, tag, metadata } = EMAIL_BODY.properties

/** One recipient of a broadcast. */
const BROADCAST_MESSAGE = {
  type: 'object',
  properties: {
    to: ADDRESS,
    substitutions: {
      type: 'object',
      maxProperties: SUBSTITUTIONS_MAX,
      propertyNames: {
        type: 'string',
        pattern: `^[A-Za-z0-9_]{1,${SUBSTITUTION_NAME_CHARS_MAX}}$`,
        description: 'letters, digits and underscores',
      },
      additionalProperties: { ...PRINTABLE, maxLength: SUBSTITUTION_CHARS_MAX },
      default: {},
    },
    metadata,
  },
  required: ['to'],
  additionalProperties: false,
} as const

const UNSUBSCRIBE = {
  enum: ['sender'],
  description:
    'The messages bring their own `List-Unsubscribe` header: headers have placeholders, and the service adds no link',
} as const
const CONTENT = {
  streamId: UUID,
  from: ADDRESS,
  subject,
  text,
  html,
  headers,
  attachments,
  tag,
  metadata,
  unsubscribe: UNSUBSCRIBE,
  sendAt: {
    ...INSTANT,
    description: 'When the release begins, with an offset: at most 27 days ahead, 6 on a test server',
  },
} as const
const MESSAGES = { type: 'array', minItems: 1, maxItems: BROADCAST_MESSAGES_MAX, items: BROADCAST_MESSAGE } as const
const NEEDED = ['streamId', 'from', 'subject', 'messages'] as const

/** Body of POST /v1/broadcasts. */
export const BROADCAST_BODY = {
  type: 'object',
  properties: { ...CONTENT, messages: MESSAGES },
  required: NEEDED,
  anyOf: [{ required: ['text'] }, { required: ['html'] }],
  additionalProperties: false,
} as const

/** Body of POST /v1/broadcasts/preview, which is the same with the index of the message to show. */
export const BROADCAST_PREVIEW_BODY = {
  ...BROADCAST_BODY,
  properties: {
    ...BROADCAST_BODY.properties,
    index: { type: 'integer', minimum: 0, maximum: BROADCAST_MESSAGES_MAX - 1, default: 0, examples: [0] },
  },
} as const

/** Answer of POST /v1/broadcasts/preview. */
export const BROADCAST_PREVIEW = {
  type: 'object',
  properties: {
    index: { type: 'integer', minimum: 0 },
    from: { type: 'string' },
    to: { type: 'string' },
    subject: { type: 'string' },
    text: TEXT_OR_NULL,
    html: TEXT_OR_NULL,
    sizeBytes: { type: 'integer', minimum: 0 },
  },
  required: ['index', 'from', 'to', 'subject', 'text', 'html', 'sizeBytes'],
  additionalProperties: false,
} as const

/** Answers about one broadcast. */
export const BROADCAST = {
  type: 'object',
  properties: {
    broadcastId: UUID,
    streamId: UUID,
    status: { enum: BROADCAST_STATUSES },
    pausedAt: INSTANT_OR_NULL,
    from: { type: 'string' },
    subject: TEXT_OR_NULL,
    tag: TEXT_OR_NULL,
    metadata: TEXT_MAP,
    total: { type: 'integer', minimum: 0 },
    released: { type: 'integer', minimum: 0 },
    failed: { type: 'integer', minimum: 0 },
    suppressed: { type: 'integer', minimum: 0 },
    submittedAt: INSTANT,
    sendAt: INSTANT_OR_NULL,
    completedAt: INSTANT_OR_NULL,
  },
  required: [
    'broadcastId',
    'streamId',
    'status',
    'pausedAt',
    'from',
    'subject',
    'tag',
    'metadata',
    'total',
    'released',
    'failed',
    'suppressed',
    'submittedAt',
    'sendAt',
    'completedAt',
  ],
  additionalProperties: false,
} as const

/** Answer of GET /v1/broadcasts. */
export const BROADCAST_LIST = {
  type: 'object',
  properties: { broadcasts: { type: 'array', maxItems: PAGE_MAX, items: BROADCAST }, next: UUID_OR_NULL },
  required: ['broadcasts', 'next'],
  additionalProperties: false,
} as const

/** Query of GET /v1/broadcasts. */
export const BROADCAST_QUERY = {
  type: 'object',
  properties: {
    streamId: UUID,
    status: { enum: BROADCAST_STATUSES },
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: UUID,
  },
  additionalProperties: false,
} as const

/** The body as validated, defaults filled in. */
export type BroadcastBody = FromSchema<Omit<typeof BROADCAST_BODY, 'anyOf'>, { parseIfThenElseKeywords: true }>
export type BroadcastMessage = BroadcastBody['messages'][number]
export type BroadcastPreviewBody = BroadcastBody & { readonly index: number }
export type Broadcast = FromSchema<typeof BROADCAST>
export type BroadcastPreview = FromSchema<typeof BROADCAST_PREVIEW>
