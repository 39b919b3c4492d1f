/**
 * api-key - the record under the hash of an API key, and whether a key is active.
 *
 * The permissions of a key change only by revocation, so a reader may cache them. Each turn checks that the key is
 * active in the state of its owner, which has the hashes of the active ones.
 *
 * Keys: `key:<sha256>` hash; `tokens:<owner>` hash, tokenId -> `[name, prefix, hash, created ms, revoked ms]`;
 * `token-ids:<owner>` zset, tokenId by the ms of the id
 *
 * Spec key.format, key.revoke
 */

import type { Op } from '../../cluster/behaviour.ts'
import { msOf } from '../../cluster/id.ts'
import type { OperatorRole } from '../../schemas/operator/role.ts'
import { apiKeyKey, tokenIdsKey, tokensKey } from './keys.ts'

export type ApiKeyKind = 'server' | 'account' | 'operator'

/** A live key in its owner's state. */
export interface LiveKey {
  readonly tokenId: string
  /** SHA-256 of the whole key, hex. */
  readonly hash: string
}

/** The permissions of a key. */
export interface ApiKey {
  readonly kind: ApiKeyKind
  /** Null for an operator's. */
  readonly accountId: string | null
  /** Only set for a server's key, like `mode` and `streamId`; otherwise null. */
  readonly serverId: string | null
  readonly tokenId: string
  readonly mode: 'live' | 'test' | null
  /** The server's default stream. */
  readonly streamId: string | null
  readonly revokedAtMs: number | null
  /** Role of an operator's key; null for others. */
  readonly role: OperatorRole | null
}

/** A key in the list of its owner. */
export interface StoredToken {
  readonly name: string
  readonly prefix: string
  readonly hash: string
  readonly createdAtMs: number
  readonly revokedAtMs: number | null
  /** Role of an operator's key; absent for others, and in rows of earlier versions, which mean admin. */
  readonly role?: OperatorRole
  /** For an operator's key the time of its last use, to the hour; absent if no use is recorded. */
  readonly usedAtMs?: number
}

/** A key in a command, without its value. */
export interface NewKey {
  readonly hash: string
  readonly prefix: string
}

/** Owner under which the operator's keys are listed, on shard 0. */
export const OPERATOR_OWNER = 'operator'

/** Name of the key that an owner begins with. */
export const FIRST_KEY_NAME = 'First key'

/** Whether a key with this hash is live. */
export function hasLiveKey(keys: readonly LiveKey[], hash: string): boolean {
  for (const key of keys) if (key.hash === hash) return true
  return false
}

/** Changes of the active keys of a server or an account. */
export type KeyEvent =
  | { readonly type: 'key-made'; readonly key: LiveKey }
  | { readonly type: 'key-revoked'; readonly tokenId: string }

/** The live keys after an event. */
export function applyKeyEvent(keys: readonly LiveKey[], event: KeyEvent): LiveKey[] {
  if (event.type === 'key-made') return [...keys, event.key]
  return keys.filter(({ tokenId }) => tokenId !== event.tokenId)
}

/** Reads the record under a key's hash; null if there is none. */
export function unpackApiKey(fields: ReadonlyMap<string, string>): ApiKey | null {
  const kind = fields.get('kind')
  const tokenId = fields.get('tokenId')
  if (kind === undefined || tokenId === undefined) return null
  return {
    kind: kind as ApiKeyKind,
    accountId: fields.get('accountId') || null,
    serverId: fields.get('serverId') || null,
    tokenId,
    mode: (fields.get('mode') || null) as ApiKey['mode'],
    streamId: fields.get('streamId') || null,
    revokedAtMs: Number(fields.get('revoked') || 0) || null,
    role: roleOfField(kind, fields.get('role')),
  }
}

/** Packs a key of an owner's list. */
export function packToken({ name, prefix, hash, createdAtMs, revokedAtMs, role, usedAtMs }: StoredToken): string {
  const packed: unknown[] = [name, prefix, hash, createdAtMs]
  if (role !== undefined) packed.push(revokedAtMs, role, usedAtMs ?? null)
  else if (revokedAtMs !== null) packed.push(revokedAtMs)
  return JSON.stringify(packed)
}

/** Unpacks a key of an owner's list. */
export function unpackToken(text: string): StoredToken {
  const [name, prefix, hash, createdAtMs, revokedAtMs = null, role, usedAtMs] = JSON.parse(text) as [
    string,
    string,
    string,
    number,
    (number | null)?,
    OperatorRole?,
    (number | null)?,
  ]
  const used = typeof usedAtMs === 'number' ? { usedAtMs } : {}
  return { name, prefix, hash, createdAtMs, revokedAtMs, ...(role !== undefined && { role }), ...used }
}

/** Owner, name and role of a new key. */
export interface KeyGrant extends Omit<ApiKey, 'revokedAtMs' | 'role'> {
  /** Role of an operator's key. */
  readonly role?: OperatorRole
  readonly name: string
  readonly createdAtMs: number
}

/** Writes of a new key; the state of its owner is not among them. */
export function newKeyOps(shard: number, { hash, prefix }: NewKey, grant: KeyGrant): Op[] {
  const { kind, accountId, serverId, tokenId, mode, streamId, role, name, createdAtMs } = grant
  const ownerId = serverId ?? accountId ?? OPERATOR_OWNER
  const token = packToken({ name, prefix, hash, createdAtMs, revokedAtMs: null, ...(role !== undefined && { role }) })
  return [
    {
      key: apiKeyKey(shard, hash),
      write: 'HSET',
      args: fieldsOf({
        kind,
        accountId,
        serverId,
        tokenId,
        mode,
        streamId,
        revoked: '',
        ...(role !== undefined && { role }),
      }),
    },
    { key: tokensKey(shard, ownerId), write: 'HSET', args: [tokenId, token] },
    { key: tokenIdsKey(shard, ownerId), write: 'ZADD', args: [String(msOf(tokenId)), tokenId] },
  ]
}

/** Writes that revoke a key of an owner's list; the state of its owner is not among them. */
export function revokedKeyOps(
  shard: number,
  ownerId: string,
  { tokenId, token }: { readonly tokenId: string; readonly token: StoredToken & { readonly revokedAtMs: number } },
): Op[] {
  return [
    { key: apiKeyKey(shard, token.hash), write: 'HSET', args: ['revoked', String(token.revokedAtMs)] },
    { key: tokensKey(shard, ownerId), write: 'HSET', args: [tokenId, packToken(token)] },
  ]
}

/** The role in a row of an operator's key; rows without one are an admin's. */
export function roleOfField(kind: string, role: string | null | undefined): OperatorRole | null {
  return kind === 'operator' ? ((role || 'admin') as OperatorRole) : null
}

function fieldsOf(values: Readonly<Record<string, string | null>>): string[] {
  return Object.entries(values).flatMap(([field, value]) => [field, value ?? ''])
}
