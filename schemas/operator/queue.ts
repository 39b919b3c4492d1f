/**
 * queue - pending recipients by destination, as the operator sees and orders them
 *
 * Spec queue.list, queue.order
 */

import type { FromSchema } from 'json-schema-to-ts'
import { DOMAIN_CHARS_MAX, PAGE_DEFAULT, PAGE_MAX } from '../limits.ts'
import { INSTANT, INSTANT_OR_NULL, INTEGER_OR_NULL, TEXT_OR_NULL, UUID } from '../shape.ts'
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

/** Why a recipient waits. */
export const QUEUED_WHY = ['held', 'scheduled', 'deferred', 'due'] as const

const QUEUED_MESSAGE = {
  type: 'object',
  properties: {
    messageId: UUID,
    serverId: UUID,
    recipientIndex: { ...COUNT, description: 'Place among the recipients of the message, from 0' },
    why: {
      enum: QUEUED_WHY,
      description:
        'held: by an order; scheduled: sendAt has not come; deferred: until the next attempt; due: for a place at its site, or in an attempt',
    },
    attempts: COUNT,
    dueAt: INSTANT,
    lastCode: INTEGER_OR_NULL,
    lastResponse: TEXT_OR_NULL,
  },
  required: ['messageId', 'serverId', 'recipientIndex', 'why', 'attempts', 'dueAt', 'lastCode', 'lastResponse'],
  additionalProperties: false,
} as const

/** Query of GET /v1/operator/queue/messages. */
export const QUEUED_MESSAGES_QUERY = {
  type: 'object',
  properties: {
    domain: {
      type: 'string',
      minLength: 1,
      maxLength: DOMAIN_CHARS_MAX,
      description: "the recipients' domain, or `relay`",
    },
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
  },
  required: ['domain'],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/queue/messages. */
export const QUEUED_MESSAGES = {
  type: 'object',
  properties: { messages: { type: 'array', maxItems: PAGE_MAX, items: QUEUED_MESSAGE } },
  required: ['messages'],
  additionalProperties: false,
} as const

const QUEUE_ACCOUNT = {
  type: 'object',
  properties: {
    accountId: UUID,
    waiting: { ...COUNT, description: 'Pending recipients, deferred and scheduled ones included' },
    deferred: COUNT,
    scheduled: COUNT,
    oldestAt: INSTANT,
  },
  required: ['accountId', 'waiting', 'deferred', 'scheduled', 'oldestAt'],
  additionalProperties: false,
} as const

/** Query of GET /v1/operator/queue/accounts. */
export const QUEUE_ACCOUNTS_QUERY = {
  type: 'object',
  properties: {
    domain: {
      type: 'string',
      minLength: 1,
      maxLength: DOMAIN_CHARS_MAX,
      description: "only this recipients' domain, or `relay`",
    },
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
  },
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/queue/accounts. */
export const QUEUE_ACCOUNTS = {
  type: 'object',
  properties: {
    accounts: { type: 'array', maxItems: PAGE_MAX, items: QUEUE_ACCOUNT },
    isComplete: { type: 'boolean', description: 'False: the queue is longer than the 20,000 recipients counted' },
  },
  required: ['accounts', 'isComplete'],
  additionalProperties: false,
} as const

export type QueueAccounts = FromSchema<typeof QUEUE_ACCOUNTS>
export type QueuedMessage = FromSchema<typeof QUEUED_MESSAGE>
export type QueuedMessages = FromSchema<typeof QUEUED_MESSAGES>
export type QueueBody = FromSchema<typeof QUEUE_BODY>
export type Destination = FromSchema<typeof DESTINATION>
export type QueueOrdered = FromSchema<typeof QUEUE_ORDERED>
export type Queue = FromSchema<typeof QUEUE>
