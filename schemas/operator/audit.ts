/**
 * audit - the list of the actions of operators
 *
 * Spec operator.audit
 */

import type { FromSchema } from 'json-schema-to-ts'

import { NOTE_CHARS_MAX, PAGE_MAX } from '../limits.ts'
import { INSTANT, TEXT_MAP, TEXT_OR_NULL, UUID, UUID_OR_NULL } from '../shape.ts'

/** The note that every write of an operator may carry. */
export const NOTE = { type: 'string', minLength: 1, maxLength: NOTE_CHARS_MAX } as const

/** Body of an operator's write that takes nothing but a note. */
export const NOTE_BODY = { type: 'object', properties: { note: NOTE }, additionalProperties: false } as const

const FIELDS_OR_NULL = { type: ['object', 'null'] } as const

const AUDIT_ENTRY = {
  type: 'object',
  properties: {
    auditId: UUID,
    at: INSTANT,
    actor: UUID_OR_NULL,
    actorName: { ...TEXT_OR_NULL, description: "Name of the operator's key; null: no key, or one that is unknown" },
    act: { type: 'string' },
    targets: TEXT_MAP,
    note: TEXT_OR_NULL,
    before: FIELDS_OR_NULL,
    after: FIELDS_OR_NULL,
  },
  required: ['auditId', 'at', 'actor', 'actorName', 'act', 'targets', 'note', 'before', 'after'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/audit. */
export const AUDIT_LIST = {
  type: 'object',
  properties: { entries: { type: 'array', maxItems: PAGE_MAX, items: AUDIT_ENTRY }, next: UUID_OR_NULL },
  required: ['entries', 'next'],
  additionalProperties: false,
} as const

export type AuditEntry = FromSchema<typeof AUDIT_ENTRY>

export type AuditList = FromSchema<typeof AUDIT_LIST>
