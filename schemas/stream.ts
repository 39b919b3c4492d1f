/**
 * stream - the Stream resource, its bodies and its list
 *
 * Spec stream.create, stream.read, stream.patch, stream.list, operator.stream
 */

import type { FromSchema } from 'json-schema-to-ts'
import { PAGE_QUERY } from './domain.ts'
import { CONTENT_RETENTION_DAYS_MAX, NAME_CHARS_MAX, OPERATOR_INTEGER_MAX, PAGE_MAX } from './limits.ts'
import { NOTE } from './operator/audit.ts'
import { INSTANT, INSTANT_OR_NULL, INTEGER_OR_NULL, TEXT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

const STREAM_KINDS = ['transactional', 'broadcast', 'inbound'] as const

const NAME = { type: 'string', minLength: 1, maxLength: NAME_CHARS_MAX } as const

/** Body of POST /v1/streams. */
export const STREAM_BODY = {
  type: 'object',
  properties: { kind: { enum: STREAM_KINDS }, name: NAME },
  required: ['kind', 'name'],
  additionalProperties: false,
} as const

/** Body of PATCH /v1/streams/{id}: any subset. */
export const STREAM_PATCH_BODY = {
  type: 'object',
  properties: {
    name: NAME,
    contentRetentionDays: { type: ['integer', 'null'], minimum: 1, maximum: CONTENT_RETENTION_DAYS_MAX },
  },
  additionalProperties: false,
} as const

/** Query of GET /v1/streams. */
export const STREAM_QUERY = {
  type: 'object',
  properties: { kind: { enum: STREAM_KINDS }, archived: { enum: ['true', 'false'] }, ...PAGE_QUERY.properties },
  additionalProperties: false,
} as const

const STREAM_PROPERTIES = {
  streamId: UUID,
  kind: { enum: STREAM_KINDS },
  name: NAME,
  isDefault: { type: 'boolean' },
  createdAt: INSTANT,
  archivedAt: INSTANT_OR_NULL,
  pausedAt: INSTANT_OR_NULL,
  inboundAddress: TEXT_OR_NULL,
  contentRetentionDays: INTEGER_OR_NULL,
} as const

const STREAM_REQUIRED = [
  'streamId',
  'kind',
  'name',
  'isDefault',
  'createdAt',
  'archivedAt',
  'pausedAt',
  'inboundAddress',
  'contentRetentionDays',
] as const

/** Answer of the routes of one stream. */
export const STREAM = {
  type: 'object',
  properties: STREAM_PROPERTIES,
  required: STREAM_REQUIRED,
  additionalProperties: false,
} as const

/** Answer of GET /v1/streams. */
export const STREAM_LIST = {
  type: 'object',
  properties: { streams: { type: 'array', maxItems: PAGE_MAX, items: STREAM }, next: UUID_OR_NULL },
  required: ['streams', 'next'],
  additionalProperties: false,
} as const

/** Body of PATCH /v1/operator/streams/{streamId}: messages a minute of its broadcasts, null for the default. */
export const STREAM_PACE_BODY = {
  type: 'object',
  properties: {
    pacePerMinute: { type: ['integer', 'null'], minimum: 1, maximum: OPERATOR_INTEGER_MAX },
    note: NOTE,
  },
  required: ['pacePerMinute'],
  additionalProperties: false,
} as const

/** A stream as operators see it. */
export const OPERATED_STREAM = {
  type: 'object',
  properties: { ...STREAM_PROPERTIES, pacePerMinute: INTEGER_OR_NULL },
  required: [...STREAM_REQUIRED, 'pacePerMinute'],
  additionalProperties: false,
} as const

export type StreamBody = FromSchema<typeof STREAM_BODY>

export type StreamPatchBody = FromSchema<typeof STREAM_PATCH_BODY>

export type StreamPaceBody = FromSchema<typeof STREAM_PACE_BODY>

export type Stream = FromSchema<typeof STREAM>
