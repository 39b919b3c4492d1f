/**
 * message - a message as an operator finds it by its id: the status of each recipient, and its queued work
 *
 * Without text, subject and addresses unless they are revealed, which is in the audit log.
 *
 * Spec operator.message
 */

import type { FromSchema } from 'json-schema-to-ts'

import { MESSAGE, RECIPIENT_STATUSES, ROUTE_OR_NULL } from '../message.ts'
import { INSTANT, INSTANT_OR_NULL, INTEGER_OR_NULL, TEXT_OR_NULL, UUID, UUID_OR_NULL } from '../shape.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

const FOUND_EVENT = {
  type: 'object',
  properties: {
    event: { type: 'string' },
    occurredAt: INSTANT,
    code: INTEGER_OR_NULL,
    response: TEXT_OR_NULL,
    classification: TEXT_OR_NULL,
    route: ROUTE_OR_NULL,
  },
  required: ['event', 'occurredAt', 'code', 'response', 'classification', 'route'],
  additionalProperties: false,
} as const

const FOUND_RECIPIENT = {
  type: 'object',
  properties: {
    /** Place among the recipients, from 0, as the log names it. */
    index: COUNT,
    kind: { enum: ['to', 'cc', 'bcc'] },
    status: { enum: RECIPIENT_STATUSES },
    statusAt: INSTANT,
    attempts: COUNT,
    nextAttemptAt: INSTANT_OR_NULL,
    code: INTEGER_OR_NULL,
    /** The last answer of a server, with the address left out. */
    response: TEXT_OR_NULL,
    /** Name of its work in its lane. */
    item: { type: 'string' },
    /** The lane of its work; null if nothing is left to do, or it is held. */
    lane: TEXT_OR_NULL,
    /** When its turn comes; of work in progress, when its claim ends. */
    dueAt: INSTANT_OR_NULL,
    /** The process that is at it. */
    worker: TEXT_OR_NULL,
    /** The reason if it is held, because its account is paused, or an operator holds its destination. */
    heldBy: { enum: ['account', 'destination', null] },
    events: { type: 'array', items: FOUND_EVENT },
  },
  required: [
    'index',
    'kind',
    'status',
    'statusAt',
    'attempts',
    'nextAttemptAt',
    'code',
    'response',
    'item',
    'lane',
    'dueAt',
    'worker',
    'heldBy',
    'events',
  ],
  additionalProperties: false,
} as const

/** Answer of GET /v1/operator/messages/{id} and of POST /v1/operator/messages/{id}/reveal. */
export const FOUND_MESSAGE = {
  type: 'object',
  properties: {
    messageId: UUID,
    shard: COUNT,
    accountId: UUID,
    serverId: UUID,
    streamId: UUID,
    broadcastId: UUID_OR_NULL,
    source: { enum: ['api', 'smtp', 'broadcast'] },
    status: { enum: [...RECIPIENT_STATUSES, 'mixed'] },
    test: { type: 'boolean' },
    submittedAt: INSTANT,
    sizeBytes: INTEGER_OR_NULL,
    attachmentCount: COUNT,
    recipients: { type: 'array', items: FOUND_RECIPIENT },
    /** The object in the content store with its rows, and how often it was written; null: they are in Redis. */
    sealedObject: TEXT_OR_NULL,
    sealedGeneration: INTEGER_OR_NULL,
    /** The reads of Redis behind it, as commands of redis-cli. */
    reads: { type: 'array', items: { type: 'string' } },
    /** The message as its server sees it; null unless it is revealed. */
    revealed: { anyOf: [MESSAGE, { type: 'null' }] },
  },
  required: [
    'messageId',
    'shard',
    'accountId',
    'serverId',
    'streamId',
    'broadcastId',
    'source',
    'status',
    'test',
    'submittedAt',
    'sizeBytes',
    'attachmentCount',
    'recipients',
    'sealedObject',
    'sealedGeneration',
    'reads',
    'revealed',
  ],
  additionalProperties: false,
} as const

export type FoundMessage = FromSchema<typeof FOUND_MESSAGE>
