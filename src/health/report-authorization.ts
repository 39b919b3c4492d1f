/**
 * report-authorization - whether reporters may send the reports about other domains here (RFC 7489 7.1, RFC 9990 4)
 *
 * Spec operator.health, reports.address
 */

import type { Finding } from '../../schemas/operator/health.ts'
import { REPORT_AUTHORIZATION, reportAuthorization } from '../mail/report-address.ts'
import { serviceReturnPathHost } from '../mail/return-path.ts'
import type { DnsDeps } from './dns.ts'
import { recordToCreate, warning, well } from './finding.ts'

/** Any domain that has its reports sent here. */
const SOME_DOMAIN = 'example.com'

/** Looks at the record as a reporter does. */
export async function examineReportAuthorization({ resolver, config }: DnsDeps): Promise<Finding> {
  const root = reportAuthorization(serviceReturnPathHost(config.serviceDomain))
  const name = 'report-authorization'
  const fix = recordToCreate(`*.${root}`, 'TXT', `"${REPORT_AUTHORIZATION}"`)
  const answer = await resolver.look('TXT', `${SOME_DOMAIN}.${root}`, { fresh: true })
  if (answer.status === 'failure')
    return warning(name, `${SOME_DOMAIN}.${root} was not resolved`, 'Check the name servers of the zone')
  const has = answer.status === 'ok' && answer.records.some((strings) => /^v=DMARC1\b/.test(strings.join('')))
  return has
    ? well(name, 'Reporters may send the reports about any domain here')
    : warning(name, `*.${root} does not exist: receivers send no DMARC reports here`, fix)
}
