/**
 * outcomes - counts of the recipients of matching messages, in the answer of POST /v1/messages/outcomes
 *
 * Spec message.outcomes
 */

import type { FromSchema } from 'json-schema-to-ts'
import { MESSAGE_FILTERS, RECIPIENT_STATUSES } from '../message.ts'
import { strictObject, UUID, UUID_OR_NULL } from '../shape.ts'

/** Body of POST /v1/messages/outcomes. */
export const OUTCOMES_BODY = {
  type: 'object',
  properties: { ...MESSAGE_FILTERS, after: UUID },
  additionalProperties: false,
} as const

const OUTCOME_COUNT = { type: 'integer', minimum: 0 } as const

/** Answer of POST /v1/messages/outcomes. */
export const OUTCOMES = strictObject({
  messages: { ...OUTCOME_COUNT, description: 'Messages that match' },
  recipients: {
    ...strictObject(
      Object.fromEntries(RECIPIENT_STATUSES.map((status) => [status, OUTCOME_COUNT])) as Record<
        (typeof RECIPIENT_STATUSES)[number],
        typeof OUTCOME_COUNT
      >,
    ),
    description: 'Their recipients by present status',
  },
  complained: { ...OUTCOME_COUNT, description: 'Recipients that complained' },
  unsubscribed: { ...OUTCOME_COUNT, description: 'Recipients that unsubscribed' },
  classifications: {
    type: 'object',
    additionalProperties: OUTCOME_COUNT,
    description: 'Bounced recipients by class',
    examples: [{ InvalidRecipient: 12, SpamBlock: 3 }],
  },
  next: { ...UUID_OR_NULL, description: 'Pass as `after` to count the rest; null at the end' },
})

export type OutcomesBody = FromSchema<typeof OUTCOMES_BODY>

export type Outcomes = FromSchema<typeof OUTCOMES>

/** Adds up answers of POST /v1/messages/outcomes; `next` is that of the last. */
export function sumOutcomes(pages: readonly Outcomes[]): Outcomes {
  const sum = (of: (page: Outcomes) => number) => pages.reduce((total, page) => total + of(page), 0)
  const names = new Set(pages.flatMap(({ classifications }) => Object.keys(classifications)))
  const statuses = RECIPIENT_STATUSES.map((status) => [status, sum(({ recipients }) => recipients[status])] as const)
  return {
    messages: sum(({ messages }) => messages),
    recipients: Object.fromEntries(statuses) as Outcomes['recipients'],
    complained: sum(({ complained }) => complained),
    unsubscribed: sum(({ unsubscribed }) => unsubscribed),
    classifications: Object.fromEntries(
      Array.from(names, (name) => [name, sum(({ classifications }) => classifications[name] ?? 0)]),
    ),
    next: pages.at(-1)?.next ?? null,
  }
}
