/**
 * buckets - the hashes of an account's persons, which stay small however many persons an account has.
 *
 * The first persons of an account are in one hash, numbered from 1: most accounts never have more, and the owner of the
 * shard knows that hash completely, so a new address costs no read. All others are in buckets by the first digits of
 * their HMAC, in levels: the buckets of a level have one digit more than those of the level above. A bucket that is
 * full sends new persons to the next level. Redis stores a hash of at most 128 fields in half the memory, so only the
 * last level has no limit. A number names its level and its bucket, so number -> address needs no index, and no row
 * ever moves.
 *
 * `#` in a bucket: `<numbers given out> [<of these, persons that have left>]`. `#` in the first hash: the same without
 * the second, and once it is full FIRST_PERSONS plus the deepest level in use, which is known wherever that hash is.
 *
 * Keys: `person:<account>`, `person:<account>:<x…>`, two to five hex digits
 */

import { HMAC_PREFIX_BITS, prefixOfHmac } from '../hash-fraction.ts'
import { firstPersonsKey, personKey } from '../keys.ts'

/** Field that counts the numbers of a hash. */
export const COUNT_FIELD = '#'
/** Persons of the first hash. */
export const FIRST_PERSONS = 1_024
/** Persons of a bucket that is full: two fields each, of 128. */
export const BUCKET_PERSONS = 48

/** Buckets that share a number of digits. Numbers are from `from` to below `to`, each = from + n x buckets + bucket. */
export interface BucketLevel {
  readonly index: number
  readonly digits: number
  readonly buckets: number
  readonly from: number
  readonly to: number
  /** Persons of a bucket. */
  readonly personsMax: number
}

const FROM = [FIRST_PERSONS, 2 ** 27, 2 ** 28, 2 ** 30] as const
/** Buckets of 3,000, 50,000, 800,000 persons and of any number, 16 times as many in each. */
export const LEVELS: readonly BucketLevel[] = FROM.map((from, index) => ({
  index,
  digits: index + 2,
  buckets: 16 ** (index + 2),
  from,
  to: FROM[index + 1] ?? Number.MAX_SAFE_INTEGER,
  personsMax: index + 1 < FROM.length ? BUCKET_PERSONS : Number.MAX_SAFE_INTEGER,
}))
const LAST_LEVEL = LEVELS.length - 1

/** Bucket of an HMAC in a level. */
export function bucketIn({ digits }: BucketLevel, hmac: string): number {
  return prefixOfHmac(hmac) >> (HMAC_PREFIX_BITS - digits * 4)
}

/** The hash of a bucket. */
export function bucketKey(
  { digits }: BucketLevel,
  bucket: number,
  account: { shard: number; accountId: string },
): string {
  return personKey(account.shard, account.accountId, bucket.toString(16).padStart(digits, '0'))
}

/** Every hash that may hold the row of an HMAC, with the levels that are in use at most. */
export function personKeys(
  account: { shard: number; accountId: string },
  hmac: string,
  deepest: number = LAST_LEVEL,
): readonly string[] {
  const levels = LEVELS.slice(0, deepest + 1)
  return [
    firstPersonsKey(account.shard, account.accountId),
    ...levels.map((level) => bucketKey(level, bucketIn(level, hmac), account)),
  ]
}

/** The hash that holds a person, by number. */
export function keyOfNumber(shard: number, accountId: string, number: number): string {
  if (number <= FIRST_PERSONS) return firstPersonsKey(shard, accountId)
  const level = LEVELS.find(({ to }) => number < to) as BucketLevel
  return bucketKey(level, number % level.buckets, { shard, accountId })
}

/** What `#` of a bucket counts. */
export interface BucketCount {
  /** Numbers given out. */
  readonly given: number
  /** Persons of these numbers that have left. */
  readonly left: number
}

export function packCount({ given, left }: BucketCount): string {
  return left === 0 ? String(given) : `${given} ${left}`
}

export function unpackCount(packed: string | null): BucketCount {
  const [given = 0, left = 0] = (packed ?? '0').split(' ').map(Number)
  return { given, left }
}

/** The next number of a bucket; null if the bucket is full. */
export function nextNumber(level: BucketLevel, bucket: number, { given, left }: BucketCount): number | null {
  const number = level.from + (given + 1) * level.buckets + bucket
  return given - left < level.personsMax && number < level.to ? number : null
}

/** `#` of a first hash that is full, if buckets are in use down to a level. */
export function countOfDeepest(level: number): string {
  return String(FIRST_PERSONS + level)
}

/** The deepest level in use, from `#` of the first hash; -1 for none. */
export function deepestOf(count: string | null): number {
  const deepest = Number(count ?? 0) - FIRST_PERSONS
  return Math.max(-1, Math.min(deepest, LAST_LEVEL))
}
