/**
 * revoke-token - ends a key of a server or an account, for good; one that has ended stays as it is.
 *
 * From its answer on the key is refused in every process: turns look at their owner's state, views at the key's row.
 *
 * Spec key.revoke
 */

import type { CommandType } from '../../cluster/behaviour.ts'
import { revokedKeyOps, unpackToken } from '../state/api-key.ts'
import { auditOpsOf } from '../state/audit.ts'
import { tokensKey } from '../state/keys.ts'
import type { TokenReply } from './account/token.ts'
import { type Refused, refuse } from './order/refusal.ts'
import { keyHolderOf, type TokenOrder, targetsOf, tokenOrderEntities } from './order/token.ts'

export interface RevokeTokenBody extends TokenOrder {
  readonly tokenId: string
}

export const revokeToken: CommandType<RevokeTokenBody, TokenReply | Refused> = {
  name: 'revoke-token',
  entities: tokenOrderEntities,
  counters: () => [],
  facts: (body, _states, { shard }) => [
    { read: 'fields', key: tokensKey(shard, body.serverId ?? body.accountId), fields: [body.tokenId] },
  ],
  decide(body, states, facts, context) {
    const { shard, nowMs } = context
    const holder = keyHolderOf(body, states)
    if ('kind' in holder) return holder
    const { tokenId } = body
    const packed = facts.field(tokensKey(shard, holder.ownerId), tokenId)
    if (packed === null) return refuse('not_found')
    const token = unpackToken(packed)
    const revoked = { ...token, revokedAtMs: token.revokedAtMs ?? nowMs }
    const logged = auditOpsOf(context, body.by, {
      targets: targetsOf(body, tokenId),
      before: { revokedAtMs: token.revokedAtMs },
      after: { revokedAtMs: revoked.revokedAtMs },
    })
    if (token.revokedAtMs !== null) return { kind: 'done', reply: { kind: 'token', tokenId, token }, ops: logged }
    return {
      kind: 'done',
      reply: { kind: 'token', tokenId, token: revoked },
      events: [{ ref: holder.ref, event: { type: 'key-revoked', tokenId } }],
      ops: [...revokedKeyOps(shard, holder.ownerId, { tokenId, token: revoked }), ...logged],
    }
  },
}
