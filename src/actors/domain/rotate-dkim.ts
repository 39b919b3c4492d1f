/**
 * rotate-dkim - orders another DKIM key for a sending domain. It signs as soon as a look-up finds its record.
 *
 * Until then nothing changes; a repeated order returns the same key. The record of the former key has to stay
 * published as long as mail signed with it may be in flight.
 *
 * Spec domain.rotate
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { keepPairOps } from '../../state/dkim-pair.ts'
import { type DomainState, domainRef } from '../../state/domain.ts'
import { dkimKey } from '../../state/keys.ts'
import { type DomainOrder, domainOfOrder, domainOrderEntities, refuseOrder } from '../authorization/domain.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { firstCheckDue } from './check-schedule.ts'

export interface RotateDkimBody extends DomainOrder {
  readonly selector: string
  readonly publicKey: string
  readonly sealedPrivateKey: string
}

export interface RotateDkimReply {
  readonly kind: 'rotating'
  readonly domain: DomainState
}

export const rotateDkim: CommandType<RotateDkimBody, RotateDkimReply | Refused> = {
  name: 'rotate-dkim',
  entities: domainOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const refusal = refuseOrder(body, states, { facts, context })
    if (refusal !== null) return refusal
    const domain = domainOfOrder(body, states)
    if (domain === null) return refuse('not_found')
    if (domain.pending !== null) return { kind: 'done', reply: { kind: 'rotating', domain } }
    const { selector, publicKey, sealedPrivateKey } = body
    const place = { shard, accountId: domain.accountId, domain: domain.domain }
    const key = dkimKey(shard, domain.accountId, domain.domain)
    if (!facts.has({ read: 'hash', key })) return { kind: 'need', facts: [{ read: 'hash', key }] }
    const pending = { selector, publicKey, orderedAtMs: nowMs }
    return {
      kind: 'done',
      reply: { kind: 'rotating', domain: { ...domain, pending } },
      events: [{ ref: domainRef(domain.domainId), event: { type: 'rotating', pending } }],
      ops: keepPairOps(place, facts.hash(key), { pair: { selector, sinceMs: 0, publicKey, sealedPrivateKey }, nowMs }),
      due: [firstCheckDue(domain.domainId, nowMs)],
    }
  },
}
