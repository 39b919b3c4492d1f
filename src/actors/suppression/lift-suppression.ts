/**
 * lift-suppression - takes an address off a stream's suppression list.
 *
 * A server key lifts what `isLiftable` allows, an operator anything; the operator's act is logged with its note.
 *
 * Spec suppression.lift, operator.audit
 */

import type { CommandType, Op } from '../../../cluster/behaviour.ts'
import { auditOps } from '../../state/audit.ts'
import { countListOp, personFacts } from '../../state/person/person.ts'
import {
  isLiftable,
  parsePlace,
  placeFact,
  suppressedFacts,
  suppressedKeyOf,
  suppressionIn,
} from '../../state/suppression.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { authorizeKeyHolder, type TokenOrder, tokenOrderEntities } from '../authorization/token.ts'

export interface LiftBody extends TokenOrder {
  readonly serverId: string
  readonly suppressionId: string
}

export const liftSuppression: CommandType<LiftBody, { readonly kind: 'lifted' } | Refused> = {
  name: 'lift-suppression',
  entities: tokenOrderEntities,
  counters: () => [],
  facts: (body, _states, { shard }) => [placeFact(shard, body)],
  decide(body, states, facts, context) {
    const { shard } = context
    const holder = authorizeKeyHolder(body, states, { facts, context })
    if ('kind' in holder) return holder
    const { accountId, serverId, suppressionId, by } = body
    const found = facts.range(placeFact(shard, body))[0]
    const place = found === undefined ? null : parsePlace(found)
    if (place === null) return refuse('not_found')
    const { streamId, hmac } = place
    const reads = [...suppressedFacts(shard, streamId, [hmac]), ...personFacts({ shard, accountId }, [hmac])]
    if (!reads.every((fact) => facts.has(fact))) return { kind: 'need', facts: reads }
    const entry = suppressionIn(facts, shard, place)
    if (entry === null || entry.suppressionId !== suppressionId) return refuse('not_found')
    const { reason, messageId, number } = entry
    if (by === undefined && !isLiftable(reason)) return refuse('suppression_not_liftable', { reason })
    const ops: Op[] = [{ key: suppressedKeyOf(shard, place), write: 'HDEL', args: [hmac] }]
    const counted = countListOp(facts, -1, { shard, accountId, hmac, number })
    if (counted !== null) ops.push(counted)
    const targets = { accountId, serverId, streamId, suppressionId }
    if (by !== undefined) ops.push(...auditOps(context, by, { targets, before: { reason, messageId }, after: null }))
    return { kind: 'done', reply: { kind: 'lifted' }, ops }
  },
}
