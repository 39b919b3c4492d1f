/**
 * suppression - the list of addresses that a stream no longer writes to, packed small.
 *
 * States of an address on a stream: none, manual, hard_bounce, unsubscribe, spam_complaint. It only gets worse: a
 * worse reason updates the entry, which keeps its id and time of creation. Lifting removes it.
 *
 * Keys: `suppressed:<stream>:<x>` HMAC ->
 * `[suppression short, person number, reason letter, message short or 0, code or 0, response or 0]`, x = first hex
 * digit of the HMAC; `suppressions:<server>`, entry id = suppression id, field `s` = `<stream short>.<HMAC>`. An entry
 * whose row is missing, or names another suppression, was lifted. Neither has an address, which the person number
 * leads to.
 *
 * Spec suppression.entry, suppression.worse
 */

import type { Entry, Fact, Facts } from '../../cluster/behaviour.ts'
import { entryIdOf, idOfShort, shortId } from '../../cluster/id.ts'
import { withoutSum, withSum } from '../../cluster/sum.ts'
import type { SUPPRESSION_REASONS } from '../../schemas/suppression.ts'
import { bucketOfHmac } from './hash-fraction.ts'
import { suppressedKey, suppressionsKey } from './keys.ts'

export type SuppressionReason = (typeof SUPPRESSION_REASONS)[number]

/** One entry of a stream's list; it was created at the time in its id. */
export interface Suppression {
  readonly suppressionId: string
  /** Person number of the address. */
  readonly number: number
  readonly reason: SuppressionReason
  /** The message that caused it, or null. */
  readonly messageId: string | null
  readonly code: number | null
  /** The address in it is masked. */
  readonly response: string | null
}

/** The place of an entry's row. */
export interface SuppressionPlace {
  readonly streamId: string
  readonly hmac: string
}

export const SUPPRESSION_FIELD = 's'

const LETTERS = { manual: 'm', hard_bounce: 'h', unsubscribe: 'u', spam_complaint: 'c' } as const
const REASONS = { m: 'manual', h: 'hard_bounce', u: 'unsubscribe', c: 'spam_complaint' } as const
const RANKS = { manual: 0, hard_bounce: 1, unsubscribe: 2, spam_complaint: 3 } as const

/** Whether a reason takes over an entry of another. Spec suppression.worse */
export function isWorse(reason: SuppressionReason, than: SuppressionReason): boolean {
  return RANKS[reason] > RANKS[than]
}

/**
 * Whether the client may lift it; only the operator may lift suppressions requested by a person. Spec suppression.lift
 */
export function isLiftable(reason: SuppressionReason): boolean {
  return reason === 'manual' || reason === 'hard_bounce'
}

/** The key that holds the row of an address, if there is one. */
export function suppressedKeyOf(shard: number, { streamId, hmac }: SuppressionPlace): string {
  return suppressedKey(shard, streamId, (bucketOfHmac(hmac) >> 4).toString(16))
}

/** The reads of the suppressions of addresses, one for each slice of the list. */
export function suppressedFacts(shard: number, streamId: string, hmacs: Iterable<string>): Fact[] {
  const slices = new Map<string, string[]>()
  for (const hmac of hmacs) {
    const key = suppressedKeyOf(shard, { streamId, hmac })
    const fields = slices.get(key)
    if (fields === undefined) slices.set(key, [hmac])
    else fields.push(hmac)
  }
  return Array.from(slices, ([key, fields]): Fact => ({ read: 'fields', key, fields }))
}

/** The entry of an address, null if it is not suppressed. Its fact must have been fetched. */
export function suppressionIn(facts: Facts, shard: number, place: SuppressionPlace): Suppression | null {
  const packed = facts.field(suppressedKeyOf(shard, place), place.hmac)
  return packed === null ? null : unpackSuppression(packed)
}

/** Packs an entry. */
export function packSuppression(entry: Suppression): string {
  const { suppressionId, number, reason, messageId, code, response } = entry
  const packed: (string | number)[] = [shortId(suppressionId), number, LETTERS[reason]]
  packed.push(messageId === null ? 0 : shortId(messageId), code ?? 0, response ?? 0)
  while (packed.at(-1) === 0) packed.pop()
  return withSum(JSON.stringify(packed))
}

/** Unpacks an entry. */
export function unpackSuppression(text: string): Suppression {
  const [short, number, letter, message, code, response] = JSON.parse(withoutSum(text, 'suppression')) as [
    string,
    number,
    keyof typeof REASONS,
    (string | 0)?,
    number?,
    (string | 0)?,
  ]
  return {
    suppressionId: idOfShort(short),
    number,
    reason: REASONS[letter],
    messageId: message ? idOfShort(message) : null,
    code: code || null,
    response: response || null,
  }
}

/** The read of a suppression's entry in its server's list, which has its place. */
export function placeFact(
  shard: number,
  { serverId, suppressionId }: { readonly serverId: string; readonly suppressionId: string },
): Fact & { read: 'range' } {
  const entryId = entryIdOf(suppressionId)
  return { read: 'range', key: suppressionsKey(shard, serverId), from: entryId, to: entryId, count: 1 }
}

/** Packs an entry of a server's list of suppressions. */
export function packPlace({ streamId, hmac }: SuppressionPlace): string {
  return `${shortId(streamId)}.${hmac}`
}

/** Unpacks an entry of a server's list of suppressions; null if malformed. */
export function parsePlace(entry: Entry): SuppressionPlace | null {
  const packed = entry.fields[entry.fields.indexOf(SUPPRESSION_FIELD) + 1]
  const dot = packed?.indexOf('.') ?? -1
  return packed === undefined || dot < 0
    ? null
    : { streamId: idOfShort(packed.slice(0, dot)), hmac: packed.slice(dot + 1) }
}
