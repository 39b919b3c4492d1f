/**
 * person - addresses of an account as numbers, so that no stream ever holds an address.
 *
 * Rows: HMAC -> `<number> <yyyymm>`, the month in which it was last named, and the number of suppression lists it is
 * on, if any, or `r` if it has only sent to us, and so has a number and no address; then `s` if it was ever the sender
 * of a message of the account. Senders have no postings, so a search for them reads the log. Number -> address in
 * lower case, or once erased `<yyyymm> <pseudonym>`; `#` -> how many numbers the hash has given out. Rows other
 * than `#` end with a sum. The month is stored with the number, because one read returns both.
 *
 * An erasure removes the row of the HMAC, and the address gets a new number when it is named again.
 *
 * The first persons of an account are in one hash, numbered from 1: most accounts never have more, and the owner of the
 * shard knows that hash completely, so a new address costs no read. All others are in buckets by the first byte of the
 * HMAC, number = n x 256 + bucket, so that number -> address needs no index.
 *
 * Keys: `person:<account>`, `person:<account>:<xx>`, xx = first byte of the HMAC
 */

import type { Fact, Facts, Known, Op } from '../../cluster/behaviour.ts'
import { withoutSum, withSum } from '../../cluster/sum.ts'
import { firstPersonsKey, PERSON_BUCKETS, personKey } from './keys.ts'

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

/** Field that counts the numbers of a hash. */
export const COUNT_FIELD = '#'
/** Persons of the first hash; a multiple of the number of buckets, whose numbers are above. */
export const FIRST_PERSONS = 1_024
/**
 * Fields of a hash that is read whole: 127 persons. One that is known whole stays so while it grows; a large one that
 * has gone from memory is not read again for the sake of one address.
 */
const WHOLE_MAX = 256
const NUMBER_ONLY = 'r'
const SENDS = ' s'
const FIRST_ROUNDS = FIRST_PERSONS / PERSON_BUCKETS
/** Arguments of one write, because a request may name a thousand persons. An even number. */
const ARGS_EACH = 2_000
const NO_FACTS: readonly Fact[] = []

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const SIX_BITS = new Uint8Array(128)
for (let index = 0; index < BASE64URL.length; index += 1) SIX_BITS[BASE64URL.charCodeAt(index)] = index

/** Bucket of an HMAC: its first byte. */
export function bucketOfHmac(hmac: string): number {
  return (SIX_BITS[hmac.charCodeAt(0)]! << 2) | (SIX_BITS[hmac.charCodeAt(1)]! >> 4)
}

/** The hash that holds a person, by number. */
export function keyOfNumber(shard: number, accountId: string, number: number): string {
  return number <= FIRST_PERSONS
    ? firstPersonsKey(shard, accountId)
    : personKey(shard, accountId, number % PERSON_BUCKETS)
}

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

/** The reads that find these HMACs: the first hash, and each one's bucket. */
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
  return [
    first,
    ...bucketFacts(
      account,
      asked.filter((hmac) => known(first.key, hmac) === null),
    ),
  ]
}

/** The reads without which these HMACs, whose `namingFacts` were fetched, cannot be numbered. */
export function unreadPersons(facts: Facts, account: Account, asked: readonly string[]): readonly Fact[] {
  const key = firstPersonsKey(account.shard, account.accountId)
  if (hasRoom(facts.field(key, COUNT_FIELD), asked.length)) return NO_FACTS
  const absent = asked.filter((hmac) => facts.field(key, hmac) === null)
  return bucketFacts(account, absent).filter((fact) => !facts.has(fact))
}

/** Whether the first hash can hold `more` persons: then it holds all of the account. */
function hasRoom(count: string | null, more: number): boolean {
  return Number(count ?? 0) + more <= FIRST_PERSONS
}

function firstFact({ shard, accountId }: Account, hmacs: readonly string[]): Fact & { readonly read: 'fields' } {
  const key = firstPersonsKey(shard, accountId)
  return { read: 'fields', key, fields: [COUNT_FIELD, ...hmacs], wholeMax: WHOLE_MAX }
}

/** One read for each bucket. */
function bucketFacts({ shard, accountId }: Account, hmacs: readonly string[]): Fact[] {
  const buckets = new Map<number, string[]>()
  for (const hmac of hmacs) {
    const bucket = bucketOfHmac(hmac)
    const fields = buckets.get(bucket)
    if (fields === undefined) buckets.set(bucket, [COUNT_FIELD, hmac])
    else fields.push(hmac)
  }
  const facts: Fact[] = []
  for (const [bucket, fields] of buckets)
    facts.push({ read: 'fields', key: personKey(shard, accountId, bucket), fields, wholeMax: WHOLE_MAX })
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
export function personRowIn(facts: Facts, { hmac, shard, accountId }: Account & { hmac: string }): PersonRow | null {
  const packed =
    facts.field(firstPersonsKey(shard, accountId), hmac) ??
    facts.field(personKey(shard, accountId, bucketOfHmac(hmac)), hmac)
  return packed === null ? null : unpackPerson(packed)
}

/** A person of the turn, in the hash that holds it. */
interface Placed {
  readonly rows: Rows
  row: PersonRow
}

interface Rows {
  readonly key: string
  /** Bucket of the numbers; -1 for the first hash. */
  readonly bucket: number
  /** Count of assigned numbers; -1 before it was read. */
  count: number
  readonly writes: string[]
}

/** Numbers of the persons of one turn; `ops` writes those that are new or were last named in an earlier month. */
export class PersonNumbers {
  private readonly account: Account
  private readonly facts: Facts
  private readonly known = new Map<string, Placed>()
  private readonly first: Rows
  private readonly buckets = new Map<number, Rows>()

  /** `namingFacts` and `unreadPersons`, or `personFacts`, must have been fetched for everyone named. */
  constructor(facts: Facts, account: Account) {
    this.facts = facts
    this.account = account
    this.first = rowsOf(firstPersonsKey(account.shard, account.accountId), -1)
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
    if (this.countOf(this.first) < FIRST_PERSONS) return this.give(this.first, person, month)
    const rows = this.bucketOf(hmac)
    const there = this.facts.field(rows.key, hmac)
    return there === null ? this.give(rows, person, month) : stamp(rows, { person, packed: there, month })
  }

  private bucketOf(hmac: string): Rows {
    const number = bucketOfHmac(hmac)
    let rows = this.buckets.get(number)
    if (rows === undefined) {
      rows = rowsOf(personKey(this.account.shard, this.account.accountId, number), number)
      this.buckets.set(number, rows)
    }
    return rows
  }

  private give(rows: Rows, { hmac, address }: Numbered, month: string): Placed {
    rows.count = this.countOf(rows) + 1
    const { bucket, count } = rows
    const number = bucket < 0 ? count : (count + FIRST_ROUNDS) * PERSON_BUCKETS + bucket
    const isNumberOnly = address === null
    const row = { number, month, suppressions: 0, isNumberOnly }
    rows.writes.push(hmac, packPerson(row))
    // The spelling of a request is stored in the head of its message.
    if (address !== null) rows.writes.push(String(number), packAddress(address))
    return { rows, row }
  }

  private countOf({ key, count }: Rows): number {
    return count < 0 ? Number(this.facts.field(key, COUNT_FIELD) ?? 0) : count
  }
}

function rowsOf(key: string, bucket: number): Rows {
  return { key, bucket, count: -1, writes: [] }
}

function addWrites(ops: Op[], { key, count, writes }: Rows): void {
  if (count >= 0) writes.push(COUNT_FIELD, String(count))
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
