/**
 * count-try - counts or refuses one try of a password, a request for a link, or an invitation.
 *
 * A try counts before it is checked, so that the answer reveals nothing.
 *
 * Spec session.limits
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { judgeTries, triesFact, tryOps } from '../../state/dashboard/tries.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'

export interface CountTryBody {
  /** The kind of the try, and its subject: `<what>.<a or c>.<HMAC>`, `<what>.d.<deviceId>`, `<what>.u.<userId>`. */
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
