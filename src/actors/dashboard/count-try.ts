/**
 * count-try - one try of somebody counts, or is refused: a password, a link to be mailed, an invitation.
 *
 * A try counts before anybody looks whether it is a good one, so what is answered tells nothing.
 *
 * Spec session.limits
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { judgeTries, triesFact, tryOps } from '../../state/dashboard/tries.ts'
import { type Refused, refuse } from '../order/refusal.ts'

export interface CountTryBody {
  /** What is tried, and by whom: `<what>.<a or c>.<HMAC>`, `<what>.d.<deviceId>`, `<what>.u.<userId>`. */
  readonly name: string
  /** Tries that fit. */
  readonly max: number
}

export const countTry: CommandType<CountTryBody, { readonly kind: 'counted' } | Refused> = {
  name: 'count-try',
  entities: () => [],
  counters: () => [],
  facts: ({ name }, _states, { shard }) => [triesFact(shard, name)],
  decide({ name, max }, _states, facts, context) {
    const { shard, nowMs } = context
    const { resetsAtMs, past } = judgeTries(facts.sorted(triesFact(shard, name)), { max, nowMs })
    if (resetsAtMs !== null) return refuse('too_many_tries', { resetsAtMs })
    const ops = tryOps(shard, name, { id: context.newId(), nowMs, past })
    return { kind: 'done', reply: { kind: 'counted' }, ops }
  },
}
