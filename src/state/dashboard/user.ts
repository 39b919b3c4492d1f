/**
 * user - a person who signs in: address, name, password, second factors, and the index of accounts.
 *
 * Keys, on the shard of the HMAC of the address: `logins` hash HMAC -> userId; `user:<id>` hash `address`, `name`,
 * `created`, `password` (scrypt), `links` (number of used links), `accounts` (JSON, an index: the account decides),
 * `joins` (number of steps on that list), `unsure` (JSON, account -> ms of the last step, until the account was
 * checked), `devices` (JSON, ids, the last one to sign in first), `totp` (the authenticator's secret, sealed), `step`
 * (the last used time step), `codes` (JSON, HMACs of unused recovery codes), `passkeys` (JSON); `sessions:<user>` hash
 * sessionId -> `[accountId, hash, ms, user agent]`
 *
 * Spec member.index, session.password, session.factor, session.passkey, session.list
 */

import type { FactOf } from '../../../cluster/behaviour.ts'
import { loginsKey, userKey, userSessionsKey } from './places.ts'

/** A user as it is stored. */
export interface User {
  readonly userId: string
  readonly address: string
  readonly name: string
  readonly createdAtMs: number
  /** Null if none was chosen. */
  readonly password: string | null
  /** The number of used links of this user; using one invalidates earlier ones. */
  readonly linkRound: number
  readonly accounts: readonly string[]
  /** The number of steps on that list, which shows whether an earlier read is outdated. */
  readonly joins: number
  /** Accounts that were put there or taken off, or are about to be, -> when, ms: it may be half done. */
  readonly unsure: Readonly<Record<string, number>>
  /** Ids of the devices in which this password signed in, the last one first. */
  readonly devices: readonly string[]
  /** Sealed secret of the authenticator, base64; null: none. */
  readonly totp: string | null
  /** The last used step of the authenticator. */
  readonly totpStep: number
  /** HMACs of recovery codes that were not used. */
  readonly codes: readonly string[]
  readonly passkeys: readonly StoredPasskey[]
}

/** A passkey of a user. */
export interface StoredPasskey {
  readonly passkeyId: string
  /** As browsers name it, base64url. */
  readonly credentialId: string
  /** COSE key, base64url. */
  readonly publicKey: string
  /** Its reported signature counter; 0 if it has none. */
  readonly counter: number
  readonly transports: readonly string[]
  readonly name: string
  readonly createdAtMs: number
  /** Null: not yet. */
  readonly usedAtMs: number | null
}

/** The place of a user's session. */
export interface SessionPlace {
  readonly accountId: string
  /** SHA-256 of its token, hex. */
  readonly hash: string
  readonly createdAtMs: number
  readonly userAgent: string
}

export const USER_FIELDS = [
  'address',
  'name',
  'created',
  'password',
  'links',
  'accounts',
  'totp',
  'step',
  'codes',
  'passkeys',
  'joins',
  'unsure',
  'devices',
] as const

/** The factors of a user without a second factor. */
export const NO_FACTORS = { totp: null, totpStep: 0, codes: [], passkeys: [] } as const

/** The second factors of a user. */
export function factorsOf({ totp, passkeys }: Pick<User, 'totp' | 'passkeys'>): ('totp' | 'passkey')[] {
  return [...(totp === null ? [] : (['totp'] as const)), ...(passkeys.length === 0 ? [] : (['passkey'] as const))]
}

/** Whether a user signs in with more than a password. */
export function hasFactor(user: Pick<User, 'totp' | 'passkeys'>): boolean {
  return factorsOf(user).length > 0
}

/** The read of a user. */
export function userFact(shard: number, userId: string): FactOf<'fields'> {
  return { read: 'fields', key: userKey(shard, userId), fields: USER_FIELDS }
}

/** The read of the user with an address. */
export function loginFact(shard: number, hmac: string): FactOf<'fields'> {
  return { read: 'fields', key: loginsKey(shard), fields: [hmac] }
}

/** The read of a user's sessions. */
export function userSessionsFact(shard: number, userId: string): FactOf<'hash'> {
  return { read: 'hash', key: userSessionsKey(shard, userId) }
}

/** The user read by `userFact`, or null. */
export function userOfRow(userId: string, row: readonly (string | null)[]): User | null {
  const [address, name, created, password, links, accounts, totp, step, codes, passkeys, joins, unsure, devices] = row
  if (address === null || address === undefined) return null
  return {
    userId,
    address,
    name: name ?? '',
    createdAtMs: Number(created ?? 0),
    password: password || null,
    linkRound: Number(links ?? 0),
    accounts: JSON.parse(accounts || '[]') as string[],
    joins: Number(joins ?? 0),
    unsure: JSON.parse(unsure || '{}') as Record<string, number>,
    devices: JSON.parse(devices || '[]') as string[],
    totp: totp || null,
    totpStep: Number(step ?? 0),
    codes: JSON.parse(codes || '[]') as string[],
    passkeys: JSON.parse(passkeys || '[]') as StoredPasskey[],
  }
}

/** The stored fields of a user, or of its changes. */
export function fieldsOfUser(user: Partial<Omit<User, 'userId'>>): string[] {
  const { address, name, createdAtMs, password, linkRound, accounts, totp, totpStep, codes } = user
  const { passkeys, joins, unsure, devices } = user
  const fields: Record<string, string | undefined> = {
    address,
    name,
    created: createdAtMs?.toString(),
    password: password === null ? '' : password,
    links: linkRound?.toString(),
    accounts: accounts && JSON.stringify(accounts),
    totp: totp === null ? '' : totp,
    step: totpStep?.toString(),
    codes: codes && JSON.stringify(codes),
    passkeys: passkeys && JSON.stringify(passkeys),
    joins: joins?.toString(),
    unsure: unsure && JSON.stringify(unsure),
    devices: devices && JSON.stringify(devices),
  }
  return Object.entries(fields).flatMap(([field, value]) => (value === undefined ? [] : [field, value]))
}

/** A session of a user, with its id. */
export interface NamedSession extends SessionPlace {
  readonly sessionId: string
}

/** The sessions that `userSessionsFact` has read. */
export function namedSessions(rows: ReadonlyMap<string, string>): NamedSession[] {
  return [...rows].map(([sessionId, text]) => ({ sessionId, ...unpackSessionPlace(text) }))
}

/** Packs the place of a session. */
export function packSessionPlace({ accountId, hash, createdAtMs, userAgent }: SessionPlace): string {
  return JSON.stringify([accountId, hash, createdAtMs, userAgent])
}

/** Unpacks it. */
export function unpackSessionPlace(text: string): SessionPlace {
  const [accountId, hash, createdAtMs, userAgent] = JSON.parse(text) as [string, string, number, string]
  return { accountId, hash, createdAtMs, userAgent }
}
