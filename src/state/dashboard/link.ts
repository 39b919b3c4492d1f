/**
 * link - a single-use link into the dashboard.
 *
 * Its token is its id with a MAC, so the store holds no usable token. The first two hex digits of the id are its
 * shard: that of a user for `sign-in` and `reset`, and of an account for `setup` and `invitation`. `round` is the
 * number of used links of its kind when it was made: using one invalidates its siblings.
 *
 * Links of the operator for one address are siblings in all accounts: using one invalidates those made before, and none
 * works once the key that made it is revoked.
 *
 * Keys: `link:<id>` hash `purpose`, `owner` (user or account), `invitation`, `address`, `level`, `round`, `made`,
 * `ends`, `used`, `operator` (SHA-256 of the key that made it), `factors` (not empty if its use removes its user's
 * second factors); it expires a day after its end. `used-links:<HMAC>`, on the shard of the address's HMAC: hash `at`,
 * as long as earlier links may be valid
 *
 * Spec link.once, link.purpose, link.operator
 */

import type { FactOf, Op } from '../../../cluster/behaviour.ts'
import { SHARDS } from '../../../cluster/id.ts'
import type { LinkPurpose } from '../../../schemas/dashboard/link.ts'
import { INVITATION_DAYS, MAILED_LINK_MINUTES, SETUP_HOURS } from '../../../schemas/limits.ts'
import type { Level } from '../../../schemas/route.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../calendar.ts'
import { linkKey, usedLinksKey } from './places.ts'

export interface StoredLink {
  readonly purpose: LinkPurpose
  /** The user of `sign-in` and `reset`, otherwise the account. */
  readonly ownerId: string
  readonly invitationId: string | null
  /** Null if its user enters an address. */
  readonly address: string | null
  /** The role that its user gets; null if it makes no member. */
  readonly level: Level | null
  readonly round: number
  readonly madeAtMs: number
  readonly endsAtMs: number
  /** SHA-256 of the operator's key that has made it; null if no operator made it. */
  readonly operatorHash: string | null
  /** Whether using it removes the second factors of the user with its address. */
  readonly removesFactors: boolean
}

const LINK_FIELDS = [
  'purpose',
  'owner',
  'invitation',
  'address',
  'level',
  'round',
  'made',
  'ends',
  'used',
  'operator',
  'factors',
] as const
const LINK_ID = /^[0-9a-f]{2}[0-9a-f]{32}$/
/** How long a link of a purpose works. */
const LIVES_MS: Readonly<Record<LinkPurpose, number>> = {
  setup: SETUP_HOURS * HOUR_MS,
  invitation: INVITATION_DAYS * DAY_MS,
  'sign-in': MAILED_LINK_MINUTES * MINUTE_MS,
  reset: MAILED_LINK_MINUTES * MINUTE_MS,
}

/** Expiry of a link created now. */
export function linkEndMs(purpose: LinkPurpose, nowMs: number): number {
  return nowMs + LIVES_MS[purpose]
}

/** Makes the id of a link. Takes its shard and 32 random hex digits. */
export function makeLinkId(shard: number, random: string): string {
  return shard.toString(16).padStart(2, '0') + random
}

/** The shard of a link's id; null if it is not one. */
export function shardOfLink(linkId: string): number | null {
  if (!LINK_ID.test(linkId)) return null
  const shard = Number.parseInt(linkId.slice(0, 2), 16)
  return shard < SHARDS ? shard : null
}

/** The read of a link. */
export function linkFact(shard: number, linkId: string): FactOf<'fields'> {
  return { read: 'fields', key: linkKey(shard, linkId), fields: LINK_FIELDS }
}

/** The link read by `linkFact`; null if it does not exist, was used, or has expired. */
export function linkOfRow(row: readonly (string | null)[], nowMs: number): StoredLink | null {
  const [purpose, owner, invitation, address, level, round, made, ends, used, operator, factors] = row
  if (!purpose || used || Number(ends) <= nowMs) return null
  return {
    purpose: purpose as LinkPurpose,
    ownerId: owner ?? '',
    invitationId: invitation || null,
    address: address || null,
    level: (level || null) as Level | null,
    round: Number(round ?? 0),
    madeAtMs: Number(made ?? 0),
    endsAtMs: Number(ends),
    operatorHash: operator || null,
    removesFactors: Boolean(factors),
  }
}

/** A link that is made; by default it does not remove second factors. */
export type NewLink = Omit<StoredLink, 'removesFactors'> & Partial<Pick<StoredLink, 'removesFactors'>>

/** The writes of a new link. */
export function linkOps(shard: number, linkId: string, link: NewLink): Op[] {
  const { purpose, ownerId, invitationId, address, level, round, madeAtMs, endsAtMs, operatorHash } = link
  const fields = {
    purpose,
    owner: ownerId,
    invitation: invitationId ?? '',
    address: address ?? '',
    level: level ?? '',
    round: String(round),
    made: String(madeAtMs),
    ends: String(endsAtMs),
    used: '',
    operator: operatorHash ?? '',
    factors: link.removesFactors ? 'remove' : '',
  }
  const key = linkKey(shard, linkId)
  return [
    { key, write: 'HSET', args: Object.entries(fields).flat() },
    { key, write: 'PEXPIREAT', args: [String(endsAtMs + DAY_MS)] },
  ]
}

/** The write that uses a link up. */
export function usedLinkOp(shard: number, linkId: string, nowMs: number): Op {
  return { key: linkKey(shard, linkId), write: 'HSET', args: ['used', String(nowMs)] }
}

/** The read of when a link of the operator for an address was used last. */
export function usedLinksFact(shard: number, hmac: string): FactOf<'fields'> {
  return { read: 'fields', key: usedLinksKey(shard, hmac), fields: ['at'] }
}

/** Whether a link made then still works. Takes the result of `usedLinksFact`. */
export function isLaterThanUse([at]: readonly (string | null | undefined)[], madeAtMs: number): boolean {
  return at === null || at === undefined || madeAtMs > Number(at)
}

/** The writes that use up all earlier links of the operator for an address. */
export function usedLinksOps(shard: number, hmac: string, untilMs: number): Op[] {
  const key = usedLinksKey(shard, hmac)
  return [
    { key, write: 'HSET', args: ['at', String(untilMs)] },
    { key, write: 'PEXPIREAT', args: [String(linkEndMs('setup', untilMs) + DAY_MS)] },
  ]
}
