/**
 * places - the names of the keys that hold the people of the dashboard: users, members, sessions, links, tries, acts.
 *
 * A user is on the shard of the HMAC of its address, a member with the account, counters of a client on the shard of
 * the client's HMAC. The content of each key is described in `src/actors/README.md`.
 */
import { shardTag } from '../../../cluster/keyspace.ts'

/** Hash: HMAC of an address -> userId. */
export const loginsKey = (shard: number): string => `${shardTag(shard)}:logins`
/** Hash: a user. */
export const userKey = (shard: number, userId: string): string => `${shardTag(shard)}:user:${userId}`
/** Hash: sessionId -> the place of the session, for all accounts. */
export const userSessionsKey = (shard: number, userId: string): string => `${shardTag(shard)}:sessions:${userId}`
/** Hash: userId -> role, since when, last seen. */
export const membersKey = (shard: number, accountId: string): string => `${shardTag(shard)}:members:${accountId}`
/** Hash: invitationId -> who is invited as what. */
export const invitationsKey = (shard: number, accountId: string): string =>
  `${shardTag(shard)}:invitations:${accountId}`
/** Hash: sessionId -> hash of its token, of one member. */
export const memberSessionsKey = (shard: number, accountId: string, userId: string): string =>
  `${shardTag(shard)}:member-sessions:${accountId}:${userId}`
/** Hash: settings of an account by its administrators. */
export const settingsKey = (shard: number, accountId: string): string => `${shardTag(shard)}:settings:${accountId}`
/** Lane of mail that the service sends to users. */
export const NOTICE_LANE = 'notice'
/** Lane of users whose memberships are checked with their accounts. */
export const USERS_LANE = 'users'
/** Hash: a link. */
export const linkKey = (shard: number, linkId: string): string => `${shardTag(shard)}:link:${linkId}`
/** Hash: when a link of the operator for an address was used last. */
export const usedLinksKey = (shard: number, hmac: string): string => `${shardTag(shard)}:used-links:${hmac}`
/** Hash: links into the operator's view. */
export const deskLinksKey = (shard: number): string => `${shardTag(shard)}:desk-links`
/** Hash of a completed step. */
export const challengeKey = (shard: number, id: string): string => `${shardTag(shard)}:challenge:${id}`
/** Zset: tries of one kind by one subject, by time. */
export const triesKey = (shard: number, name: string): string => `${shardTag(shard)}:tries:${name}`
/** Zset: actions of an account's members in a month. */
export const actsKey = (shard: number, accountId: string, month: string): string =>
  `${shardTag(shard)}:account-audit:${accountId}:${month}`
