/**
 * person - addresses of an account as numbers, so that no stream ever holds an address.
 *
 * Rows: HMAC -> `<number> <yyyymm>`, the month in which it was last named, and the number of suppression lists it is
 * on, if any, or `r` if it has only sent to us, and so has a number and no address; then `s` if it was ever the sender
 * of a message of the account. Senders have no postings, so a search for them reads the log. Number -> address in
 * lower case, or once erased `<yyyymm> <pseudonym>`; `#` -> how many numbers the hash has given out. Rows other
 * than `#` end with a sum. The month is stored with the number, because one read returns both. `buckets.ts` has
 * the hashes in which these rows are.
 *
 * An erasure removes the row of the HMAC, and the address gets a new number when it is named again.
 *
 * Keys: `person:<account>`, `person:<account>:<x…>`
 */

import type { Fact, Facts, Known, Op } from '../../../cluster/behaviour.ts'
import { Fault } from '../../../cluster/fault.ts'
import { withoutSum, withSum } from '../../../cluster/sum.ts'
import { firstPersonsKey } from '../keys.ts'
import {
  type BucketCount,
  type BucketLevel,
  bucketIn,
  bucketKey,
  COUNT_FIELD,
  countOfDeepest,
  deepestOf,
  FIRST_PERSONS,
  keyOfNumber,
  LEVELS,
  nextNumber,
  packCount,
  personKeys,
  unpackCount,
} from './buckets.ts'

/** The row of an HMAC. */
export interface PersonRow {
  readonly number: number
  /** `yyyymm` in which it was last named. */
  readonly month: string
  /** Number of suppression lists with the person; its rows are kept while there are any. */
  readonly suppressions: number
  /** It has sent mail to the account and was never named by it, so its number has no address. */
  readonly isNumberOnly?: boolean
  /** It was the sender of a message of the account. */
  readonly sends?: boolean
}

/** An address with its HMAC (22 characters of base64url). */
export interface NamedPerson {
  readonly hmac: string
  readonly address: string
}

/** A person that gets a number; with a null `address`, only the number. */
interface Numbered {
  readonly hmac: string
  readonly address: string | null
}

/**
 * Fields of a hash that is read whole: 127 persons. One that is known whole stays so while it grows; a large one that
 * has gone from memory is not read again for the sake of one address.
 */
const WHOLE_MAX = 256
const NUMBER_ONLY = 'r'
const SENDS = ' s'
/** Arguments of one write, because a request may name a thousand persons. An even number. */
const ARGS_EACH = 2_000
const NO_FACTS: readonly Fact[] = []

/** Packs the row of an HMAC. */
export function packPerson({ number, month, suppressions, isNumberOnly, sends }: PersonRow): string {
  if (isNumberOnly === true) return withSum(`${number} ${month} ${NUMBER_ONLY}`)
  if (sends === true) return withSum(`${number} ${month} ${suppressions}${SENDS}`)
  return withSum(suppressions > 0 ? `${number} ${month} ${suppressions}` : `${number} ${month}`)
}

/** Unpacks the row of an HMAC. */
export function unpackPerson(packed: string): PersonRow {
  const text = withoutSum(packed, 'person')
  const space = text.indexOf(' ')
  const number = Number(text.slice(0, space))
  const month = text.slice(space + 1, space + 7)
  const rest = text.slice(space + 8)
  if (rest === NUMBER_ONLY) return { number, month, suppressions: 0, isNumberOnly: true }
  if (rest.endsWith(SENDS)) return { number, month, suppressions: Number(rest.slice(0, -SENDS.length)), sends: true }
  return { number, month, suppressions: Number(rest) }
}

/** The address, or pseudonym, in the row of a number. */
export function addressOfRow(packed: string): string {
  const text = withoutSum(packed, 'address')
  return text.slice(text.indexOf(' ') + 1)
}

/** Packs the row of a number. */
function packAddress(address: string): string {
  return withSum(address.toLowerCase())
}

/** Domain of all pseudonyms (RFC 2606: it never resolves). */
export const ERASED_DOMAIN = '@erased.invalid'

/** A pseudonym as an address. Takes its local part, as in commands and states. */
export function formatPseudonym(name: string): string {
  return name + ERASED_DOMAIN
}

/**
 * The row of an erased person's number. Takes the month `yyyymm` in which it was last named, and the pseudonym's local
 * part.
 */
export function packErased(month: string, name: string): string {
  return withSum(`${month} ${formatPseudonym(name)}`)
}

/** `yyyymm` of an erased person's row, null for one that is not. */
export function erasedMonthOf(packed: string): string | null {
  const text = withoutSum(packed, 'address')
  const space = text.indexOf(' ')
  return space < 0 ? null : text.slice(0, space)
}

/** The read of the row under a number. */
export function addressFact(shard: number, accountId: string, number: number): Fact & { readonly read: 'fields' } {
  return { read: 'fields', key: keyOfNumber(shard, accountId, number), fields: [String(number)] }
}

