/**
 * domain - the domain in the path of a request
 */

import type { EdgeRequest } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import { isAccepted, type OwnApi } from '../common/own-api.ts'
import { decodeParam } from '../common/path-address.ts'

/** The refusal of a domain that the key's server may not use; null if it may. */
export async function refuseDomain(request: EdgeRequest, own: OwnApi): Promise<Answer | null> {
  const domain = decodeParam(request, 'domain').toLowerCase()
  const answer = await own.call('readServer', request)
  if (!isAccepted(answer)) return answer
  const { sendingDomains } = answer.json as { sendingDomains: readonly { domain: string }[] }
  return sendingDomains.some((one) => one.domain === domain) ? null : refusalReply('not_found', {}, 'Domain not found')
}
