/**
 * checks - body and answer of POST /v1/messages/{id}/checks
 *
 * Spec message.checks
 */

import type { FromSchema } from 'json-schema-to-ts'
import { INTEGER_OR_NULL, TEXT_OR_NULL } from './shape.ts'

/** Body of POST /v1/messages/{id}/checks. */
export const CHECKS_BODY = {
  type: 'object',
  properties: {
    links: {
      type: 'boolean',
      default: false,
      description: 'Whether to request the links of the message; on test servers only',
    },
  },
  additionalProperties: false,
} as const

const PERCENT = { type: 'integer', minimum: 0, maximum: 100 } as const

const CHECK_FINDING = {
  type: 'object',
  properties: {
    check: {
      enum: ['client_support', 'missing_text', 'html_too_large', 'image_alt', 'list_unsubscribe'],
      description: 'The check that found it',
    },
    line: { ...INTEGER_OR_NULL, description: 'Line of the HTML, from 1; null if it is about the whole message' },
    message: { type: 'string', description: 'What is wrong, for people' },
    clients: {
      type: ['object', 'null'],
      description: 'Percent of mail clients with full, partial and no support of a feature; null for other checks',
      properties: { full: PERCENT, partial: PERCENT, none: PERCENT },
      required: ['full', 'partial', 'none'],
      additionalProperties: false,
    },
    url: { ...TEXT_OR_NULL, description: 'A page about the finding' },
  },
  required: ['check', 'line', 'message', 'clients', 'url'],
  additionalProperties: false,
} as const

const CHECKED_LINK = {
  type: 'object',
  properties: {
    part: { enum: ['html', 'text'], description: 'The part of the message that has the link' },
    line: { type: 'integer', minimum: 1, description: 'Line within that part, from 1' },
    href: { type: 'string', description: 'Where the link leads' },
    result: {
      enum: ['ok', 'broken', 'timeout', 'not_checked'],
      description: 'Whether it answers, after at most 3 redirects',
    },
    status: { ...INTEGER_OR_NULL, description: 'Status of the last answer; null if there was none' },
    reason: {
      ...TEXT_OR_NULL,
      description:
        'Why it is broken or not checked: `not_requested`, `token`, `unsubscribe`, `private_address`, `limit`, `rate`, ...',
    },
  },
  required: ['part', 'line', 'href', 'result', 'status', 'reason'],
  additionalProperties: false,
} as const

/** Answer of POST /v1/messages/{id}/checks. */
export const CHECKS = {
  type: 'object',
  properties: {
    findings: { type: 'array', items: CHECK_FINDING },
    links: { type: 'array', items: CHECKED_LINK },
  },
  required: ['findings', 'links'],
  additionalProperties: false,
} as const

export type ChecksBody = FromSchema<typeof CHECKS_BODY>
export type Checks = FromSchema<typeof CHECKS>