/** Where the persons of an account are. */
interface Account {
  readonly shard: number
  readonly accountId: string
}

/** The reads that find these HMACs, in the first hash and in a bucket of each level. */
export function personFacts(account: Account, asked: readonly string[]): Fact[] {
  return [firstFact(account, asked), ...bucketFacts(account, asked)]
}

/**
 * The reads for naming these HMACs, as far as the owner knows them: the first hash, and their buckets if that is full
 * and lacks them. The others are in `unreadPersons`.
 */
export function namingFacts(account: Account, asked: readonly string[], known: Known = () => undefined): Fact[] {
  const first = firstFact(account, asked)
  const count = known(first.key, COUNT_FIELD)
  if (count === undefined || hasRoom(count, asked.length)) return [first]
  const absent = asked.filter((hmac) => known(first.key, hmac) === null)
  return [first, ...bucketFacts(account, absent, inUse(count))]
}

/** The reads without which these HMACs, whose `namingFacts` were fetched, cannot be numbered. */
export function unreadPersons(facts: Facts, account: Account, asked: readonly string[]): readonly Fact[] {
  const key = firstPersonsKey(account.shard, account.accountId)
  const count = facts.field(key, COUNT_FIELD)
  if (hasRoom(count, asked.length)) return NO_FACTS
  const absent = asked.filter((hmac) => facts.field(key, hmac) === null)
  return bucketFacts(account, absent, inUse(count)).filter((fact) => !facts.has(fact))
}

/** Whether the first hash can hold `more` persons: then it holds all of the account. */
function hasRoom(count: string | null, more: number): boolean {
  return Number(count ?? 0) + more <= FIRST_PERSONS
}

/** The levels in use, or the first one, which a turn may be the first to use. */
function inUse(count: string | null): readonly BucketLevel[] {
  return LEVELS.slice(0, Math.max(0, deepestOf(count)) + 1)
}

function firstFact({ shard, accountId }: Account, hmacs: readonly string[]): Fact & { readonly read: 'fields' } {
  const key = firstPersonsKey(shard, accountId)
  return { read: 'fields', key, fields: [COUNT_FIELD, ...hmacs], wholeMax: WHOLE_MAX }
}

/** One read for each bucket. Those of the first level are few, so the owner comes to know them completely. */
function bucketFacts(account: Account, hmacs: readonly string[], levels: readonly BucketLevel[] = LEVELS): Fact[] {
  const facts: Fact[] = []
  for (const level of levels) {
    const buckets = new Map<number, string[]>()
    for (const hmac of hmacs) {
      const bucket = bucketIn(level, hmac)
      const fields = buckets.get(bucket)
      if (fields === undefined) buckets.set(bucket, [COUNT_FIELD, hmac])
      else fields.push(hmac)
    }
    const isWhole = level.index === 0
    for (const [bucket, fields] of buckets)
      facts.push({
        read: 'fields',
        key: bucketKey(level, bucket, account),
        fields,
        ...(isWhole && { wholeMax: WHOLE_MAX }),
      })
  }
  return facts
}

/**
 * The write that counts suppression lists more or, below 0, less; null if the address no longer has a row, or if an
 * erasure gave it another number than `number`, the one in the list. The person's rows must have been fetched
 * (`personFacts`).
 */
export function countListOp(
  facts: Facts,
  by: number,
  { hmac, number, ...account }: Account & { hmac: string; number: number },
): Op | null {
  const row = personRowIn(facts, { hmac, ...account })
  if (row === null || row.number !== number) return null
  const suppressions = Math.max(0, row.suppressions + by)
  const key = keyOfNumber(account.shard, account.accountId, row.number)
  return { key, write: 'HSET', args: [hmac, packPerson({ ...row, suppressions })] }
}

/** The row of an address, or null. It must have been fetched (`personFacts`). */
export function personRowIn(facts: Facts, { hmac, ...account }: Account & { hmac: string }): PersonRow | null {
  for (const key of personKeys(account, hmac)) {
    const packed = facts.field(key, hmac)
    if (packed !== null) return unpackPerson(packed)
  }
  return null
}

/** A person of the turn, in the hash that holds it. */
interface Placed {
  readonly rows: Rows
  row: PersonRow
}

interface Rows {
  readonly key: string
  /** `#` as it will be; null if it does not change. */
  count: string | null
  readonly writes: string[]
}

/** Numbers of the persons of one turn; `ops` writes those that are new or were last named in an earlier month. */
export class PersonNumbers {
  private readonly account: Account
  private readonly facts: Facts
  private readonly known = new Map<string, Placed>()
  private readonly first: Rows
  private readonly buckets = new Map<string, Rows>()

  /** `namingFacts` and `unreadPersons`, or `personFacts`, must have been fetched for everyone named. */
  constructor(facts: Facts, account: Account) {
    this.facts = facts
    this.account = account
    this.first = rowsOf(firstPersonsKey(account.shard, account.accountId))
  }

  /** The number of a person named in `month` (`yyyymm`). */
  numberOf(person: Numbered, month: string): number {
    return this.placeOf(person, month).row.number
  }

