/**
 * recipient - the search for the mail of one recipient over all accounts
 *
 * The address comes in the body and is in no answer. Every request is in the audit log.
 *
 * Spec operator.recipients
 */

import type { FromSchema } from 'json-schema-to-ts'
import { PAGE_DEFAULT, PAGE_MAX } from '../limits.ts'
import { RECIPIENT_STATUSES } from '../message.ts'
import { INSTANT, TEXT_OR_NULL, UUID } from '../shape.ts'
import { NOTE } from './audit.ts'

const COUNT = { type: 'integer', minimum: 0 } as const

/** Body of POST /v1/operator/recipients/search. */
export const RECIPIENT_SEARCH = {
  type: 'object',
  properties: {
    recipient: { type: 'string', format: 'address' },
    limit: { type: 'integer', minimum: 1, maximum: PAGE_MAX, default: PAGE_DEFAULT },
    after: {
      type: 'string',
      pattern: '^[0-9A-Fa-f-]{36}(\\.[0-9A-Fa-f-]{36}\\.[0-9A-Fa-f-]{36})?$',
      description: 'the `next` of the page before',
    },
    note: NOTE,
  },
  required: ['recipient'],
  additionalProperties: false,
} as const

const RECIPIENT_MESSAGE = {
  type: 'object',
  properties: {
    accountId: UUID,
    serverId: UUID,
    streamId: UUID,
    messageId: UUID,
    recipientIndex: { ...COUNT, description: 'Place among the recipients of the message, from 0' },
    status: { enum: RECIPIENT_STATUSES },
    statusAt: INSTANT,
    submittedAt: INSTANT,
    test: { type: 'boolean' },
  },
  required: [
    'accountId',
    'serverId',
    'streamId',
    'messageId',
    'recipientIndex',
    'status',
    'statusAt',
    'submittedAt',
    'test',
  ],
  additionalProperties: false,
} as const

/** Answer: messages account by account, the newest account first, and the newest message of a server first. */
export const RECIPIENT_MESSAGES = {
  type: 'object',
  properties: {
    messages: { type: 'array', maxItems: PAGE_MAX, items: RECIPIENT_MESSAGE },
    accounts: { ...COUNT, description: 'Accounts that this request has looked at' },
    next: { ...TEXT_OR_NULL, description: 'If not null, there is more, even if `messages` is empty' },
  },
  required: ['messages', 'accounts', 'next'],
  additionalProperties: false,
} as const

export type RecipientMessage = FromSchema<typeof RECIPIENT_MESSAGE>
export type RecipientMessages = FromSchema<typeof RECIPIENT_MESSAGES>
