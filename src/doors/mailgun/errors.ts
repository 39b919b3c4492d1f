/**
 * errors - our refusals as Mailgun's clients read them: `{message}`
 */

import type { Issue } from '../../../schemas/error.ts'
import type { Reply } from '../../http/respond.ts'

/** Mailgun has the one status 400 for refusals that have several on our own routes. */
const AS_400 = [409, 410, 415, 422]

/** The answer of a refusal. */
export function presentMailgun({ json, text, bytes: _, contentType: __, ...rest }: Reply): Reply {
  const { error, message, issues, domain } = (json ?? {}) as {
    readonly error?: string
    readonly message?: string
    readonly issues?: readonly Issue[]
    readonly domain?: string
  }
  const status = AS_400.includes(rest.status) ? 400 : rest.status
  return { ...rest, status, json: { message: sentence() } }

  function sentence(): string {
    const [first] = issues ?? []
    if (error === 'unauthorized') return 'Forbidden'
    if (error === 'domain_not_verified') return `The domain ${domain} is not verified: add its DNS records first`
    if (first === undefined) return message ?? text ?? 'Refused'
    return first.path === '' ? first.message : `${first.path}: ${first.message}`
  }
}
