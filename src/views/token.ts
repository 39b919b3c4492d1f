/**
 * token - keys of a server or an account as they are listed: without their values, newest first
 *
 * Keys: `token-ids:<owner>`, `tokens:<owner>`, `key:<sha256>`
 *
 * Spec key.list, list.page
 */

import type { Token as TokenResource } from '../../schemas/token.ts'
import { type StoredToken, unpackToken } from '../state/api-key.ts'
import { tokenIdsKey, tokensKey } from '../state/keys.ts'
import { formatInstant, formatInstantOrNull } from './instant.ts'
import { keyFact, ownerOfRow, type Reader } from './key.ts'
import { type Page, readNewest } from './newest.ts'

/** The resource of a key. */
export function formatToken(tokenId: string, { name, prefix, createdAtMs, revokedAtMs }: StoredToken): TokenResource {
  return {
    tokenId,
    name,
    prefix,
    createdAt: formatInstant(createdAtMs),
    revokedAt: formatInstantOrNull(revokedAtMs),
  }
}

/** A page of an owner's keys. `keyHash` must be live; null if the key was checked earlier. */
export async function listTokens(
  read: Reader,
  { shard, ownerId, keyHash }: { shard: number; ownerId: string; keyHash: string | null },
  { limit, after }: Page,
): Promise<{ tokens: TokenResource[]; next: string | null } | 'unauthorized' | 'unavailable'> {
  const key = tokenIdsKey(shard, ownerId)
  const [proof, found] = await Promise.all([
    keyHash === null ? undefined : read(shard, [keyFact(shard, keyHash)]),
    readNewest(read, [{ shard, key }], { limit: limit + 1, after }),
  ])
  if (proof === null || found === null) return 'unavailable'
  if (keyHash !== null && ownerOfRow(keyHash, proof?.[0]) === null) return 'unauthorized'
  const ids = found.slice(0, limit)
  const seen = await read(shard, [{ read: 'fields', key: tokensKey(shard, ownerId), fields: ids }])
  if (seen === null) return 'unavailable'
  const rows = seen[0]
  const tokens = ids.flatMap((id, index) => {
    const row = rows[index]
    return row === null || row === undefined ? [] : [formatToken(id, unpackToken(row))]
  })
  return { tokens, next: found.length > limit ? (ids.at(-1) ?? null) : null }
}
