/**
 * refusal-sentence - more specific sentences about a refused message than those of the table
 *
 * Spec domain.test-use, limit.minute
 */
import { SIMULATOR_DOMAIN } from '../mail/simulator.ts'

/** The sentence of a refusal by the decision; undefined for that of the table. Takes its code and additional fields. */
export function sentenceOfRefusal(code: string, extra: Readonly<Record<string, unknown>>): string | undefined {
  const { domain, mode, requested, limit } = extra
  if (code === 'domain_not_verified' && typeof domain === 'string') return sentenceOfDomain(domain, mode === 'test')
  if (typeof requested !== 'number' || typeof limit !== 'number' || requested <= limit) return undefined
  return `Request needs more emails than the whole limit: ${requested} of ${limit}`
}

function sentenceOfDomain(domain: string, isTest: boolean): string {
  if (isTest)
    return `The domain ${domain} is not verified. To use it on test servers without DNS, run sendwright domain add ${domain} --test-only (POST /v1/domains with testOnly), or sendwright domain test-use ${domain} if it is already added (POST /v1/domains/{id}/test-use)`
  if (domain === SIMULATOR_DOMAIN) return `${SIMULATOR_DOMAIN} is for test servers: use the key of a test server`
  return `The domain ${domain} is not a verified sending domain. Publish its DNS records, then run sendwright domain verify ${domain} (POST /v1/domains/{id}/verify). ${SIMULATOR_DOMAIN} is for test servers only`
}
