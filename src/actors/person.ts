/**
 * person - addresses of an account as numbers, so that no stream ever holds an address.
 *
 * Rows of a bucket: HMAC -> `<number> <yyyymm>`, the month in which it was last named, and how many suppression lists it is
 * on where it is on any; number -> address, or once erased `<yyyymm> <pseudonym>`; `#` -> how many numbers the bucket has given out. A number is n x 256 + bucket, n from 1, so
 * that number -> address needs no index. The month stands beside the number because the same read brings both.
 *
 * Key: `person:<account>:<xx>`, xx = first byte of the HMAC
 */

import type { Fact, Facts, Op } from '../../cluster/behaviour.ts'
import { PERSON_BUCKETS, personKey } from './keyspace.ts'

/** What stands under an HMAC. */
export interface PersonRow {
  readonly number: number
  /** `yyyymm` in which it was last named. */
  readonly month: string
  /** Suppression lists that hold the person: its rows stay for as long as there are any. */
  readonly suppressions: number
}

/** An address with its HMAC (22 characters of base64url). */
export interface NamedPerson {
  readonly hmac: string
  readonly address: string
}

/** Field that counts the numbers of a bucket. */
export const COUNT_FIELD = '#'

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIX_BITS = new Uint8Array(128)
for (let index = 0; index < BASE64URL.length; index += 1) SIX_BITS[BASE64URL.charCodeAt(index)] = index

/** Bucket of an HMAC: its first byte. */
export function bucketOfHmac(hmac: string): number {
  return (SIX_BITS[hmac.charCodeAt(0)]! << 2) | (SIX_BITS[hmac.charCodeAt(1)]! >> 4)
}

/** Bucket of a person number. */
export function bucketOfNumber(number: number): number {
  return number % PERSON_BUCKETS
}

/** Packs what stands under an HMAC. */
export function packPerson({ number, month, suppressions }: PersonRow): string {
  return suppressions > 0 ? `${number} ${month} ${suppressions}` : `${number} ${month}`
}

/** Unpacks what stands under an HMAC. */
export function unpackPerson(text: string): PersonRow {
  const space = text.indexOf(' ')
  const month = text.slice(space + 1, space + 7)
  return { number: Number(text.slice(0, space)), month, suppressions: Number(text.slice(space + 8)) }
}

/** The address, or pseudonym, of what stands under a number. */
export function addressOfRow(text: string): string {
  return text.slice(text.indexOf(' ') + 1)
}

/** `yyyymm` of an erased person's row, null for one that is not. */
export function erasedMonthOf(text: string): string | null {
  const space = text.indexOf(' ')
  return space < 0 ? null : text.slice(0, space)
}

/** The read of the row under a number. */
export function addressFact(shard: number, accountId: string, number: number): Fact {
  return { read: 'fields', key: personKey(shard, accountId, bucketOfNumber(number)), fields: [String(number)] }
}

/** The reads that naming these HMACs needs: one for each bucket. */
export function personFacts(shard: number, accountId: string, hmacs: Iterable<string>): Fact[] {
  const buckets = new Map<number, string[]>()
  for (const hmac of hmacs) {
    const bucket = bucketOfHmac(hmac)
    const fields = buckets.get(bucket)
    if (fields === undefined) buckets.set(bucket, [COUNT_FIELD, hmac])
    else fields.push(hmac)
  }
  const facts: Fact[] = []
  for (const [bucket, fields] of buckets)
    facts.push({ read: 'fields', key: personKey(shard, accountId, bucket), fields })
  return facts
}

/**
 * The write that counts one suppression list more, or one less; null where the address has no row any more. In: the
 * person's row must have been fetched.
 */
export function countListOp(
  facts: Facts,
  by: 1 | -1,
  { shard, accountId, hmac }: { shard: number; accountId: string; hmac: string },
): Op | null {
  const { key, row } = personRowIn(facts, { shard, accountId, hmac })
  if (row === null) return null
  const suppressions = Math.max(0, row.suppressions + by)
  return { key, write: 'HSET', args: [hmac, packPerson({ ...row, suppressions })] }
}

/** The row of an address, null where it has none, and its key. It must have been fetched. */
export function personRowIn(
  facts: Facts,
  { shard, accountId, hmac }: { shard: number; accountId: string; hmac: string },
): { readonly key: string; readonly row: PersonRow | null } {
  const key = personKey(shard, accountId, bucketOfHmac(hmac))
  const packed = facts.field(key, hmac)
  return { key, row: packed === null ? null : unpackPerson(packed) }
}

interface Bucket {
  readonly key: string
  /** Numbers given out, or -1 before it was looked at. */
  count: number
  readonly writes: string[]
}

/** Numbers of the persons of one turn; what is new or was last named in an earlier month is written by `ops`. */
export class PersonNumbers {
  private readonly shard: number
  private readonly accountId: string
  private readonly facts: Facts
  private readonly known = new Map<string, number>()
  private readonly buckets = new Map<number, Bucket>()

  constructor(facts: Facts, { shard, accountId }: { shard: number; accountId: string }) {
    this.facts = facts
    this.shard = shard
    this.accountId = accountId
  }

  /** The number of a person named in `month` (`yyyymm`). Its facts (`personFacts`) must have been fetched. */
  numberOf({ hmac, address }: NamedPerson, month: string): number {
    const known = this.known.get(hmac)
    if (known !== undefined) return known
    const bucket = this.bucketOf(hmac)
    const packed = this.facts.field(bucket.key, hmac)
    const number =
      packed === null ? this.give(bucket, { hmac, address }, month) : this.stamp(bucket, { hmac, packed, month })
    this.known.set(hmac, number)
    return number
  }

  /** The writes that what was named so far needs: at most one for each bucket. */
  ops(): Op[] {
    const ops: Op[] = []
    for (const { key, count, writes } of this.buckets.values()) {
      if (count >= 0) writes.push(COUNT_FIELD, String(count))
      if (writes.length > 0) ops.push({ key, write: 'HSET', args: writes })
    }
    return ops
  }

  private bucketOf(hmac: string): Bucket {
    const number = bucketOfHmac(hmac)
    let bucket = this.buckets.get(number)
    if (bucket === undefined) {
      bucket = { key: personKey(this.shard, this.accountId, number), count: -1, writes: [] }
      this.buckets.set(number, bucket)
    }
    return bucket
  }

  private give(bucket: Bucket, { hmac, address }: NamedPerson, month: string): number {
    if (bucket.count < 0) bucket.count = Number(this.facts.field(bucket.key, COUNT_FIELD) ?? 0)
    bucket.count += 1
    const number = bucket.count * PERSON_BUCKETS + bucketOfHmac(hmac)
    bucket.writes.push(hmac, packPerson({ number, month, suppressions: 0 }), String(number), address)
    return number
  }

  private stamp(bucket: Bucket, { hmac, packed, month }: { hmac: string; packed: string; month: string }): number {
    const person = unpackPerson(packed)
    if (person.month < month) bucket.writes.push(hmac, packPerson({ ...person, month }))
    return person.number
  }
}
