/**
 * person - the addresses behind the numbers of a log entry
 *
 * Keys: `person:<account>:<xx>`
 */

import { addressFact, addressOfRow } from '../actors/person.ts'
import type { Reader } from './key.ts'

/** Addresses (or pseudonyms) in the order of the numbers; '' for a row that is gone; null: the store did not answer. */
export async function readPersons(
  read: Reader,
  { shard, accountId, numbers }: { shard: number; accountId: string; numbers: readonly number[] },
): Promise<readonly string[] | null> {
  const facts = numbers.map((number) => addressFact(shard, accountId, number))
  const seen = await read(shard, facts)
  return seen?.map((value) => addressOfRow((value as readonly (string | null)[])[0] ?? '')) ?? null
}
