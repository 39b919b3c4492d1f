/**
 * person - the addresses behind the numbers of a log entry
 *
 * Keys: `person:<account>`, `person:<account>:<xx>`
 */

import type { FactOf } from '../../cluster/behaviour.ts'
import { addressOfRow, keyOfNumber } from '../state/person.ts'
import type { Reader } from './key.ts'

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
