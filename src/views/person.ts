/**
 * person - the addresses behind the numbers of a log entry, and the number of an address
 *
 * Keys: `person:<account>`, `person:<account>:<x…>`
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { keyOfNumber, personKeys } from '../state/person/buckets.ts'
import { addressOfRow, unpackPerson } from '../state/person/person.ts'
import type { Reader } from './key.ts'

/** The reads of an HMAC's possible places. */
export function personPlaces(shard: number, accountId: string, hmac: string): FactOf<'fields'>[] {
  return personKeys({ shard, accountId }, hmac).map((key) => ({ read: 'fields', key, fields: [hmac] }))
}

/** The number in the row that `personPlaces` have found; null if there is no row. */
export function numberIn(answers: readonly (readonly (string | null)[])[]): number | null {
  for (const [row = null] of answers) if (row !== null) return unpackPerson(row).number
  return null
}

/** Addresses (or pseudonyms) in the order of the numbers; '' for a removed row; null if the store did not answer. */
export async function readPersons(
  read: Reader,
  { shard, accountId, numbers }: { shard: number; accountId: string; numbers: readonly number[] },
): Promise<readonly string[] | null> {
  const known = await readPersonMap(read, { shard, accountId, numbers })
  return known === null ? null : numbers.map((number) => known.get(number) ?? '')
}

/** The same as a map by number, with one read for each hash. */
export async function readPersonMap(
  read: Reader,
  { shard, accountId, numbers }: { shard: number; accountId: string; numbers: Iterable<number> },
): Promise<ReadonlyMap<number, string> | null> {
  const byKey = new Map<string, Set<number>>()
  for (const number of numbers) {
    const key = keyOfNumber(shard, accountId, number)
    const asked = byKey.get(key)
    if (asked === undefined) byKey.set(key, new Set([number]))
    else asked.add(number)
  }
  const asked = [...byKey]
  const seen = await read(
    shard,
    asked.map(([key, numbersOf]): FactOf<'fields'> => {
      return { read: 'fields', key, fields: Array.from(numbersOf, String) }
    }),
  )
  if (seen === null) return null
  const known = new Map<number, string>()
  for (const [index, [, numbersOf]] of asked.entries()) {
    const rows = seen[index] ?? []
    for (const [place, number] of [...numbersOf].entries()) known.set(number, addressOfRow(rows[place] ?? ''))
  }
  return known
}
