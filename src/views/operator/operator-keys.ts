/**
 * operator-keys - the keys of the operators, without their values, newest first, and their names
 *
 * Keys: `token-ids:operator`, `tokens:operator`, on shard 0
 *
 * Spec key.list, list.page
 */

import type { OperatorKeyResource } from '../../../schemas/operator/operator-key.ts'
import { OPERATOR_OWNER, type StoredToken, unpackToken } from '../../state/api-key.ts'
import { DESK_SHARD } from '../../state/dashboard/desk.ts'
import { tokenIdsKey, tokensKey } from '../../state/keys.ts'
import { formatInstantOrNull } from '../instant.ts'
import type { Reader } from '../key.ts'
import { type Page, readNewest } from '../newest.ts'
import { formatToken } from '../token.ts'

/** The resource of an operator's key. */
export function formatOperatorKey(tokenId: string, token: StoredToken): OperatorKeyResource {
  const { role, usedAtMs } = token
  return { ...formatToken(tokenId, token), role: role ?? 'admin', lastUsedAt: formatInstantOrNull(usedAtMs ?? null) }
}

/** A page of the keys; null if the store did not answer. */
export async function listOperatorKeys(
  read: Reader,
  { limit, after }: Page,
): Promise<{ tokens: OperatorKeyResource[]; next: string | null } | null> {
  const key = tokenIdsKey(DESK_SHARD, OPERATOR_OWNER)
  const found = await readNewest(read, [{ shard: DESK_SHARD, key }], { limit: limit + 1, after })
  if (found === null) return null
  const ids = found.slice(0, limit)
  const rows = await readTokens(read, ids)
  if (rows === null) return null
  const tokens = ids.flatMap((id) => {
    const token = rows.get(id)
    return token === undefined ? [] : [formatOperatorKey(id, token)]
  })
  return { tokens, next: found.length > limit ? (ids.at(-1) ?? null) : null }
}

/** Names of keys by their ids; null if the store did not answer. */
export async function readOperatorNames(
  read: Reader,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string> | null> {
  const rows = await readTokens(read, ids)
  return rows === null ? null : new Map([...rows].map(([id, { name }]) => [id, name]))
}

async function readTokens(read: Reader, ids: readonly string[]): Promise<ReadonlyMap<string, StoredToken> | null> {
  if (ids.length === 0) return new Map()
  const fields = [...new Set(ids)]
  const seen = await read(DESK_SHARD, [{ read: 'fields', key: tokensKey(DESK_SHARD, OPERATOR_OWNER), fields }])
  if (seen === null) return null
  return new Map(
    fields.flatMap((id, at): [string, StoredToken][] => {
      const row = seen[0][at]
      return row === null || row === undefined ? [] : [[id, unpackToken(row)]]
    }),
  )
}
