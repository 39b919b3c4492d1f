/**
 * record-check - records what a look-up of a domain's records found, and answers the domain as it is then.
 *
 * Spec domain.verify, domain.states
 */

import type { CommandType } from '../../cluster/behaviour.ts'
import { checkedDomain, type DomainCheck, type DomainState, domainRef, sendingOps } from './domain.ts'
import { type DomainOrder, domainOfOrder, domainOrderEntities, refuseOrder } from './domain-order.ts'
import { type Refused, refuse } from './refusal.ts'

export interface RecordCheckBody extends DomainOrder {
  readonly check: DomainCheck
}

export interface RecordCheckReply {
  readonly kind: 'checked'
  readonly domain: DomainState
  readonly check: DomainCheck
}

export const recordCheck: CommandType<RecordCheckBody, RecordCheckReply | Refused> = {
  name: 'record-check',
  entities: domainOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, _facts, { shard, nowMs }) {
    const refusal = refuseOrder(body, states)
    if (refusal !== null) return refusal
    const domain = domainOfOrder(body, states)
    if (domain === null) return refuse('not_found')
    const checked = checkedDomain(domain, body.check, nowMs)
    if (checked === null) return { kind: 'done', reply: { kind: 'checked', domain, check: body.check } }
    const after = { ...domain, ...checked }
    const differs = after.verified !== domain.verified || after.failingSinceMs !== domain.failingSinceMs
    return {
      kind: 'done',
      reply: { kind: 'checked', domain: after, check: body.check },
      events: [{ ref: domainRef(domain.domainId), event: { type: 'checked', checked } }],
      ops: differs ? sendingOps(shard, after) : [],
    }
  },
}
