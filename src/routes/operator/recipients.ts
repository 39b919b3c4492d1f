/**
 * recipients - POST /v1/operator/recipients/search
 *
 * The address is hashed here for each account, and is named nowhere below. The request is in the audit log, with the
 * domain of the address, before anything is read.
 *
 * Spec operator.recipients
 */

import type { RevealReply, SearchRecipientsBody } from '../../actors/message/reveal.ts'
import type { HandlerOf } from '../../http/request.ts'
import { refusalReply } from '../../http/respond.ts'
import type { Secrets } from '../../process/secrets.ts'
import { INSTALLATION_SHARD } from '../../state/log-retention.ts'
import type { SearchDeps } from '../../views/message/search.ts'
import { searchRecipient } from '../../views/operator/recipient.ts'
import { giveOrder } from '../answer.ts'
import { asOperator, type OperatorDeps } from '../as-operator.ts'

export interface RecipientDeps extends OperatorDeps, SearchDeps {
  readonly secrets: Pick<Secrets, 'addressHmac'>
}

/** POST /v1/operator/recipients/search */
export function makeSearchRecipients(deps: RecipientDeps): HandlerOf<'searchRecipients'> {
  return asOperator(deps.read, async ({ body }, by) => {
    const { recipient, limit, after = null } = body
    const domain = recipient.slice(recipient.lastIndexOf('@') + 1).toLowerCase()
    const order: SearchRecipientsBody = { domain, by }
    const logged = await giveOrder<RevealReply>(deps, INSTALLATION_SHARD, { name: 'search-recipients', body: order })
    if (logged.answer !== undefined) return logged.answer
    const hmacOf = (accountId: string) => deps.secrets.addressHmac(accountId, recipient)
    const seen = await searchRecipient(deps, { hmacOf, limit, after })
    return seen === null ? refusalReply('unavailable') : { status: 200, json: seen }
  })
}
