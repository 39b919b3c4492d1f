/**
 * people - the members of an account with their roles and last use, and the open invitations
 *
 * Members are stored with the account, names with each user, so this takes one read of the account and one for each
 * user.
 *
 * Keys: `members:<account>`, `invitations:<account>`, `member-sessions:<account>:<user>`, `key:<sha256>`, `user:<id>`
 *
 * Spec member.role, invitation.send
 */

import { homeShard, msOf } from '../../../cluster/id.ts'
import type { Invitation, Member } from '../../../schemas/dashboard/people.ts'
import {
  invitationEndMs,
  invitationsFact,
  membersFact,
  roleOf,
  type StoredInvitation,
  type StoredMember,
  unpackInvitation,
  unpackMember,
} from '../../state/dashboard/member.ts'
import { memberSessionsKey } from '../../state/dashboard/places.ts'
import { sessionFact } from '../../state/dashboard/session.ts'
import { hasFactor } from '../../state/dashboard/user.ts'
import { formatInstant, formatInstantOrNull } from '../instant.ts'
import type { Reader } from '../key.ts'
import { readUser } from './user.ts'

/** Index of `seen` in the result of `sessionFact`. */
const SEEN = 7

/** All members, those who joined first in front; null when the store did not answer. */
export async function readMembers(read: Reader, accountId: string): Promise<Member[] | null> {
  const shard = homeShard(accountId)
  const seen = await read(shard, [membersFact(shard, accountId)])
  if (seen === null) return null
  const rows = [...seen[0]].map(([userId, packed]) => ({ userId, member: unpackMember(packed) }))
  const members = await Promise.all(rows.map((row) => readMember(read, accountId, row)))
  if (members.includes(null)) return null
  return (members as Member[]).sort((one, other) => (one.joinedAt < other.joinedAt ? -1 : 1))
}

/** One member; null when the store did not answer. */
export async function readMember(
  read: Reader,
  accountId: string,
  { userId, member }: { readonly userId: string; readonly member: StoredMember },
): Promise<Member | null> {
  const [user, lastSeenMs] = await Promise.all([readUser(read, userId), readLastSeen(read, accountId, userId)])
  if (user === 'unavailable' || lastSeenMs === null) return null
  return {
    userId,
    address: user?.address ?? '',
    name: user?.name ?? '',
    ...roleOf(member.level),
    secondFactor: user !== null && hasFactor(user),
    joinedAt: formatInstant(member.sinceMs),
    lastSeenAt: formatInstantOrNull(lastSeenMs === 0 ? null : lastSeenMs),
  }
}

/** When a session of a member was last used; 0 if none is active; null if the store did not answer. */
async function readLastSeen(read: Reader, accountId: string, userId: string): Promise<number | null> {
  const shard = homeShard(accountId)
  const seen = await read(shard, [{ read: 'hash', key: memberSessionsKey(shard, accountId, userId) }])
  if (seen === null) return null
  const hashes = [...seen[0].values()]
  const rows =
    hashes.length === 0
      ? []
      : await read(
          shard,
          hashes.map((hash) => sessionFact(shard, hash)),
        )
  if (rows === null) return null
  return Math.max(0, ...rows.map((row) => Number(row[SEEN] ?? 0)))
}

/** Open invitations, the newest first; null if the store did not answer. */
export async function readInvitations(read: Reader, accountId: string, nowMs: number): Promise<Invitation[] | null> {
  const shard = homeShard(accountId)
  const seen = await read(shard, [invitationsFact(shard, accountId)])
  if (seen === null) return null
  const rows = [...seen[0]].map(([id, packed]) => ({ id, invitation: unpackInvitation(packed) }))
  return rows
    .filter(({ invitation }) => invitationEndMs(invitation) > nowMs)
    .sort((one, other) => msOf(other.id) - msOf(one.id))
    .map(({ id, invitation }) => formatInvitation(id, invitation))
}

/** The resource of an invitation. */
export function formatInvitation(invitationId: string, invitation: StoredInvitation): Invitation {
  const { address, level, createdAtMs, sentAtMs } = invitation
  return {
    invitationId,
    address,
    ...roleOf(level),
    createdAt: formatInstant(createdAtMs),
    sentAt: formatInstant(sentAtMs),
    expiresAt: formatInstant(invitationEndMs(invitation)),
  }
}
