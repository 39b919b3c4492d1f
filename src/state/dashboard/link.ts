/**
 * link - a link by which somebody comes in, once.
 *
 * Its token is its id with a MAC over it, so the store holds nothing that works. The first two hex digits of the id are
 * its shard: a user's for `sign-in` and `reset`, an account's for `setup` and `invitation`. `round` is how often links
 * of its kind were used when it was made: one that is used uses up its siblings.
 *
 * Links of the operator for one address are siblings in all accounts: one that was made before another of them was used
 * works no more, and none works once the key that made it was revoked.
 *
 * Keys: `link:<id>` hash `purpose`, `owner` (user or account), `invitation`, `address`, `level`, `round`, `made`,
 * `ends`, `used`, `operator` (SHA-256 of the key that made it), `factors` (not empty: its use takes away its user's
 * second factors); it expires a day after its end. `used-links:<HMAC>`, on the shard of the address's HMAC: hash `at`,
 * as long as links that were made before may live
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
  /** The user of `sign-in` and `reset`, else the account. */
  readonly ownerId: string
  readonly invitationId: string | null
  /** Null: whoever has it says who he is. */
  readonly address: string | null
  /** What it makes of whom it lets in; null where it makes nobody a member. */
  readonly level: Level | null
  readonly round: number
  readonly madeAtMs: number
  readonly endsAtMs: number
  /** SHA-256 of the operator's key that has made it; null: no operator has. */
  readonly operatorHash: string | null
  /** Whether using it takes away the second factors of who has its address. */
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

/** When a link that is made now ends. */
export function linkEndMs(purpose: LinkPurpose, nowMs: number): number {
  return nowMs + LIVES_MS[purpose]
}

/** Makes the id of a link. In: its shard, 32 random hex digits. */
export function makeLinkId(shard: number, random: string): string {
  return shard.toString(16).padStart(2, '0') + random
}

/** The shard of a link's id; null where it is none. */
export function shardOfLink(linkId: string): number | null {
  if (!LINK_ID.test(linkId)) return null
  const shard = Number.parseInt(linkId.slice(0, 2), 16)
  return shard < SHARDS ? shard : null
}

/** The read of a link. */
export function linkFact(shard: number, linkId: string): FactOf<'fields'> {
  return { read: 'fields', key: linkKey(shard, linkId), fields: LINK_FIELDS }
}

/** The link that `linkFact` has read; null where there is none, it was used, or its time is over. */
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

/** A link that is made; it leaves second factors alone where it does not say that it removes them. */
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

/** Whether a link that was made then still works. In: what `usedLinksFact` has read. */
export function isLaterThanUse([at]: readonly (string | null | undefined)[], madeAtMs: number): boolean {
  return at === null || at === undefined || madeAtMs > Number(at)
}

/** The writes that use up all links of the operator for an address that were made until then. */
export function usedLinksOps(shard: number, hmac: string, untilMs: number): Op[] {
  const key = usedLinksKey(shard, hmac)
  return [
    { key, write: 'HSET', args: ['at', String(untilMs)] },
    { key, write: 'PEXPIREAT', args: [String(linkEndMs('setup', untilMs) + DAY_MS)] },
  ]
}
