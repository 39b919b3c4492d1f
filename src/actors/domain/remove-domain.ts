/**
 * remove-domain - removes a sending domain: new sends from it are refused at once.
 *
 * Accepted mail is still sent with a signature, so keys and states are kept until no mail of the domain can be in
 * flight. What reports say about it is removed with it.
 *
 * Spec domain.remove
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { entityKey } from '../../../cluster/keyspace.ts'
import { endOfRemainsMs, endPairsOps } from '../../state/dkim-pair.ts'
import { decidedOp, domainName, domainRef, sendingOps } from '../../state/domain.ts'
import { domainsKey, namesKey, reportLogKey, reportsKey } from '../../state/keys.ts'
import { reportMonths } from '../../state/report/report-days.ts'
import { reportLogMonths } from '../../state/report/report-log.ts'
import { type DomainOrder, domainOfOrder, domainOrderEntities, refuseOrder } from '../authorization/domain.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { endChecks } from './domain-check.ts'

export const removeDomain: CommandType<DomainOrder, { readonly kind: 'removed' } | Refused> = {
  name: 'remove-domain',
  entities: domainOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const refusal = refuseOrder(body, states, { facts, context })
    if (refusal !== null) return refusal
    const domain = domainOfOrder(body, states)
    if (domain === null) return refuse('not_found')
    const { domainId, accountId } = domain
    return {
      kind: 'done',
      reply: { kind: 'removed' },
      done: endChecks(domainId),
      events: [{ ref: domainRef(domainId), event: { type: 'removed', removedAtMs: nowMs } }],
      ops: [
        { key: namesKey(shard, accountId), write: 'HDEL', args: [domainName(domain.domain)] },
        { key: domainsKey(shard, accountId), write: 'ZREM', args: [domainId] },
        ...sendingOps(shard, { ...domain, verified: false, removedAtMs: nowMs }),
        ...(domain.undecidedSinceMs === undefined ? [] : [decidedOp(shard, domainId)]),
        ...endPairsOps({ shard, accountId, domain: domain.domain }, nowMs),
        ...[
          ...reportMonths(nowMs).map((month) => reportsKey(shard, domainId, month)),
          ...reportLogMonths(nowMs).map((month) => reportLogKey(shard, domainId, month)),
        ].map((key) => ({ key, write: 'UNLINK', args: [] }) as const),
        { key: entityKey(shard, 'domain', domainId), write: 'PEXPIREAT', args: [endOfRemainsMs(nowMs)] },
      ],
    }
  },
}
