/**
 * use-in-tests - lets the test servers of an account send from an unverified domain. A verified one stays as it is:
 * every server sends from it.
 *
 * Spec domain.test-use
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { type DomainState, domainRef, sendingOps } from '../../state/domain.ts'
import { type DomainOrder, domainOfOrder, domainOrderEntities, refuseOrder } from '../authorization/domain.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { nextCheckDue } from './check-schedule.ts'

export interface UseInTestsReply {
  readonly kind: 'usable'
  readonly domain: DomainState
}

export const useInTests: CommandType<DomainOrder, UseInTestsReply | Refused> = {
  name: 'use-domain-in-tests',
  entities: domainOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const refusal = refuseOrder(body, states, { facts, context })
    if (refusal !== null) return refusal
    const domain = domainOfOrder(body, states)
    if (domain === null) return refuse('not_found')
    if (domain.verified || domain.isTestOnly) return { kind: 'done', reply: { kind: 'usable', domain } }
    const usable: DomainState = { ...domain, isTestOnly: true }
    return {
      kind: 'done',
      reply: { kind: 'usable', domain: usable },
      events: [{ ref: domainRef(domain.domainId), event: { type: 'test-use' } }],
      ops: sendingOps(context.shard, usable),
      due: [nextCheckDue(usable, context.nowMs)],
    }
  },
}
