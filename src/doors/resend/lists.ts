/**
 * lists - the pages of Resend's lists
 */

import type { EdgeRequest } from '../../http/request.ts'
import type { PageAsked } from '../common/pages.ts'

const LIMIT_DEFAULT = 20
const PAGE = {
  limit: { type: 'integer', minimum: 1, maximum: 100 },
  after: { type: 'string', format: 'uuid' },
  before: { type: 'string', format: 'uuid' },
} as const

/** Query of a list. */
export const LIST_QUERY = { type: 'object', properties: PAGE, additionalProperties: false } as const

/** Query of the list of suppressions. */
export const SUPPRESSIONS_QUERY = {
  type: 'object',
  properties: { ...PAGE, origin: { enum: ['bounce', 'complaint', 'manual'] } },
  additionalProperties: false,
} as const

/** The page that a request asks for. */
export function parsePageAsked({ query }: Pick<EdgeRequest, 'query'>): PageAsked {
  const { limit, after, before } = query
  return { limit: limit === undefined ? LIMIT_DEFAULT : Number(limit), after, before }
}
