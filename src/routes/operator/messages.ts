/**
 * messages - GET /v1/operator/messages/{id} and POST /v1/operator/messages/{id}/reveal
 *
 * Spec operator.message
 */

import type { RevealReply } from '../../actors/message/reveal.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import { type FindMessageDeps, findMessage, readFoundMessage } from '../../views/operator/message.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

export type OperatorMessageDeps = OperatorDeps & FindMessageDeps

/** GET /v1/operator/messages/{id} */
export function makeFindMessage(deps: OperatorMessageDeps): HandlerOf<'findMessage'> {
  return asOperator(deps.read, async ({ params }) => {
    const place = await findMessage(deps.read, params.id ?? '')
    if (typeof place === 'string') return refusalReply(place)
    const seen = await readFoundMessage(deps, place, false)
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  })
}

/** POST /v1/operator/messages/{id}/reveal */
export function makeRevealMessage(deps: OperatorMessageDeps): HandlerOf<'revealMessage'> {
  return asOperator(deps.read, async ({ params }, by) => {
    const place = await findMessage(deps.read, params.id ?? '')
    if (typeof place === 'string') return refusalReply(place)
    const { shard, messageId, serverId, accountId } = place
    const body = { messageId, serverId, accountId, by }
    const { answer } = await giveOrder<RevealReply>(deps, shard, { name: 'reveal-message', body })
    if (answer !== undefined) return answer
    const seen = await readFoundMessage(deps, place, true)
    return typeof seen === 'string' ? refusalReply(seen) : { status: 200, json: seen }
  })
}
