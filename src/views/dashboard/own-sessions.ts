/**
 * own-sessions - the active sessions of a user in all accounts, the last used first
 *
 * Keys: `sessions:<user>`, `key:<sha256>`, `account:<id>`
 *
 * Spec session.list
 */

import { homeShard } from '../../../cluster/id.ts'
import type { SessionList } from '../../../schemas/dashboard/me.ts'
import { type AccountState, accountRef } from '../../state/account.ts'
import { SESSION_FIELDS, sessionEndMs, sessionFact, sessionOfRow } from '../../state/dashboard/session.ts'
import { unpackSessionPlace, userSessionsFact } from '../../state/dashboard/user.ts'
import { entityFact, parseState } from '../entity.ts'
import { formatInstant } from '../instant.ts'
import type { Reader } from '../key.ts'

export interface OwnSession {
  readonly resource: SessionList['sessions'][number]
  /** SHA-256 of its token, hex. */
  readonly hash: string
}

/** Null when the store did not answer. */
export async function readOwnSessions(
  read: Reader,
  { userId, nowMs, currentId }: { readonly userId: string; readonly nowMs: number; readonly currentId: string | null },
): Promise<OwnSession[] | null> {
  const shard = homeShard(userId)
  const seen = await read(shard, [userSessionsFact(shard, userId)])
  if (seen === null) return null
  const found = await Promise.all(
    [...seen[0]].map(async ([sessionId, packed]) => {
      const place = unpackSessionPlace(packed)
      const { accountId, hash, createdAtMs, userAgent } = place
      const at = homeShard(accountId)
      const values = await read(at, [sessionFact(at, hash), entityFact(at, accountRef(accountId))])
      if (values === null) return null
      const row = sessionOfRow(new Map(SESSION_FIELDS.map((field, n) => [field, values[0][n] ?? null])))
      if (row === null || sessionEndMs(row) <= nowMs) return []
      const resource = {
        sessionId,
        accountId,
        accountName: parseState<AccountState>(values[1])?.name ?? null,
        createdAt: formatInstant(createdAtMs),
        lastSeenAt: formatInstant(row.seenMs),
        expiresAt: formatInstant(sessionEndMs(row)),
        userAgent,
        current: sessionId === currentId,
      }
      return [{ resource, hash }]
    }),
  )
  if (found.includes(null)) return null
  const sessions = (found as OwnSession[][]).flat()
  return sessions.sort((one, other) => (one.resource.lastSeenAt < other.resource.lastSeenAt ? 1 : -1))
}
