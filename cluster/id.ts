/**
 * id - ids that route themselves and sort by time.
 *
 * UUID version 7 layout: 48 bit ms | 7 | 12 bit shard | variant | 18 bit counter | 44 bit random. The 62 low bits as a
 * number, after the milliseconds, are the Redis stream entry id of the object in a log. Ids of one shard rise strictly.
 * The maker is started above the last id that the shard has given out, even if its clock is behind.
 */
import { assert } from './fault.ts'

export const SHARDS = 256

const COUNTER_MAX = 0x3ffff
const RANDOM_SPAN = 2 ** 44
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const ZEROS = '0'.repeat(15)
const LOW_ZEROS = '0'.repeat(20)
/** Below this the high 14 of the 62 low bits leave the whole within 53 bits. */
const EXACT_HIGH_MAX = 32
const EXACT_COUNTER_MAX = 512
const HIGH_DIGITS = '89ab'
const SHORT_CHARS = 22
const BASE64URL = Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
/** Places of the hex digits in an id. */
const HEX_PLACES = Array.from('xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx').flatMap((char, at) => (char === 'x' ? [at] : []))
const short = Buffer.alloc(SHORT_CHARS)

/** Parts of an id: milliseconds, shard, counter. */
export interface IdParts {
  ms: number
  shard: number
  counter: number
}

export interface IdMaker {
  /** A new id at `nowMs`, above every id before it. */
  next(nowMs: number): string
  /** The last id that was given out; '' if there was none. */
  readonly last: string
}

// Every message is named by a few ids. The engine works out the digits of a number beyond 31 bits one by one (1.3 µs
// for 44 bits in hex); these tables give two or three at a time.
const HEX3 = tableOf(16, 3)
const DECIMAL3 = tableOf(10, 3)
const BASE36_2 = tableOf(36, 2)
const TWENTY_FOUR_BITS = 2 ** 24
const TWELVE_BITS = 0xfff

/** Whether `text` is an id of this layout (lower case). */
export function isId(text: string): boolean {
  return UUID.test(text)
}

/** Parts of an id that `isId` holds for. */
export function parseId(id: string): IdParts {
  const high = Number.parseInt(id.slice(19, 23), 16) & 0x3fff
  return {
    ms: Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16),
    shard: Number.parseInt(id.slice(15, 18), 16),
    counter: (high << 4) | Number.parseInt(id.slice(24, 25), 16),
  }
}

/** The shard that an id names, or null when it is not an id of an installation with `shards` shards. */
export function shardOf(id: string, shards = SHARDS): number | null {
  if (!isId(id)) return null
  const shard = Number.parseInt(id.slice(15, 18), 16)
  return shard < shards ? shard : null
}

/** The shard of an id that is known to be one: it is in a key or a state. Throws Fault for anything else. */
export function homeShard(id: string): number {
  const shard = shardOf(id)
  assert(shard !== null, 'Id names no shard')
  return shard
}

/** Milliseconds of an id. */
export function msOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
}

/** The stream entry id of an object: `<ms>-<62 low bits>`. One id is asked for several times in a row. */
export function entryIdOf(id: string): string {
  if (id === askedId) return askedEntryId
  if (id === madeId && madeCounter < EXACT_COUNTER_MAX)
    return `${madeMs}-${decimalOf(madeCounter * RANDOM_SPAN + madeTail)}`
  askedId = id
  askedEntryId = `${msOf(id)}-${lowOf(id)}`
  return askedEntryId
}

/** The rank of an id within its shard, without its random bits: `<ms>-<counter>`. It rises with the ids. */
export function rankOf(id: string): string {
  const { ms, counter } = parseId(id)
  return `${ms}-${counter}`
}

/** The stream entry ids between which the one of a rank is, both inclusive. */
export function entriesOfRank(rank: string): { readonly from: string; readonly to: string } {
  const dash = rank.indexOf('-')
  const ms = rank.slice(0, dash)
  const counter = BigInt(rank.slice(dash + 1))
  const span = BigInt(RANDOM_SPAN)
  return { from: `${ms}-${counter * span}`, to: `${ms}-${(counter + 1n) * span - 1n}` }
}

/** The 62 low bits in decimal. Few ids share a millisecond, so nearly all values fit into a double. */
function lowOf(id: string): string {
  const high = Number.parseInt(id.slice(19, 23), 16) & 0x3fff
  if (high < EXACT_HIGH_MAX) return decimalOf(high * 2 ** 48 + Number.parseInt(id.slice(24), 16))
  return (BigInt(`0x${id.slice(19, 23)}${id.slice(24)}`) & 0x3fffffffffffffffn).toString()
}

/** The id made last, and its parts. Its entry id is asked for next. */
let madeId = ''
let madeMs = 0
let madeCounter = 0
let madeTail = 0
let askedId = ''
let askedEntryId = ''

/** The object's id from its stream entry id. */
export function idOfEntry(entryId: string, shard: number): string {
  const dash = entryId.indexOf('-')
  const ms = Number(entryId.slice(0, dash))
  const low = (BigInt(entryId.slice(dash + 1)) | 0x8000000000000000n).toString(16)
  return layOut(ms, shard, low.slice(0, 4), low.slice(4))
}

