/**
 * front-page - the answer of `/` on the API listener: a redirect to the dashboard for browsers, JSON for programs
 *
 * Spec front.page
 */

import type { Handler } from '../../http/request.ts'
import type { Reply } from '../../http/respond.ts'

export interface FrontPage {
  readonly version: string
  readonly baseUrl: string
  /** Whether the pages of the dashboard are built. */
  readonly hasDashboard: boolean
  /** Whether the listener serves the documentation. */
  readonly hasDocs: boolean
}

/** A media range that only browsers send; quality 0 is a refusal (RFC 9110 12.5.1). */
const HTML = /(?:^|,)\s*text\/html\s*(?:;(?!\s*q=0(?:\.0*)?\s*(?:,|$))|,|$)/i
const VARY = { Vary: 'Accept' } as const

/** Answers `/`. In: which pages the listener serves. */
export function makeFront({ version, baseUrl, hasDashboard, hasDocs }: FrontPage): Handler {
  const moved: Reply = { status: 303, headers: { ...VARY, Location: '/dashboard' } }
  const json = {
    name: 'Sendwright',
    version,
    ...(hasDashboard && { dashboard: `${baseUrl}/dashboard` }),
    ...(hasDocs && { documentation: `${baseUrl}/docs` }),
    openapi: `${baseUrl}/v1/openapi.json`,
  }
  const told: Reply = { status: 200, json, headers: VARY }
  return ({ accept }) => (hasDashboard && HTML.test(accept) ? moved : told)
}
