/**
 * create-token - adds a live key to a server or an account. The value was made before; its hash comes here.
 *
 * Spec key.create, key.live.max
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { LIVE_KEYS_MAX } from '../../../schemas/limits.ts'
import { type NewKey, newKeyOps, type Token } from '../../state/api-key.ts'
import { auditOpsOf } from '../../state/audit.ts'
import { type Refused, refuse } from '../order/refusal.ts'
import { keyHolderOf, type TokenOrder, targetsOf, tokenOrderEntities } from '../order/token.ts'

export interface CreateTokenBody extends TokenOrder {
  readonly name: string
  readonly key: NewKey
}

/** A key of an owner's list as orders answer it. */
export interface TokenReply {
  readonly kind: 'token'
  readonly tokenId: string
  readonly token: Token
}

export const createToken: CommandType<CreateTokenBody, TokenReply | Refused> = {
  name: 'create-token',
  entities: tokenOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, _facts, context) {
    const holder = keyHolderOf(body, states)
    if ('kind' in holder) return holder
    if (holder.keys.length >= LIVE_KEYS_MAX) return refuse('token_limit', { max: LIVE_KEYS_MAX })
    const { name, key } = body
    const { shard, nowMs } = context
    const tokenId = context.newId()
    const token = { name, prefix: key.prefix, hash: key.hash, createdAtMs: nowMs, revokedAtMs: null }
    return {
      kind: 'done',
      reply: { kind: 'token', tokenId, token },
      events: [{ ref: holder.ref, event: { type: 'key-made', key: { tokenId, hash: key.hash } } }],
      ops: [
        ...newKeyOps(shard, key, { ...holder.grant, tokenId, name, createdAtMs: nowMs }),
        ...auditOpsOf(context, body.by, {
          targets: targetsOf(body, tokenId),
          before: null,
          after: { name, prefix: key.prefix },
        }),
      ],
    }
  },
}
