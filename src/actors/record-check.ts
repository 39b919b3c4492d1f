/**
 * record-check - records what a look-up of a domain's records found, and answers the domain as it is then.
 *
 * Spec domain.verify, domain.states
 */

import type { CommandType } from '../../cluster/behaviour.ts'
import type { DomainCheck, DomainState } from '../state/domain.ts'
import { recordFinding } from './domain/domain-check.ts'
import { type DomainOrder, domainOfOrder, domainOrderEntities, refuseOrder } from './order/domain.ts'
import { type Refused, refuse } from './order/refusal.ts'

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
  decide(body, states, facts, context) {
    const refusal = refuseOrder(body, states)
    if (refusal !== null) return refusal
    const domain = domainOfOrder(body, states)
    if (domain === null) return refuse('not_found')
    const recorded = recordFinding(domain, body.check, facts, context)
    if (recorded.kind === 'need') return recorded
    return { kind: 'done', reply: { kind: 'checked', domain: recorded.domain, check: body.check }, ...recorded.staged }
  },
}
