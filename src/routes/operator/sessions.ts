/**
 * sessions - sessions of the operator's pages in a browser, which replace the key. A link opens a session on a machine
 * without revealing the key to it
 *
 * A session cannot open sessions or create keys or links, so a stolen one is useful only for its lifetime.
 *
 * Spec operator.session, operator.link, operator.note
 */

import { randomBytes } from 'node:crypto'
import type { LinkMade } from '../../../schemas/dashboard/link.ts'
import type { OperatorSession } from '../../../schemas/operator/session.ts'
import type {
  DeskOpened,
  EndDeskBody,
  MakeDeskLinkBody,
  OpenDeskBody,
  UseDeskLinkBody,
} from '../../actors/dashboard/desk.ts'
import { makeKey } from '../../http/key.ts'
import type { HandlerOf } from '../../http/request.ts'
import { type Answer, refusalReply } from '../../http/respond.ts'
import type { Secrets } from '../../process/secrets.ts'
import { DESK_SHARD, deskLinkIn, deskLinksFact } from '../../state/dashboard/desk.ts'
import {
  dashboardBase,
  formatLinkToken,
  LINK_ID_BYTES,
  newLinkId,
  parseLinkToken,
} from '../../state/dashboard/link-token.ts'
import { isOperatorLive } from '../../views/account.ts'
import { formatInstant } from '../../views/instant.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, isOwnKey, type OperatorDeps, withOwnKey } from '../as-operator.ts'

/** Further dependencies of the routes. */
export interface OperatorSessionDeps extends OperatorDeps {
  readonly secrets: Pick<Secrets, 'linkKey'>
  readonly operatorUrl: string
}

const TAKES_A_SESSION = refusalReply(
  'wrong_token_kind',
  {},
  'Wrong kind of key: this operation takes an operator session (os_)',
)

/** POST /v1/operator/session */
export function makeOpenSession(deps: OperatorSessionDeps): HandlerOf<'openOperatorSession'> {
  return withOwnKey(deps.read, async ({ key }, by) => {
    const { token, hash } = makeKey('os', DESK_SHARD)
    const body: OpenDeskBody = { hash, operatorHash: key.hash, tokenId: key.tokenId, by }
    const { reply, answer } = await giveOrder<DeskOpened>(deps, DESK_SHARD, { name: 'open-desk', body })
    return answer ?? answerOpened(token, reply)
  })
}

/** DELETE /v1/operator/session */
export function makeEndSession(deps: OperatorSessionDeps): HandlerOf<'endOperatorSession'> {
  return asOperator(deps.read, async ({ key }, by) => {
    if (isOwnKey(key)) return TAKES_A_SESSION
    const body: EndDeskBody = { hash: key.hash, tokenId: key.tokenId, by }
    const { answer } = await giveOrder(deps, DESK_SHARD, { name: 'end-desk', body })
    return answer ?? { status: 204 }
  })
}

/** POST /v1/operator/link */
export function makeCreateDeskLink(deps: OperatorSessionDeps): HandlerOf<'createDeskLink'> {
  return withOwnKey(deps.read, async ({ key }, by) => {
    const linkId = newLinkId(DESK_SHARD, randomBytes(LINK_ID_BYTES))
    const body: MakeDeskLinkBody = { linkId, operatorHash: key.hash, tokenId: key.tokenId, by }
    const { reply, answer } = await giveOrder<{ readonly kind: 'made'; readonly endsAtMs: number }>(deps, DESK_SHARD, {
      name: 'make-desk-link',
      body,
    })
    if (answer !== undefined) return answer
    // Behind `#`, where no server can see it.
    const url = `${dashboardBase(deps.operatorUrl)}/#link=${formatLinkToken(linkId, deps.secrets.linkKey)}`
    const json: LinkMade = { url, expiresAt: formatInstant(reply.endsAtMs) }
    return { status: 201, json }
  })
}

/** POST /v1/operator/session/link */
export function makeUseDeskLink(deps: OperatorSessionDeps): HandlerOf<'useDeskLink'> {
  return async ({ body }) => {
    const parsed = parseLinkToken(body.token, deps.secrets.linkKey)
    if (parsed === null || parsed.shard !== DESK_SHARD) return refusalReply('link_not_valid')
    const { linkId } = parsed
    const seen = await deps.read(DESK_SHARD, [deskLinksFact()])
    if (seen === null) return refusalReply('unavailable')
    const link = deskLinkIn(seen[0], linkId, deps.nowMs())
    if (link === null) return refusalReply('link_not_valid')
    const isLive = await isOperatorLive(deps.read, { hash: link.operatorHash, operatorHash: null })
    if (isLive === null) return refusalReply('unavailable')
    if (!isLive) return refusalReply('link_not_valid')
    const { token, hash } = makeKey('os', DESK_SHARD)
    const order: UseDeskLinkBody = { linkId, hash, note: body.note ?? null }
    const { reply, answer } = await giveOrder<DeskOpened>(deps, DESK_SHARD, { name: 'use-desk-link', body: order })
    return answer ?? answerOpened(token, reply)
  }
}

function answerOpened(token: string, { endsAtMs }: DeskOpened): Answer {
  const json: OperatorSession = { token, expiresAt: formatInstant(endsAtMs) }
  return { status: 201, json }
}