/** The smallest entry id above `entryId`. */
export function entryIdAfter(entryId: string): string {
  const dash = entryId.indexOf('-')
  return `${entryId.slice(0, dash)}-${BigInt(entryId.slice(dash + 1)) + 1n}`
}

/** Entry ids as strings that compare like the ids: because a decimal of 62 bits does not fit a double. */
export function sortableEntryId(entryId: string): string {
  const dash = entryId.indexOf('-')
  const ms = ZEROS.slice(dash) + entryId.slice(0, dash)
  return `${ms}-${LOW_ZEROS.slice(entryId.length - dash - 1)}${entryId.slice(dash + 1)}`
}

/** The entry id from which `sortable` was made. */
export function plainEntryId(sortable: string): string {
  return sortable.replace(/^0+(?=\d)/, '').replace(/-0+(?=\d)/, '-')
}

/** Whether an entry id is above another, both in their shortest form. */
export function isEntryIdAbove(id: string, other: string): boolean {
  const dash = id.indexOf('-')
  const otherDash = other.indexOf('-')
  if (dash !== otherDash) return dash > otherDash
  if (id.length === other.length) return id > other
  const ms = id.slice(0, dash)
  const otherMs = other.slice(0, dash)
  return ms === otherMs ? id.length > other.length : ms > otherMs
}

/** An id as 22 characters (base64url of its 16 bytes), for hash fields. */
export function shortId(id: string): string {
  let at = 0
  for (let i = 0; i < 30; i += 3) {
    const bits = (digitAt(id, i) << 8) | (digitAt(id, i + 1) << 4) | digitAt(id, i + 2)
    short[at++] = BASE64URL[bits >> 6]!
    short[at++] = BASE64URL[bits & 63]!
  }
  const bits = (digitAt(id, 30) << 4) | digitAt(id, 31)
  short[at++] = BASE64URL[bits >> 2]!
  short[at] = BASE64URL[(bits & 3) << 4]!
  return short.toString('latin1')
}

/** Hex digit `place` of an id, in lower case. */
function digitAt(id: string, place: number): number {
  const code = id.charCodeAt(HEX_PLACES[place]!)
  return code < 58 ? code - 48 : code - 87
}

/** The id of 22 characters made by `shortId`. */
export function idOfShort(short: string): string {
  const hex = Buffer.from(short, 'base64url').toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** A maker for one shard that continues above `last` ('' for none). `random` returns a number in [0, 1). */
export function makeIds({ shard, last, random }: { shard: number; last: string; random: () => number }): IdMaker {
  assert(shard >= 0 && shard < 4096, 'Shard out of range', { shard })
  const before = last === '' ? null : parseId(last)
  let ms = before?.ms ?? 0
  let counter = before?.counter ?? -1
  let given = last
  let timed = layTime(ms, shard)
  let timedMs = ms
  return {
    next(nowMs) {
      if (nowMs > ms) {
        ms = nowMs
        counter = 0
      } else if (counter < COUNTER_MAX) counter += 1
      else {
        ms += 1
        counter = 0
      }
      const tail = Math.floor(random() * RANDOM_SPAN)
      if (timedMs !== ms) {
        timedMs = ms
        timed = layTime(ms, shard)
      }
      madeMs = ms
      madeCounter = counter
      madeTail = tail
      // The variant's two bits and the counter's highest two, its next twelve; its last four and the random bits.
      const high = HIGH_DIGITS[counter >>> 16]! + hex3((counter >>> 4) & 0xfff)
      given = `${timed}${high}-${hex12((counter & 0xf) * RANDOM_SPAN + tail)}`
      madeId = given
      return given
    },
    get last() {
      return given
    },
  }
}

function layOut(ms: number, shard: number, high: string, low: string): string {
  return `${layTime(ms, shard)}${high}-${low}`
}

/** The common beginning of the ids of a shard and a millisecond. */
function layTime(ms: number, shard: number): string {
  const time = hex12(ms)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex3(shard)}-`
}

/** Three hex digits of a whole number below 2 ** 12. */
export function hex3(value: number): string {
  return HEX3[value]!
}

/** Twelve hex digits of a whole number below 2 ** 48. */
export function hex12(value: number): string {
  const high = Math.floor(value / TWENTY_FOUR_BITS)
  const low = value - high * TWENTY_FOUR_BITS
  return HEX3[high >>> 12]! + HEX3[high & TWELVE_BITS]! + HEX3[low >>> 12]! + HEX3[low & TWELVE_BITS]!
}

/** A whole number from 0 to 2 ** 53 - 1 in decimal; anything else as String() shows it. */
export function decimalOf(value: number): string {
  if (!(value >= 1_000 && value < Number.POSITIVE_INFINITY)) return String(value)
  const rest = Math.floor(value / 1_000)
  return decimalOf(rest) + DECIMAL3[value - rest * 1_000]!
}

/** Four digits in base 36 of a whole number below 36 ** 4. */
export function base36(value: number): string {
  return BASE36_2[Math.floor(value / 1_296)]! + BASE36_2[value % 1_296]!
}

/** All numbers with the given number of digits, padded with zeros. */
function tableOf(base: number, digits: number): readonly string[] {
  return Array.from({ length: base ** digits }, (_, value) => value.toString(base).padStart(digits, '0'))
}
