/**
 * content - the content of a message for a member, on a separate route, because each read is recorded
 *
 * Spec member.content, member.test-message, member.send-again
 */

import type { FromSchema } from 'json-schema-to-ts'
import { ADDRESS_CHARS_MAX, RECIPIENTS_MAX, SUBJECT_CHARS_MAX } from '../limits.ts'
import { strictObject, TEXT_OR_NULL } from '../shape.ts'

/** Answer of GET /dashboard/api/servers/{serverId}/messages/{id}/content. */
export const MESSAGE_CONTENT = strictObject({
  text: TEXT_OR_NULL,
  html: TEXT_OR_NULL,
  /** URLs of the HTML's links in order, each once, because links inside the frame do nothing. */
  links: { type: 'array', maxItems: 500, items: { type: 'string' } },
})

/** Body of POST /dashboard/api/servers/{serverId}/test-message; the answer is that of POST /v1/email. */
export const TEST_MESSAGE_BODY = {
  type: 'object',
  properties: {
    from: { type: 'string', format: 'address' },
    to: { type: 'string', format: 'address' },
    subject: { type: 'string', minLength: 1, maxLength: SUBJECT_CHARS_MAX },
    text: { type: 'string', minLength: 1 },
    html: { type: 'string', minLength: 1 },
  },
  required: ['from', 'to', 'subject'],
  anyOf: [{ required: ['text'] }, { required: ['html'] }],
  additionalProperties: false,
} as const

/**
 * Body of POST /dashboard/api/servers/{serverId}/messages/{id}/send-again: the recipients of the message that get it
 * again, spelled as the message has them. There is no default: a caller that forgets them sends to no one.
 */
export const SEND_AGAIN_BODY = {
  type: 'object',
  properties: {
    recipients: {
      type: 'array',
      minItems: 1,
      maxItems: RECIPIENTS_MAX,
      items: { type: 'string', maxLength: ADDRESS_CHARS_MAX },
    },
  },
  required: ['recipients'],
  additionalProperties: false,
} as const

export type MessageContent = FromSchema<typeof MESSAGE_CONTENT>
