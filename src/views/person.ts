/**
 * person - the addresses behind the numbers of a log entry
 *
 * Keys: `person:<account>:<xx>`
 */

import { PERSON_BUCKETS, personKey } from '../actors/keyspace.ts'
import { addressOfRow, bucketOfNumber } from '../actors/person.ts'
import type { Reader } from './key.ts'

/** Addresses (or pseudonyms) in the order of the numbers; '' for a row that is gone; null: the store did not answer. */
export async function readPersons(
  read: Reader,
  { shard, accountId, numbers }: { shard: number; accountId: string; numbers: readonly number[] },
): Promise<readonly string[] | null> {
  const known = await readPersonMap(read, { shard, accountId, numbers })
  return known === null ? null : numbers.map((number) => known.get(number) ?? '')
}

/** The same by number: one read for each bucket, however many numbers there are. */
export async function readPersonMap(
  read: Reader,
  { shard, accountId, numbers }: { shard: number; accountId: string; numbers: Iterable<number> },
): Promise<ReadonlyMap<number, string> | null> {
  const buckets: Set<number>[] = Array.from({ length: PERSON_BUCKETS })
  for (const number of numbers) {
    const bucket = bucketOfNumber(number)
    const asked = buckets[bucket]
    if (asked === undefined) buckets[bucket] = new Set([number])
    else asked.add(number)
  }
  const asked = [...buckets.entries()].filter(([, numbersOf]) => numbersOf !== undefined)
  const seen = await read(
    shard,
    asked.map(([bucket, numbersOf]) => {
      return { read: 'fields', key: personKey(shard, accountId, bucket), fields: Array.from(numbersOf, String) }
    }),
  )
  if (seen === null) return null
  const known = new Map<number, string>()
  for (const [index, [, numbersOf]] of asked.entries()) {
    const rows = seen[index] as readonly (string | null)[]
    for (const [place, number] of [...numbersOf].entries()) known.set(number, addressOfRow(rows[place] ?? ''))
  }
  return known
}
