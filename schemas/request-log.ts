/**
 * request-log - recent requests, as a client finds them by their Request-Id
 *
 * Spec request.log
 */

import type { FromSchema } from 'json-schema-to-ts'

import { PAGE_DEFAULT, PAGE_MAX } from './limits.ts'
import { INSTANT, strictObject, TEXT_OR_NULL, UUID, UUID_OR_NULL } from './shape.ts'

const TEXT = { type: 'string' } as const

/** Whether a request was refused (4xx, 5xx) or not. */
const REQUEST_RESULTS = ['answered', 'refused'] as const

/** One request, without its body and addresses. */
export const REQUEST_ENTRY = strictObject({
  requestId: UUID,
  receivedAt: INSTANT,
  /** Server of the key; null for an account key. */
  serverId: UUID_OR_NULL,
  method: TEXT,
  /** Path of the route with the names of its parameters; null if there is no route. */
  path: TEXT_OR_NULL,
  status: { type: 'integer', minimum: 100, maximum: 599 },
  /** Code of the refusal. */
  error: TEXT_OR_NULL,
  /** Path of the first issue of a 400. */
  issue: TEXT_OR_NULL,
  prefix: TEXT,
  /** From the first byte to the answer. */
  milliseconds: { type: 'integer', minimum: 0 },
  client: TEXT_OR_NULL,
  userAgent: TEXT_OR_NULL,
  /** Messages that it brought about. */
  messageIds: { type: 'array', items: UUID },
})

/** Body of POST /v1/requests/search. */
export const REQUEST_SEARCH = {
  type: 'object',
  properties: {
    result: { enum: REQUEST_RESULTS },
    status: { type: 'integer', minimum: 100, maximum: 599 },
    error: { type: 'string', minLength: 1, maxLength: 100 },
    messageId: UUID,
    receivedFrom: INSTANT,
    receivedTo: INSTANT,
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: UUID,
  },
  additionalProperties: false,
} as const

export const REQUEST_LIST = strictObject({
  requests: { type: 'array', maxItems: PAGE_MAX, items: REQUEST_ENTRY },
  next: UUID_OR_NULL,
})

export type RequestEntry = FromSchema<typeof REQUEST_ENTRY>
export type RequestList = FromSchema<typeof REQUEST_LIST>
export type RequestSearch = FromSchema<typeof REQUEST_SEARCH>
