/**
 * suppressions - DELETE /v3/{domain}/{bounces|complaints|unsubscribes}/{address}
 *
 * Bounces are lifted on every stream of the server. Only support lifts the other two: they answer as if done, since
 * clients remove an address from all three, and change nothing.
 */

import type { SuppressionEntry } from '../../../schemas/suppression.ts'
import { refusalReply } from '../../http/respond.ts'
import type { ServerKey } from '../../views/key.ts'
import type { DoorHandler } from '../common/door-table.ts'
import { isAccepted } from '../common/own-api.ts'
import { decodeParam } from '../common/path-address.ts'
import { refuseDomain } from './domain.ts'

/** DELETE /v3/{domain}/bounces/{address} */
export const mailgunRemoveBounce: DoorHandler = async (request, own) => {
  const missing = await refuseDomain(request, own)
  if (missing !== null) return missing
  const address = decodeParam(request, 'address')
  const body = { recipient: address, reason: 'hard_bounce', limit: 1000 }
  const seen = await own.call('searchSuppressions', request, { body, rename: () => 'address' })
  if (!isAccepted(seen)) return seen
  const { suppressions } = seen.json as { suppressions: readonly SuppressionEntry[] }
  const ids = suppressions.map(({ suppressionId }) => suppressionId)
  // Without an entry our route is still called, because the account's state is refused first.
  for (const id of ids.length > 0 ? ids : [(request.key as ServerKey).serverId]) {
    const lifted = await own.call('liftSuppression', request, { params: { id } })
    const isNotThere = 'status' in lifted && lifted.status === 404
    if (isNotThere && ids.length === 0) return refusalReply('not_found', {}, 'Address not found in bounces table')
    if (!isAccepted(lifted) && !isNotThere) return lifted
  }
  return { status: 200, json: { address, message: 'Bounced address has been removed' } }
}

/** DELETE of an address that stays suppressed. Takes the sentence of the answer. */
export function mailgunKeep(message: string): DoorHandler {
  return async (request, own) => {
    const missing = await refuseDomain(request, own)
    return missing ?? { status: 200, json: { address: decodeParam(request, 'address'), message } }
  }
}