  /** The same for the sender of a message of the account. */
  numberOfFrom(person: NamedPerson, month: string): number {
    const placed = this.placeOf(person, month)
    if (placed.row.sends !== true) {
      placed.row = { ...placed.row, sends: true }
      // The later of two writes of a field holds.
      placed.rows.writes.push(person.hmac, packPerson(placed.row))
    }
    return placed.row.number
  }

  /** The number of a sender to the account in `month`, without storing an address. */
  numberOfSender(hmac: string, month: string): number {
    return this.numberOf({ hmac, address: null }, month)
  }

  /** The writes for the persons named so far, at most one for each hash. */
  ops(): Op[] {
    const ops: Op[] = []
    addWrites(ops, this.first)
    for (const rows of this.buckets.values()) addWrites(ops, rows)
    return ops
  }

  private placeOf(person: Numbered, month: string): Placed {
    const known = this.known.get(person.hmac)
    if (known !== undefined) return known
    const placed = this.find(person, month)
    this.known.set(person.hmac, placed)
    return placed
  }

  private find(person: Numbered, month: string): Placed {
    const { hmac } = person
    const packed = this.facts.field(this.first.key, hmac)
    if (packed !== null) return stamp(this.first, { person, packed, month })
    const count = Number(this.countOf(this.first) ?? 0)
    if (count < FIRST_PERSONS) {
      this.first.count = String(count + 1)
      return give(this.first, { person, number: count + 1, month })
    }
    for (let at = 0; at <= this.deepest(); at += 1) {
      const rows = this.bucketOf(LEVELS[at] as BucketLevel, hmac)
      const there = this.facts.field(rows.key, hmac)
      if (there !== null) return stamp(rows, { person, packed: there, month })
    }
    return this.giveInBucket(person, month)
  }

  /**
   * The deepest level whose buckets were fetched, because it was in use before the turn; -1 for none. A turn that names
   * nobody has fetched nothing.
   */
  private deepest(): number {
    return deepestOf(this.facts.field(this.first.key, COUNT_FIELD))
  }

  /** A number of the first level whose bucket has room. */
  private giveInBucket(person: Numbered, month: string): Placed {
    for (const level of LEVELS) {
      const rows = this.bucketOf(level, person.hmac)
      const count = unpackCount(this.countOf(rows, level))
      const number = nextNumber(level, bucketIn(level, person.hmac), count)
      if (number === null) continue
      rows.count = packCount({ ...count, given: count.given + 1 } satisfies BucketCount)
      if (level.index > deepestOf(this.countOf(this.first))) this.first.count = countOfDeepest(level.index)
      return give(rows, { person, number, month })
    }
    throw new Fault('An account has no number left')
  }

  private bucketOf(level: BucketLevel, hmac: string): Rows {
    const key = bucketKey(level, bucketIn(level, hmac), this.account)
    let rows = this.buckets.get(key)
    if (rows === undefined) {
      rows = rowsOf(key)
      this.buckets.set(key, rows)
    }
    return rows
  }

  /** `#` of a hash. A level that was not in use has no bucket, except those of this turn. */
  private countOf({ key, count }: Rows, level?: BucketLevel): string | null {
    if (count !== null) return count
    const isUsed = level === undefined || level.index <= Math.max(0, this.deepest())
    return isUsed ? this.facts.field(key, COUNT_FIELD) : null
  }
}

function rowsOf(key: string): Rows {
  return { key, count: null, writes: [] }
}

function give(
  rows: Rows,
  { person: { hmac, address }, number, month }: { person: Numbered; number: number; month: string },
): Placed {
  const row = { number, month, suppressions: 0, isNumberOnly: address === null }
  rows.writes.push(hmac, packPerson(row))
  // The spelling of a request is stored in the head of its message.
  if (address !== null) rows.writes.push(String(number), packAddress(address))
  return { rows, row }
}

function addWrites(ops: Op[], { key, count, writes }: Rows): void {
  if (count !== null) writes.push(COUNT_FIELD, count)
  for (let start = 0; start < writes.length; start += ARGS_EACH)
    ops.push({ key, write: 'HSET', args: writes.length <= ARGS_EACH ? writes : writes.slice(start, start + ARGS_EACH) })
}

function stamp(rows: Rows, { person, packed, month }: { person: Numbered; packed: string; month: string }): Placed {
  const { hmac, address } = person
  const before = unpackPerson(packed)
  const isNamedFirst = before.isNumberOnly === true && address !== null
  const isNumberOnly = before.isNumberOnly === true && address === null
  // Nearly every message names persons already named this month: copying each row would cost 3 µs per message.
  if (before.month >= month && !isNamedFirst) return { rows, row: before }
  const row = { ...before, month: before.month < month ? month : before.month, isNumberOnly }
  rows.writes.push(hmac, packPerson(row))
  if (isNamedFirst) rows.writes.push(String(row.number), packAddress(address))
  return { rows, row }
}
