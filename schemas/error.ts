/**
 * error - the JSON shape of every refusal, one branch for each row of the table of refusals
 *
 * Spec error.body, error.issues
 */

import { REFUSALS, type RefusalCode, type RefusalRow } from './refusals.ts'

/** One invalid field: where (dotted, empty for the whole body) and why. */
export interface Issue {
  readonly path: string
  readonly message: string
}

/** The body of a refusal. */
export interface ErrorBody {
  readonly error: RefusalCode
  readonly message: string
  readonly [field: string]: unknown
}

/** Schema of the body of one refusal. */
export function makeErrorBranch(refusal: RefusalRow) {
  const extras = Object.keys(refusal.fields).filter((field) => !refusal.optional.includes(field))
  return {
    type: 'object',
    properties: { error: { const: refusal.code }, message: { type: 'string', minLength: 1 }, ...refusal.fields },
    required: ['error', 'message', ...extras],
    additionalProperties: false,
  }
}

/** Schema that the body of every refusal satisfies. */
export const ERROR = { anyOf: REFUSALS.map(makeErrorBranch) }
