/**
 * links - the operator creates a dashboard link for a user who is locked out or gets no mail
 *
 * The store keeps the link's id; its token is only in this answer.
 *
 * Spec link.operator, link.once, operator.note
 */

import { randomBytes } from 'node:crypto'
import { shardOf } from '../../../cluster/id.ts'
import type { LinkMade } from '../../../schemas/dashboard/link.ts'
import type { AccountLinkMade, MakeAccountLinkBody } from '../../actors/dashboard/link.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import type { Secrets } from '../../process/secrets.ts'
import { dashboardBase, LINK_ID_BYTES, linkUrl, newLinkId } from '../../state/dashboard/link-token.ts'
import { levelOf } from '../../state/dashboard/member.ts'
import { formatInstant } from '../../views/instant.ts'
import { giveOrder } from '../answer.ts'
import { type OperatorDeps, withOwnKey } from '../as-operator.ts'

/** Further dependencies of the route. */
export interface OperatorLinkDeps extends OperatorDeps {
  readonly secrets: Pick<Secrets, 'linkKey'>
  readonly baseUrl: string
}

/** POST /v1/operator/accounts/{accountId}/link */
export function makeCreateAccountLink(deps: OperatorLinkDeps): HandlerOf<'createAccountLink'> {
  return withOwnKey(deps.read, async ({ params, body, key }, by) => {
    const accountId = (params.accountId ?? '').toLowerCase()
    const shard = shardOf(accountId)
    if (shard === null) return refusalReply('not_found')
    const { address, role, removeFactors } = body
    const linkId = newLinkId(shard, randomBytes(LINK_ID_BYTES))
    const level = levelOf(role, false)
    const bound = { address, level, removesFactors: removeFactors }
    const order: MakeAccountLinkBody = { ...bound, accountId, linkId, operatorHash: key.hash, by }
    const { reply, answer } = await giveOrder<AccountLinkMade>(deps, shard, { name: 'make-account-link', body: order })
    if (answer !== undefined) return answer
    const url = linkUrl(dashboardBase(deps.baseUrl), linkId, deps.secrets.linkKey)
    const json: LinkMade = { url, expiresAt: formatInstant(reply.endsAtMs) }
    return { status: 201, json }
  })
}
