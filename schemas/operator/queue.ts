/**
 * queue - what waits to be delivered, by destination, as the operator sees and orders it
 *
 * Spec queue.list, queue.order
 */

import type { FromSchema } from 'json-schema-to-ts'
import { DOMAIN_CHARS_MAX, PAGE_DEFAULT, PAGE_MAX } from '../limits.ts'
import { INSTANT_OR_NULL, INTEGER_OR_NULL, TEXT_OR_NULL } from '../shape.ts'
import { NOTE } from './audit.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

/** Query of GET /v1/operator/queue. */
export const QUEUE_QUERY = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: { type: 'string', pattern: '^[0-9]{1,15}:[^\\s:]{1,253}$', description: 'the `next` of the page before' },
  },
  additionalProperties: false,
} as const

/** Body of the orders. */
export const QUEUE_BODY = {
  type: 'object',
  properties: { domain: { type: 'string', minLength: 1, maxLength: DOMAIN_CHARS_MAX }, note: NOTE },
  required: ['domain'],
  additionalProperties: false,
} as const

/** Response to the orders, with the number of affected recipients, and whether the destination is held now. */
export const QUEUE_ORDERED = {
  type: 'object',
  properties: {
    recipients: COUNT,
    held: { type: 'boolean', description: 'Whether the destination is held after the order' },
  },
  required: ['recipients', 'held'],
  additionalProperties: false,
} as const

export const DESTINATION = {
  type: 'object',
  properties: {
    /** The recipients' domain, or `relay`. */
    domain: { type: 'string' },
    site: TEXT_OR_NULL,
    waiting: COUNT,
    deferred: COUNT,
    held: COUNT,
    oldestAt: INSTANT_OR_NULL,
    lastCode: INTEGER_OR_NULL,
    lastResponse: TEXT_OR_NULL,
  },
  required: ['domain', 'site', 'waiting', 'deferred', 'held', 'oldestAt', 'lastCode', 'lastResponse'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/queue. */
export const QUEUE = {
  type: 'object',
  properties: { destinations: { type: 'array', maxItems: PAGE_MAX, items: DESTINATION }, next: TEXT_OR_NULL },
  required: ['destinations', 'next'],
  additionalProperties: false,
} as const

export type QueueBody = FromSchema<typeof QUEUE_BODY>
export type Destination = FromSchema<typeof DESTINATION>
export type QueueOrdered = FromSchema<typeof QUEUE_ORDERED>
export type Queue = FromSchema<typeof QUEUE>
