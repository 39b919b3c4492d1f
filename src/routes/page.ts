/**
 * page - the page that a list's query asks for
 *
 * Spec list.page
 */

import { PAGE_DEFAULT } from '../../schemas/limits.ts'
import type { Page } from '../views/newest.ts'

/** In: `limit` and `after`, checked. */
export function pageOf({ limit, after }: Readonly<Record<string, string>>): Page {
  return { limit: limit === undefined ? PAGE_DEFAULT : Number(limit), after: after?.toLowerCase() ?? null }
}
