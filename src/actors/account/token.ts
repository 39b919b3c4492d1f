/**
 * token - adds a live key to a server or an account, and ends one for good.
 *
 * A new key's value was made before; its hash comes here. A key that has ended stays as it is. From the answer on
 * it is refused in every process: turns look at their owner's state, views at the key's row.
 *
 * Spec key.create, key.live.max, key.revoke
 */

import type { CommandType } from '../../../cluster/behaviour.ts'
import { LIVE_KEYS_MAX } from '../../../schemas/limits.ts'
import { type NewKey, newKeyOps, revokedKeyOps, type StoredToken, unpackToken } from '../../state/api-key.ts'
import { auditOpsOf } from '../../state/audit.ts'
import { tokensKey } from '../../state/keys.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'
import { authorizeKeyHolder, type TokenOrder, targetsOf, tokenOrderEntities } from '../authorization/token.ts'
import { keysTopic } from '../webhook/announce.ts'

export interface CreateTokenBody extends TokenOrder {
  readonly name: string
  readonly key: NewKey
}

/** A key of an owner's list as orders answer it. */
export interface TokenReply {
  readonly kind: 'token'
  readonly tokenId: string
  readonly token: StoredToken
}

export const createToken: CommandType<CreateTokenBody, TokenReply | Refused> = {
  name: 'create-token',
  entities: tokenOrderEntities,
  counters: () => [],
  facts: () => [],
  decide(body, states, facts, context) {
    const holder = authorizeKeyHolder(body, states, { facts, context })
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
    const holder = authorizeKeyHolder(body, states, { facts, context })
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
      ...(body.serverId !== null && { signals: [{ topic: keysTopic(body.serverId), text: tokenId }] }),
    }
  },
}
