/**
 * erasure - the body and the resource of erasures: one person's data, taken out of all servers of an account
 *
 * Spec erasure.create, erasure.read
 */

import type { FromSchema } from 'json-schema-to-ts'
import { INSTANT, INSTANT_OR_NULL, TEXT_OR_NULL, UUID } from './shape.ts'

export const ERASURE_STATUSES = ['pending', 'done'] as const

/** Body of POST /v1/erasures. */
export const ERASURE_BODY = {
  type: 'object',
  properties: { address: { type: 'string', format: 'address' } },
  required: ['address'],
  additionalProperties: false,
} as const

const COUNT_OR_NULL = { type: ['integer', 'null'], minimum: 0 } as const

/** Answers about one erasure. */
export const ERASURE = {
  type: 'object',
  properties: {
    erasureId: UUID,
    status: { enum: ERASURE_STATUSES },
    createdAt: INSTANT,
    completedAt: INSTANT_OR_NULL,
    pseudonym: TEXT_OR_NULL,
    messages: COUNT_OR_NULL,
    receivedMessages: COUNT_OR_NULL,
  },
  required: ['erasureId', 'status', 'createdAt', 'completedAt', 'pseudonym', 'messages', 'receivedMessages'],
  additionalProperties: false,
} as const

export type Erasure = FromSchema<typeof ERASURE>
