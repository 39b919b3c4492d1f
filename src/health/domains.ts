/**
 * domains - whether look-ups decide something of every verified domain
 *
 * Spec operator.health, domain.states
 */

import type { Finding } from '../../schemas/operator/health.ts'
import type { Reader } from '../views/key.ts'
import { readUndecidedDomains } from '../views/operator/undecided-domains.ts'
import { warning, well } from './finding.ts'

/** Domains that the finding names. */
const NAMED_MAX = 10

/** Rejects if the store does not answer. */
export async function examineDomains(read: Reader, nowMs: number): Promise<Finding> {
  const domains = await readUndecidedDomains(read, nowMs)
  if (domains === null) throw new Error('the store does not answer')
  if (domains.length === 0) return well('domains', 'The records of every verified domain can be looked up')
  const named = domains
    .slice(0, NAMED_MAX)
    .map(({ domain, sinceMs }) => `${domain} (since ${new Date(sinceMs).toISOString()})`)
  const more = domains.length > NAMED_MAX ? `, and ${domains.length - NAMED_MAX} more` : ''
  return warning(
    'domains',
    `Of these domains one DNS record is missing or wrong, and their name servers do not answer for the other, so they stay verified: ${named.join(', ')}${more}`,
    "Check the resolver with dig, then ask the domain's owner to repair its name servers and the record",
  )
}
