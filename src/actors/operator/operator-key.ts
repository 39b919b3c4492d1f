/**
 * operator-key - the keys of the operators: added with a name and a role, revoked for good, and the time of their last
 * use
 *
 * A new key revokes no other. The last active admin key cannot be revoked, because without one no key could be
 * created, and the store itself would have to be opened (`sendwright operator-key`).
 *
 * Keys: key, tokens, token-ids, all on shard 0
 *
 * Spec key.create, key.revoke, operator.audit
 */

import type { CommandType, Fact } from '../../../cluster/behaviour.ts'
import { OPERATOR_KEYS_MAX } from '../../../schemas/limits.ts'
import type { OperatorRole } from '../../../schemas/operator/role.ts'
import {
  type NewKey,
  newKeyOps,
  OPERATOR_OWNER,
  packToken,
  revokedKeyOps,
  type StoredToken,
  unpackToken,
} from '../../state/api-key.ts'
import { auditOps, type OperatorAct } from '../../state/audit.ts'
import { HOUR_MS } from '../../state/calendar.ts'
import { tokensKey } from '../../state/keys.ts'
import type { TokenReply } from '../account/token.ts'
import { type Refused, refuse } from '../authorization/refusal.ts'

export interface CreateOperatorKeyBody {
  readonly name: string
  readonly role: OperatorRole
  readonly key: NewKey
  readonly by: OperatorAct
}

function keysFact(shard: number): Fact & { read: 'hash' } {
  return { read: 'hash', key: tokensKey(shard, OPERATOR_OWNER) }
}

export const createOperatorKey: CommandType<CreateOperatorKeyBody, TokenReply | Refused> = {
  name: 'create-operator-key',
  entities: () => [],
  counters: () => [],
  facts: (_body, _states, { shard }) => [keysFact(shard)],
  decide({ name, role, key, by }, _states, facts, context) {
    const { shard, nowMs } = context
    if (activeOf(facts.hash(keysFact(shard).key)).length >= OPERATOR_KEYS_MAX)
      return refuse('token_limit', { max: OPERATOR_KEYS_MAX })
    const tokenId = context.newId()
    const { hash, prefix } = key
    const token: StoredToken = { name, prefix, hash, createdAtMs: nowMs, revokedAtMs: null, role }
    const grant = { kind: 'operator', accountId: null, serverId: null, mode: null, streamId: null } as const
    return {
      kind: 'done',
      reply: { kind: 'token', tokenId, token },
      ops: [
        ...newKeyOps(shard, key, { ...grant, tokenId, name, role, createdAtMs: nowMs }),
        ...auditOps(context, by, { targets: { tokenId }, before: null, after: { name, role, prefix } }),
      ],
    }
  },
}

export interface RevokeOperatorKeyBody {
  readonly tokenId: string
  readonly by: OperatorAct
}

export const revokeOperatorKey: CommandType<RevokeOperatorKeyBody, TokenReply | Refused> = {
  name: 'revoke-operator-key',
  entities: () => [],
  counters: () => [],
  facts: (_body, _states, { shard }) => [keysFact(shard)],
  decide({ tokenId, by }, _states, facts, context) {
    const { shard, nowMs } = context
    const keys = facts.hash(keysFact(shard).key)
    const packed = keys.get(tokenId)
    if (packed === undefined) return refuse('not_found')
    const token = unpackToken(packed)
    if (token.revokedAtMs !== null) return { kind: 'done', reply: { kind: 'token', tokenId, token } }
    const admins = activeOf(keys).filter(isAdmin)
    if (isAdmin(token) && admins.length === 1) return refuse('last_operator_key')
    const revoked = { ...token, revokedAtMs: nowMs }
    const subject = { targets: { tokenId }, before: { revokedAtMs: null }, after: { revokedAtMs: nowMs } }
    return {
      kind: 'done',
      reply: { kind: 'token', tokenId, token: revoked },
      ops: [...revokedKeyOps(shard, OPERATOR_OWNER, { tokenId, token: revoked }), ...auditOps(context, by, subject)],
    }
  },
}

export interface NoteOperatorUseBody {
  readonly tokenId: string
}

/** Records that a key is in use, to the hour. */
export const noteOperatorUse: CommandType<NoteOperatorUseBody, { readonly kind: 'noted' }> = {
  name: 'note-operator-use',
  entities: () => [],
  counters: () => [],
  facts: ({ tokenId }, _states, { shard }) => [
    { read: 'fields', key: tokensKey(shard, OPERATOR_OWNER), fields: [tokenId] },
  ],
  decide({ tokenId }, _states, facts, { shard, nowMs }) {
    const key = tokensKey(shard, OPERATOR_OWNER)
    const packed = facts.field(key, tokenId)
    const token = packed === null ? null : unpackToken(packed)
    const isDue = token !== null && token.revokedAtMs === null && nowMs - (token.usedAtMs ?? 0) >= HOUR_MS
    const args = isDue ? [tokenId, packToken({ ...token, role: token.role ?? 'admin', usedAtMs: nowMs })] : []
    return { kind: 'done', reply: { kind: 'noted' }, ops: isDue ? [{ key, write: 'HSET', args }] : [] }
  },
}

/** Keys of earlier versions have no role. */
function isAdmin({ role = 'admin' }: StoredToken): boolean {
  return role === 'admin'
}

function activeOf(keys: ReadonlyMap<string, string>): StoredToken[] {
  return [...keys.values()].map(unpackToken).filter(({ revokedAtMs }) => revokedAtMs === null)
}
